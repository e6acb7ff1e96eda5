// The entropy of held-out text under the simplest models of the training text: the floors below
// which a trained byte model must get. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro::worker {

// Nats per predicted byte: mean of -ln P over held_out[1..], because held_out[0] is given and not
// predicted.
struct TextFloor {
  // P(b) = (n(b) + 1) / (n + 256): the bytes' frequencies in the training text.
  double byte_entropy = 0;
  // P(b after a) = (n(a, b) + 1) / (n(a, any) + 256), neighbours in the training text.
  double bigram_cross_entropy = 0;
};

// InvalidArgument: held_out has fewer than two bytes.
absl::StatusOr<TextFloor> ComputeTextFloor(absl::string_view training, absl::string_view held_out);

}  // namespace distro::worker
