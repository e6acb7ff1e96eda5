// The trainable tensors of a PyTorch module, in the order of a run's manifest: where their elements
// and those of their gradients are. The module stays their owner; whoever changes their storage
// behind this object's back is told at the next call.
//
//   DISTRO_ASSIGN_OR_RETURN(ModuleTensors module, ModuleTensors::Create(names, parameters));
//   module.manifest();                     // what the run must have
//   module.Elements(); module.Gradients();  // f32, as they lie
//
// Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/manifest.h"
#include "worker/optimizer/update_rule.h"
#include "worker/torch/torch.h"

namespace distro::worker {

class ModuleTensors {
 public:
  // Tied tensors once. InvalidArgument: what Manifest::Create refuses, or a tensor that cannot be
  // trained here as it is: not f32, not on the CPU, not contiguous, not to be trained
  // (requires_grad); names the tensor and the remedy.
  static absl::StatusOr<ModuleTensors> Create(std::vector<std::string> names,
                                              std::vector<at::Tensor> tensors);

  const Manifest& manifest() const { return manifest_; }

  // [tensors], each f32 [elements], until the module's next change. InvalidArgument: as Create, of
  // what the tensors have become since.
  absl::StatusOr<RunSpans> Elements() const;
  // The same of their gradients. One that is missing is made, of zeros; one that is not contiguous
  // becomes so.
  absl::StatusOr<RunSpans> Gradients() const;

 private:
  ModuleTensors(Manifest manifest, std::vector<at::Tensor> tensors)
      : manifest_(std::move(manifest)), tensors_(std::move(tensors)) {}

  Manifest manifest_;
  std::vector<at::Tensor> tensors_;  // in its order
};

}  // namespace distro::worker
