// The file of a worker's state (docs/files.md, "Files of the worker"): its update rule's state (the
// momentum), the pending update, and the names of worker and run. It contains nothing that is in
// the run's log. The format depends on the rule. Functions are thread-safe; blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/base/mapped_file.h"
#include "common/model/layout/layout.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/update_rule.h"
#include "worker/state/state_parts.h"

namespace distro::worker {

// The part that can be read without a layout.
struct WorkerState {
  std::string run_id;
  std::string worker;  // name
  EpochId epoch;       // the highest seen of the run
  RoundId next_round;  // the first whose result is not in the rule's state
  // Incarnations of the processes that sent the pending update.
  std::vector<uint64_t> senders = {};
  double pending_loss = 0;       // of the pending update
  uint64_t local_steps = 0;      // that the worker has taken; 0 in files of version 1
  uint32_t pending_steps = 0;    // local steps of the pending update; 0 in versions 1 and 2
  uint64_t pending_samples = 0;  // first index of its slot; 0 in files of versions 1 and 2
};

// Replaces the file at `path` atomically. Its bytes are independent of sharding. Requires all
// elements in host memory, [arrays], and no change of `optimizer`'s pending update meanwhile.
absl::Status WriteStateFile(const std::string& path, const WorkerState& state,
                            absl::Span<const TensorPieces> elements, const Optimizer& optimizer);

// Reads a state file, or its bytes in memory.
class StateReader {
 public:
  // Reads the header. NotFound: there is no file. Unimplemented: it is of a newer version.
  // DataLoss: it is damaged; the message names the field.
  static absl::StatusOr<StateReader> Open(const std::string& path);
  // `bytes` is borrowed.
  static absl::StatusOr<StateReader> FromBytes(absl::string_view bytes);

  const WorkerState& state() const { return state_; }

  // FailedPrecondition: the file is of another layout.
  absl::Status CheckLayout(const Layout& layout) const;

  struct Contents {
    // f32 little-endian, unaligned; in `file`, or in the bytes passed to the reader.
    ElementBytes elements;
    std::optional<PendingUpdate> pending;
    uint64_t local_steps = 0;
    std::shared_ptr<const MappedFile> file;
  };
  // Checks all bytes, then returns the contents. DataLoss: damaged. FailedPrecondition: another
  // layout.
  absl::StatusOr<Contents> Read(const Layout& layout, const UpdateRuleKind& rule) const;

 private:
  StateReader() = default;
  absl::Status ParseHeader(absl::string_view bytes);

  std::shared_ptr<const MappedFile> file_;
  absl::string_view body_;  // what follows the header
  WorkerState state_;
  std::string manifest_hash_;
  uint32_t segment_blocks_ = 0;
  RoundId pending_round_;
  uint32_t pending_k_ = 0;  // 0: nothing is pending
};

}  // namespace distro::worker
