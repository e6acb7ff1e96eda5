// Loss on the samples that are never trained on. Stateless.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/layout/tensor_buffer.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// Mean loss, nats a token, of the first `max_samples` held-out samples (0: of all), `batch_samples` at a time.
// InvalidArgument: there is no held-out sample. Other errors: as Model.
absl::StatusOr<double> EvaluateHeldOut(const Model& model, const SampleReader& samples,
                                       const TensorBuffer& parameters, uint64_t max_samples,
                                       int batch_samples);

}  // namespace distro::worker
