#include "worker/text_floor_command.h"

#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "worker/data/sampler.h"
#include "worker/data/text_entropy.h"
#include "worker/data/token_file.h"

namespace distro::worker {

absl::StatusOr<std::string> TextFloorReport(const TextFloorOptions& options) {
  // Opened as tokens for its checks; the bytes of a text are its tokens.
  const absl::StatusOr<TokenSource> tokens = OpenTokens(options.data, TokenFormat::kText);
  if (!tokens.ok()) return Annotate(tokens.status(), "--data");
  DISTRO_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::Open(options.data));
  DISTRO_ASSIGN_OR_RETURN(
      const DataSplit split,
      SplitSamples(tokens->tokens(), options.sequence_length, options.held_out_fraction));
  const int64_t border = split.training_samples * options.sequence_length;
  const int64_t end = border + split.held_out_samples * options.sequence_length + 1;
  DISTRO_ASSIGN_OR_RETURN(const TextFloor floor,
                          ComputeTextFloor(text.bytes().substr(0, border + 1),
                                           text.bytes().substr(border, end - border)));
  return absl::StrFormat("byte frequencies  %.4f nats a byte\nbyte bigrams      %.4f nats a byte",
                         floor.byte_entropy, floor.bigram_cross_entropy);
}

}  // namespace distro::worker
