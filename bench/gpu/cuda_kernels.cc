// Times the operations of kernels/cuda over all tensors of a model on one GPU, with one launch per
// tensor, and for Compress one for 48 tensors, as in a worker.
//
//   gpu_kernels examples/llama_1b2/config.json
//
// Prints a line of JSON for each operation: milliseconds (median and least of the repetitions),
// bytes that must move per parameter. The first line is a device-to-device copy: the bandwidth of
// the card. Exit status 3: no GPU.
#include "kernels/cuda/cuda_kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/gpu/cuda_deltas.h"
#include "bench/gpu/timed_kernels.h"
#include "common/base/file.h"
#include "common/base/random.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "kernels/cuda/cuda_backend.h"

namespace distro::bench {
namespace {

constexpr int kSegmentBlocks = 16384;

// All arrays of a worker, one tensor after the other; sparse ones one block after the other.
class Bench {
 public:
  explicit Bench(const Layout& layout)
      : layout_(layout),
        n_(layout.elements()),
        gradient_(RandomArray(1, n_)),
        momentum_(RandomArray(2, n_)),
        parameters_(RandomArray(3, n_)) {
    int64_t at = 0;
    for (const TensorLayout& tensor : layout.tensors()) {
      starts_.push_back(at);
      at += tensor.matrix.elements;
    }
  }

  void Run() {
    timer_.Report("copy", n_, 8, [&] {
      Check(cudaMemcpyAsync(gradient_, parameters_, n_ * sizeof(float), cudaMemcpyDeviceToDevice,
                            timer_.stream()));
    });
    for (int k : {4, 32}) RunCompress(k);
    for (int entries : {16, 128, 1024}) RunApply(entries);
    RunElementwise();
    TimeDeltas(layout_, {.begin = parameters_, .x = momentum_, .error = gradient_}, &timer_);
  }

 private:
  template <typename F>
  void EachTensor(const F& f) {
    for (size_t i = 0; i < layout_.tensors().size(); ++i) f(layout_.tensors()[i], starts_[i]);
  }
  static BlockRange All(const TensorLayout& tensor) {
    return {.first = 0, .count = tensor.matrix.Blocks()};
  }

  void RunCompress(int k) {
    auto* positions = Allocate<uint16_t>(layout_.blocks() * k);
    auto* values = Allocate<float>(layout_.blocks() * k);
    const SignCompressOptions options = {.beta = 0.999f, .eta = 4e-4f, .gradient_scale = 1, .k = k};
    const std::string suffix = " k=" + std::to_string(k);
    std::vector<cuda::CompressSignsTensor> tensors;
    EachTensor([&](const TensorLayout& tensor, int64_t start) {
      tensors.push_back({.matrix = tensor.matrix,
                         .blocks = All(tensor),
                         .gradient = gradient_ + start,
                         .momentum = momentum_ + start,
                         .positions = positions + tensor.first_block * k,
                         .values = values + tensor.first_block * k});
    });
    timer_.Report("compress" + suffix, n_, 12,
                  [&] { Check(cuda::Compress(options, tensors, timer_.stream())); });
    timer_.Report("feedback" + suffix, n_, 8, [&] {
      EachTensor([&](const TensorLayout& tensor, int64_t start) {
        Check(cuda::Feedback({.matrix = tensor.matrix,
                              .blocks = All(tensor),
                              .pending = {.k = k,
                                          .positions = positions + tensor.first_block * k,
                                          .values = values + tensor.first_block * k},
                              .momentum = momentum_ + start},
                             timer_.stream()));
      });
    });
    Check(cudaFree(positions));
    Check(cudaFree(values));
  }

  void RunApply(int entries) {
    std::vector<uint32_t> offsets = {0};
    std::vector<uint16_t> positions;
    std::vector<int16_t> values;
    const int step = kBlockElements / entries;
    for (int64_t b = 0; b < layout_.blocks(); ++b) {
      for (int i = 0; i < entries; ++i) {
        const uint64_t random = SplitMix64(7, static_cast<uint64_t>(b * entries + i));
        positions.push_back(static_cast<uint16_t>(
            i * step + static_cast<int>(random % static_cast<uint64_t>(step))));
        values.push_back(random >> 63 ? 1 : -1);
      }
      offsets.push_back(static_cast<uint32_t>(positions.size()));
    }
    uint32_t* device_offsets = Upload(offsets);
    uint16_t* device_positions = Upload(positions);
    int16_t* device_values = Upload(values);
    uint32_t* invalid = Upload(std::vector<uint32_t>{kAllBlocksValid});
    const double bytes = 8 + 4.0 * (entries + 1) / kBlockElements;
    timer_.Report("apply " + std::to_string(entries) + " votes", n_, bytes, [&] {
      EachTensor([&](const TensorLayout& tensor, int64_t start) {
        const int64_t first = offsets[tensor.first_block];
        Check(cuda::Apply({.matrix = tensor.matrix,
                           .blocks = All(tensor),
                           .options = {.eta = 4e-4f, .eta_lambda = 4e-5f},
                           .offsets = device_offsets + tensor.first_block,
                           .positions = device_positions + first,
                           .values = device_values + first,
                           .parameters = parameters_ + start,
                           .invalid = invalid},
                          timer_.stream()));
      });
    });
    for (void* array :
         std::initializer_list<void*>{device_offsets, device_positions, device_values, invalid})
      Check(cudaFree(array));
  }

  void RunElementwise() {
    auto* out = Allocate<float>(n_);
    auto* sum = Upload(std::vector<uint64_t>{0});
    timer_.Report("lookahead", n_, 12, [&] {
      Check(cuda::Lookahead(4e-4f, parameters_, momentum_, out, n_, timer_.stream()));
    });
    timer_.Report("state hash", n_, 4, [&] {
      EachTensor([&](const TensorLayout& tensor, int64_t start) {
        Check(
            cuda::StateHash(0, parameters_ + start, tensor.matrix.elements, sum, timer_.stream()));
      });
    });
    int64_t workspace = 0, rows = 0;
    EachTensor([&](const TensorLayout& tensor, int64_t) {
      workspace = std::max(workspace, cuda::SquaresWorkspace(tensor.matrix));
      rows = std::max(rows, tensor.matrix.BlocksDown());
    });
    auto* pieces = Allocate<double>(workspace);
    auto* row_sums = Allocate<double>(rows);
    timer_.Report("sum of squares", n_, 4, [&] {
      EachTensor([&](const TensorLayout& tensor, int64_t start) {
        Check(cuda::SumOfSquares(tensor.matrix, gradient_ + start, pieces, row_sums,
                                 timer_.stream()));
      });
    });
  }

  const Layout& layout_;
  const int64_t n_;
  Timer timer_;
  float* const gradient_;
  float* const momentum_;
  float* const parameters_;
  std::vector<int64_t> starts_;
};

int Main(const std::string& config_path) {
  if (cuda::DeviceCount() == 0) {
    std::fprintf(stderr, "gpu_kernels: no GPU\n");
    return 3;
  }
  const absl::StatusOr<std::string> json = ReadFile(config_path);
  Check(json.status());
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(*json);
  Check(model.status());
  absl::StatusOr<Manifest> manifest = Manifest::Create((*model)->Tensors());
  Check(manifest.status());
  const absl::StatusOr<Layout> layout = Layout::Create(*std::move(manifest), kSegmentBlocks);
  Check(layout.status());
  Bench(*layout).Run();
  return 0;
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_kernels CONFIG.json\n");
    return 2;
  }
  return distro::bench::Main(argv[1]);
}
