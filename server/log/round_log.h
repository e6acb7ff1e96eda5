// The round log: one file a round, written once, never changed; the chain of their hashes (03-protocol, "Durability").
// docs/payload_format.md, "Files", has the format.
//
// Begin/Commit are for one thread (the round thread); reading is thread-safe and concurrent with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/layout/layout.h"
#include "common/replica/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

// One record that is open for reading: headers in memory, payloads from the file. Thread-safe.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual const std::string& header_bytes() const = 0;
  virtual uint64_t payload_bytes(SegmentId segment) const = 0;
  // Bytes [offset, offset + size) of a segment's payload. DataLoss: the file is shorter than it was.
  virtual absl::StatusOr<std::string> Read(SegmentId segment, uint64_t offset, uint64_t size) const = 0;
};

// A round that is being written to a temporary file.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;  // an uncommitted file is removed
  // Appends a segment's payload; each segment once, in any order.
  virtual absl::Status AddSegment(SegmentId segment, absl::string_view payload) = 0;
  // Writes the header, fsyncs, links to the final name, fsyncs the folder. Then the round is durable.
  // FailedPrecondition: the round's file exists: another process wrote it (fenced).
  // ResourceExhausted and others: nothing was published; the same call may be repeated and writes the same bytes to a
  // new file.
  virtual absl::Status Commit(absl::string_view header_bytes) = 0;
};

class RoundLog {
 public:
  // Opens the log in `dir` (created if missing), removes temporary files, verifies the chain of all headers and the
  // payload checksums of the newest `verify_payloads` records. DataLoss names a damaged file and says what to do.
  static absl::StatusOr<std::unique_ptr<RoundLog>> Open(const std::string& dir, const Layout* layout,
                                                        int verify_payloads, Log* log);
  virtual ~RoundLog() = default;

  // The start record; written once, before round 0.
  virtual bool has_start() const = 0;
  virtual const v1::StartHeader& start() const = 0;
  virtual absl::Status WriteStart(const v1::StartHeader& start) = 0;

  // The first round that is not in the log.
  virtual RoundId next_round() const = 0;
  // Chain hash of the record before `round`: of the start record for 0. Requires has_start() and round <= next_round().
  virtual uint64_t HashBefore(RoundId round) const = 0;
  // Header of a stored round, parsed. Requires round < next_round().
  virtual absl::StatusOr<v1::RoundHeader> Header(RoundId round) const = 0;

  virtual absl::StatusOr<std::unique_ptr<RecordWriter>> Begin(RoundId round) = 0;
  virtual absl::StatusOr<std::shared_ptr<const RecordReader>> OpenRecord(RoundId round) const = 0;

  // Bytes of all records; the time each of Commit's fsyncs took is reported to this observer (may be null).
  virtual uint64_t bytes() const = 0;
  virtual void SetFsyncObserver(std::function<void(absl::Duration)> observer) = 0;
};

}  // namespace distro::server
