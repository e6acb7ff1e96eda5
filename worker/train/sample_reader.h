// Finds a worker's samples in a round, and reads the tokens of a sample index (docs/algorithm.md,
// docs/data.md). Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "distro/v1/run.pb.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "worker/data/sampler.h"
#include "worker/data/token_file.h"

namespace distro::worker {

// The samples that a worker with local data reads, in its own order, for a round whose slot has
// `samples`: the position as if it had read a whole slot in every earlier round. It depends only on
// the round, so a restarted process reads what its predecessor would have read.
v1::Slot OwnSamples(const v1::RunConfig& config, RoundId round, uint64_t samples);

// The slot of `worker`, if it has one.
inline std::optional<v1::Slot> FindSlot(const google::protobuf::RepeatedPtrField<v1::Slot>& slots,
                                        absl::string_view worker) {
  for (const v1::Slot& slot : slots) {
    if (slot.worker() == worker) return slot;
  }
  return std::nullopt;
}

class SampleReader {
 public:
  // `tokens` is borrowed. They are the run's, or, with local data, those of `worker`, whose name
  // seeds their order. InvalidArgument: too few tokens for one training sample of this
  // sequence_length.
  static absl::StatusOr<SampleReader> Create(const TokenSource* tokens, const v1::RunConfig& config,
                                             absl::string_view worker = "");
  // For a text that is never trained on: every sample is held out. As above.
  static absl::StatusOr<SampleReader> OfHeldOut(const TokenSource* tokens,
                                                const v1::RunConfig& config);

  uint64_t training_samples() const { return split_.training_samples; }
  uint64_t held_out_samples() const { return split_.held_out_samples; }

  // i32 [SamplesOf(slot), sequence_length + 1]: the samples of the slot, in its order; its indices
  // are those of the run's seeded order. The statuses of TokenSource::Read, also below.
  absl::Status ReadTraining(const v1::Slot& slot, std::vector<int32_t>* tokens) const;
  // i32 [count, sequence_length + 1]: held-out samples, in the order of the text. Requires first +
  // count <= held_out_samples().
  absl::Status ReadHeldOut(uint64_t first, int count, std::vector<int32_t>* tokens) const;

 private:
  SampleReader(const TokenSource* tokens, int sequence_length, DataSplit split, uint64_t seed)
      : tokens_(tokens),
        sequence_length_(sequence_length),
        split_(split),
        sampler_(std::max<int64_t>(1, split.training_samples), seed) {}

  const TokenSource* tokens_;
  int sequence_length_;
  DataSplit split_;
  Sampler sampler_;
};

}  // namespace distro::worker
