#include "worker/train/sample_reader.h"

#include "absl/types/span.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/run/sample_pool.h"
#include "common/run/schedule.h"

namespace distro::worker {

v1::Slot OwnSamples(const v1::RunConfig& config, RoundId round, uint64_t samples) {
  return ConsecutiveSamples(round.value() * SamplesOfRound(config), static_cast<uint32_t>(samples));
}

absl::StatusOr<SampleReader> SampleReader::Create(const TokenSource* tokens,
                                                  const v1::RunConfig& config,
                                                  absl::string_view worker) {
  const int sequence_length = static_cast<int>(config.sequence_length());
  DISTRO_ASSIGN_OR_RETURN(const DataSplit split, SplitSamples(tokens->tokens(), sequence_length,
                                                              config.held_out_fraction()));
  const uint64_t own = config.data() == v1::DATA_LOCAL ? Xxh3(worker) : 0;
  return SampleReader(tokens, sequence_length, split, config.seed() ^ own);
}

absl::StatusOr<SampleReader> SampleReader::OfHeldOut(const TokenSource* tokens,
                                                     const v1::RunConfig& config) {
  const int sequence_length = static_cast<int>(config.sequence_length());
  DISTRO_ASSIGN_OR_RETURN(const DataSplit all, SplitSamples(tokens->tokens(), sequence_length, 0));
  return SampleReader(tokens, sequence_length,
                      {.training_samples = 0, .held_out_samples = all.training_samples},
                      config.seed());
}

absl::Status SampleReader::ReadTraining(const v1::Slot& slot, std::vector<int32_t>* tokens) const {
  const size_t row = sequence_length_ + 1;
  tokens->resize(SamplesOf(slot) * row);
  size_t at = 0;
  absl::Status status;
  ForEachRange(slot, [&](uint64_t first, uint64_t samples) {
    for (uint64_t i = 0; i < samples && status.ok(); ++i, at += row) {
      status = tokens_->Read(sampler_.SampleAt(first + i) * sequence_length_,
                             absl::MakeSpan(*tokens).subspan(at, row));
    }
  });
  return status;
}

absl::Status SampleReader::ReadHeldOut(uint64_t first, int count,
                                       std::vector<int32_t>* tokens) const {
  const size_t row = sequence_length_ + 1;
  tokens->resize(count * row);
  for (int i = 0; i < count; ++i) {
    const int64_t sample = split_.training_samples + static_cast<int64_t>(first) + i;
    DISTRO_RETURN_IF_ERROR(
        tokens_->Read(sample * sequence_length_, absl::MakeSpan(*tokens).subspan(i * row, row)));
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
