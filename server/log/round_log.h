// The round log: one file per round, written once, and the chain of their hashes (docs/files.md has
// the format). Of old rounds only the headers are kept, many in a file: the payloads are dropped
// once a snapshot replaces them.
//
//   start.record          the first link of the chain
//   0000000042.record     round 42, or the headers of pruned rounds from 42 on: a pack
//   *.tmp                 a record that was not committed; removed when the log is opened. The same
//                         name at each try, so that an error that stays has the same message.
//
// One thread (the round thread) calls WriteStart, Begin and Commit; one other thread may call
// Prune. Reading is thread-safe and concurrent with both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "server/log/disk.h"
#include "server/log/record_reader.h"
#include "server/log/record_writer.h"

namespace distro::server {

class RoundLog {
 public:
  // Opens the log in `dir` (created if missing), removes temporary files and records whose rounds
  // are in packs, verifies the chain of all headers and the payload checksums of the newest
  // `verify_payloads` records, and makes the existing names durable. DataLoss names a damaged or
  // missing file and the remedy. FailedPrecondition: a file of a newer version. `layout`, `disk`
  // and `log` are borrowed.
  static absl::StatusOr<std::unique_ptr<RoundLog>> Open(const std::string& dir,
                                                        const Layout* layout, int verify_payloads,
                                                        Disk* disk, Log* log);

  // Opens a folder only for reading, also while an aggregator writes to it. Creates and removes
  // nothing, and does not see rounds committed later. NotFound: there is no such folder.
  static absl::StatusOr<std::unique_ptr<const RoundLog>> OpenReadOnly(const std::string& dir,
                                                                      const Layout* layout,
                                                                      int verify_payloads);

  // The start record, which is written once, before round 0. FailedPrecondition: it exists
  // (fenced).
  bool has_start() const;
  const v1::StartHeader& start() const;  // requires has_start()
  absl::Status WriteStart(const v1::StartHeader& start);

  // The first round with a record: 0, except in a run that was restored from an archive
  // (restored_run.h).
  RoundId begin() const;
  // The first round that is not in the log.
  RoundId next_round() const;
  // Chain hash of the record before `round`, which is the start record for 0. Requires has_start()
  // and begin() <= round <= next_round().
  uint64_t HashBefore(RoundId round) const;
  // Reads and parses the header of a stored round. Requires begin() <= round < next_round().
  // DataLoss: the file has changed since it was verified.
  absl::StatusOr<v1::RoundHeader> Header(RoundId round) const;
  // Opens a record with payloads. It can be read to its end, even if it is pruned meanwhile.
  // OutOfRange (reason "pruned"): round < first_round(). DataLoss: the file is missing or has
  // changed since it was verified. Does not read payloads: VerifiedPayload does.
  absl::StatusOr<std::shared_ptr<const RecordReader>> OpenRecord(RoundId round) const;

  // Starts to write a round into a temporary file. FailedPrecondition: it is not next_round(), or
  // there is no start record.
  absl::StatusOr<RecordWriter> Begin(RoundId round);
  // Ends the record of Begin(): writes the header, fsyncs, links to the final name, fsyncs the
  // folder. Then the round is durable and in the log. FailedPrecondition: the round's file exists:
  // another process wrote it (fenced). InvalidArgument: the header is not of this round, these
  // payloads and this predecessor. Reason "disk" (server/log/disk.h): nothing was published. After
  // any error, also of AddSegment, retry with a new record and the same bytes.
  absl::Status Commit(RecordWriter record, absl::string_view header_bytes);

  // Whether only the header of a stored round is left, because its results were dropped.
  bool pruned(RoundId round) const;
  // The first round from which on all rounds have their payloads.
  RoundId first_round() const;
  // Drops the payloads of all rounds before `first_kept`; headers and hashes stay, in packs. Also
  // packs what older versions pruned. Rewrites at most one pack that is not full, kPackRounds or
  // kPackHeaderBytes. Blocking, two fsyncs per pack: not for the round thread. InvalidArgument:
  // beyond next_round(). Reason "disk": some were dropped; call again for the rest. DataLoss: all
  // were dropped except damaged or missing ones; names the first of these.
  absl::Status Prune(RoundId first_kept);

  // Bytes and number of all records.
  uint64_t bytes() const;
  uint64_t files() const;
  // Sets the observer of the time of each fsync of a commit, called on the committing thread. Call
  // it before the first Begin.
  void SetFsyncObserver(RecordWriter::FsyncObserver observer) { observer_ = std::move(observer); }

 private:
  struct Link {
    uint64_t hash = 0;   // chain hash
    uint64_t bytes = 0;  // of the file; 0 in a pack
    bool pruned = false;
  };
  // A file of pruned rounds, from its key in packs_ to `end`.
  struct Pack {
    uint64_t end = 0;
    uint64_t bytes = 0;  // of the file
  };

  RoundLog(std::string dir, const Layout* layout, Disk* disk);

  absl::Status RemoveTemporaryFiles(Log* log) const;
  absl::Status Load(int verify_payloads);
  absl::Status LoadStart();
  absl::Status LoadFile(RoundId round, bool verify_payloads);
  absl::Status LoadRounds(RoundId first, const RecordReader& reader, bool verify_payloads);
  absl::Status RemovePackedRecords(Log* log);
  absl::Status CheckHeader(RoundId round, absl::string_view header_bytes,
                           const std::vector<RecordEntry>* entries) const;  // null: pruned
  absl::StatusOr<RecordWriter> NewFile(const std::string& path, RecordKind kind, RoundId round,
                                       uint32_t segments);
  absl::Status Publish(RecordWriter* file, const std::string& path, absl::string_view header);
  absl::StatusOr<std::shared_ptr<const RecordReader>> OpenFileOf(RoundId round) const;
  absl::StatusOr<std::shared_ptr<const RecordReader>> OpenUnchanged(RoundId round) const;
  absl::Status ExtendPack(uint64_t first, uint64_t end, uint64_t* next);
  absl::Status ReadHeaders(uint64_t first, uint64_t end, std::vector<std::string>* headers) const;
  absl::Status WritePack(uint64_t first, const std::vector<std::string>& headers);
  absl::Status RemovePacked();
  RoundId FileOf(RoundId round) const;
  Pack PackAt(uint64_t round) const;
  bool BeginsPack(uint64_t round) const;
  void Append(const Link& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The link of the round's own record.
  Link& LinkOf(RoundId round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return links_[round.value() - begin_.value() + 1];
  }
  std::string PathOf(RoundId round) const;

  // Constant after Open.
  const std::string dir_;
  const Layout* const layout_;
  Disk* const disk_;  // null: read-only
  // Part of the names of temporary files, so that an unknown second process uses other names.
  const std::string tag_;
  RecordWriter::FsyncObserver observer_;

  // Of the writing thread: the file that a failed commit could not remove. If set, it must be
  // removed before anything is published.
  std::optional<std::pair<std::string, FileId>> left_behind_;
  // Of the pruning thread: records whose rounds are in a durable pack, to be removed.
  std::vector<std::string> packed_;

  mutable absl::Mutex mu_;
  std::unique_ptr<const v1::StartHeader> start_ ABSL_GUARDED_BY(mu_);  // never changes once set
  RoundId begin_ ABSL_GUARDED_BY(mu_);
  std::vector<Link> links_ ABSL_GUARDED_BY(mu_);  // before round begin_, of it, of the next, ...
  std::map<uint64_t, Pack> packs_ ABSL_GUARDED_BY(mu_);  // by the first round
  RoundId first_round_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace distro::server
