// `distro-worker text-floor`: the losses that a trained byte model has to get below.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace distro::worker {

struct TextFloorOptions {
  // UTF-8 text. Required.
  std::string data;
  // As the run has them: they say which part of the text is held out.
  int sequence_length = 128;
  double held_out_fraction = 0.05;
};

// Two lines: the held-out text's nats a byte under the byte frequencies, and under a byte-bigram model, of the training
// text. InvalidArgument: not text, or too little of it.
absl::StatusOr<std::string> TextFloorReport(const TextFloorOptions& options);

}  // namespace distro::worker
