#include "kernels/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

// The device's answer to an operation: one word there, read when the stream is done.
class DeviceWord {
 public:
  explicit DeviceWord(Stream stream) : stream_(stream) {}
  absl::Status Allocate() { return word_.Reserve(sizeof(uint64_t)); }
  uint64_t* Set(int byte) {
    CheckCuda(cudaMemsetAsync(word_.data(), byte, sizeof(uint64_t), stream_), "memset");
    return static_cast<uint64_t*>(word_.data());
  }
  uint64_t Read() const {
    uint64_t value = 0;
    CheckCuda(cudaMemcpyAsync(&value, word_.data(), sizeof(value), cudaMemcpyDeviceToHost, stream_),
              "copy from the device");
    CheckCuda(cudaStreamSynchronize(stream_), "synchronise");
    return value;
  }

 private:
  Stream stream_;
  DeviceBuffer word_;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(Stream stream) : stream_(stream), word_(stream) {}
  absl::Status Allocate() { return word_.Allocate(); }

  void Compress(const MatrixShape& matrix, BlockRange blocks, const CompressOptions& options,
                absl::Span<const float> gradient, absl::Span<float> momentum,
                absl::Span<uint16_t> positions, absl::Span<float> values) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckShape(gradient.size() == momentum.size(), "gradient and momentum differ in size");
    CheckSparse(blocks, options.k, positions.size(), values.size());
    CheckCuda(cuda::Compress({.matrix = matrix,
                              .blocks = blocks,
                              .options = options,
                              .used = {},
                              .gradient = gradient.data(),
                              .momentum = momentum.data(),
                              .positions = positions.data(),
                              .values = values.data()},
                             stream_));
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                absl::Span<const uint16_t> positions, absl::Span<const float> values,
                absl::Span<float> momentum) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckSparse(blocks, k, positions.size(), values.size());
    CheckCuda(
        cuda::Feedback({.matrix = matrix,
                        .blocks = blocks,
                        .used = {.k = k, .positions = positions.data(), .values = values.data()},
                        .momentum = momentum.data()},
                       stream_));
  }

  absl::Status Apply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                     const VotesView& votes, absl::Span<float> parameters) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckShape(votes.offsets.size() == static_cast<size_t>(blocks.count) + 1,
               "vote offsets are not [count + 1]");
    auto* invalid = reinterpret_cast<uint32_t*>(word_.Set(0xFF));
    DISTRO_RETURN_IF_ERROR(cuda::Apply({.matrix = matrix,
                                        .blocks = blocks,
                                        .options = options,
                                        .offsets = votes.offsets.data(),
                                        .positions = votes.positions.data(),
                                        .values = votes.values.data(),
                                        .parameters = parameters.data(),
                                        .invalid = invalid},
                                       stream_));
    const auto block = static_cast<uint32_t>(word_.Read());
    if (block == kAllVotesValid) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("votes of block ", block,
                     " of the range: positions are not ascending below 4096, or the sum "
                     "of magnitudes exceeds ",
                     kMaxBlockVotes));
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    CheckShape(parameters.size() == out.size() && momentum.size() == out.size(),
               "lookahead arrays differ in size");
    CheckCuda(cuda::Lookahead(eta, parameters.data(), momentum.data(), out.data(),
                              static_cast<int64_t>(out.size()), stream_));
  }

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) override {
    uint64_t* sum = word_.Set(0);
    CheckCuda(cuda::StateHash(first_index, parameters.data(),
                              static_cast<int64_t>(parameters.size()), sum, stream_));
    return word_.Read();
  }

  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) override {
    CheckBlocks(matrix, {}, gradient.size());
    const int64_t rows = matrix.BlocksDown(), pieces = SquaresWorkspace(matrix);
    CheckCuda(squares_.Reserve((rows + pieces) * sizeof(double)));
    auto* row_sums = static_cast<double*>(squares_.data());
    CheckCuda(cuda::SumOfSquares(matrix, gradient.data(), row_sums + rows, row_sums, stream_));
    std::vector<double> sums(rows);
    CheckCuda(cudaMemcpyAsync(sums.data(), row_sums, rows * sizeof(double), cudaMemcpyDeviceToHost,
                              stream_),
              "copy from the device");
    CheckCuda(cudaStreamSynchronize(stream_), "synchronise");
    double total = 0;
    for (double sum : sums) total += sum;
    return total;
  }

 private:
  Stream stream_;
  DeviceWord word_;
  DeviceBuffer squares_;
};

}  // namespace

int DeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error == cudaSuccess ? count : 0;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(Stream stream) {
  auto backend = std::make_unique<CudaBackend>(stream);
  DISTRO_RETURN_IF_ERROR(backend->Allocate());
  return backend;
}

}  // namespace distro::cuda
