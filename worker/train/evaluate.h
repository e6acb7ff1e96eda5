// Loss on the samples that are never trained on. Stateless.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_buffer.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// Mean loss, nats a token, of the first `max_samples` held-out samples (0: of all), `batch_samples` at a time.
// InvalidArgument: there is no held-out sample. The status of `goes_on`, which is asked before every batch, when it is not
// OK. Other errors: as Model.
absl::StatusOr<double> EvaluateHeldOut(const Model& model, const SampleReader& samples,
                                       const TensorBuffer& parameters, uint64_t max_samples,
                                       int batch_samples,
                                       absl::FunctionRef<absl::Status()> goes_on);

}  // namespace distro::worker
