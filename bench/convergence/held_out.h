// The held-out loss of parameters, by which the lab compares all methods. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/layout/tensor_buffer.h"
#include "distro/v1/run.pb.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

class HeldOut {
 public:
  // Everything is borrowed.
  HeldOut(const v1::RunConfig* config, const SampleReader* samples, const Model* model)
      : config_(*config), samples_(*samples), model_(*model) {}

  // Mean over the run's evaluation_samples, samples_per_worker at a time.
  absl::StatusOr<double> Loss(const TensorBuffer& parameters);

 private:
  const v1::RunConfig& config_;
  const SampleReader& samples_;
  const Model& model_;
  std::vector<int32_t> tokens_;
};

}  // namespace distro::worker
