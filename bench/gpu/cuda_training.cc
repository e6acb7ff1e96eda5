// Times forward and backward of a model on one GPU as a worker runs them: f32 master parameters, a
// bf16 copy that computes, gradients summed in f32. No optimizer, as in reference.py, whose line of
// JSON has the same fields.
//
//   gpu_training CONFIG.json SEQUENCES POSITIONS
//
// Exit status 3: no GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/random.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "kernels/cuda/cuda_backend.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/fsdp/unit_driver.h"
#include "worker/model/model.h"
#include "worker/model/unit.h"
#include "worker/torch/torch.h"

namespace distro::worker {
namespace {

constexpr int kWarmUps = 3, kRepetitions = 7;
constexpr int kSegmentBlocks = 16384;

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "gpu_training: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}
void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status);
}
template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int32_t> RandomTokens(int64_t count, int vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(SplitMix64(1, static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

// Seconds of each step, the warm-ups first.
std::vector<double> Run(std::shared_ptr<const Architecture> architecture, int sequences,
                        int positions) {
  const Layout layout =
      Value(Layout::Create(Value(Manifest::Create(architecture->Tensors())), kSegmentBlocks));
  const std::unique_ptr<Model> model = Value(Model::Create(architecture, layout));
  const ShardPlan plan =
      Value(ShardPlan::Create(layout, UnitTensors(*architecture, layout.manifest()), 1));
  auto communicators = MakeThreadGroup(1, {})->TakeCommunicators();
  MemoryCounter memory;
  const at::Device device(at::kCUDA, 0);
  const FsdpOptions options = {.param_dtype = FloatType::kBf16};
  UnitDriver driver(options, device,
                    {.model = model.get(),
                     .shards = &plan,
                     .whole = &plan,
                     .communicator = communicators[0].get(),
                     .memory = &memory,
                     .pins_host_memory = true});
  const auto f32 = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor parameters = at::zeros({driver.parameter_elements()}, f32).normal_(0, 0.02);
  const at::Tensor gradient = at::zeros({driver.gradient_elements()}, f32);
  const std::vector<int32_t> tokens =
      RandomTokens(int64_t{sequences} * (positions + 1), architecture->sizes().vocab_size);
  const TokenBatch batch = {.tokens = tokens, .sequences = sequences};
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUps + kRepetitions; ++i) {
    const double begin = Now();
    Value(driver.Gradient(&batch, parameters, Accumulation::kStore, gradient));
    Check(driver.FinishGradient(gradient));
    if (cudaDeviceSynchronize() != cudaSuccess) Fail(absl::InternalError("CUDA failed"));
    seconds.push_back(Now() - begin);
  }
  return seconds;
}

int Main(const std::string& config_path, int sequences, int positions) {
  if (cuda::DeviceCount() == 0) {
    std::fprintf(stderr, "gpu_training: no GPU\n");
    return 3;
  }
  const std::shared_ptr<const Architecture> architecture =
      Value(ParseModelConfig(Value(ReadFile(config_path))));
  std::vector<double> seconds;
  Check(CatchTorch("training", [&] {
    seconds = Run(architecture, sequences, positions);
    return absl::OkStatus();
  }));
  const double first = seconds.front();
  std::sort(seconds.begin() + kWarmUps, seconds.end());
  const double median = seconds[kWarmUps + kRepetitions / 2];
  std::printf(
      "{\"name\": \"distro\", \"tokens_per_second\": %.1f, \"median_ms\": %.3f, "
      "\"first_step_seconds\": %.3f}\n",
      sequences * positions / median, median * 1000, first);
  return 0;
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpu_training CONFIG.json SEQUENCES POSITIONS\n");
    return 2;
  }
  return distro::worker::Main(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
