// Helpers for launching kernels: launches, statuses, checks of shapes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "kernels/block_site.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/tensor_table.h"

namespace distro::cuda {

inline absl::Status StatusOfCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // or the next launch would report it as its own
  return absl::InternalError(std::string(what) + ": " + cudaGetErrorName(error) + ": " +
                             cudaGetErrorString(error));
}

inline constexpr int kGroupsPerMultiprocessor = 16;  // more than run at once, so that none waits

// Number of thread groups for `tasks` on the current device, on which every launch is; a group can
// do several tasks, one after another. 0 if the device does not respond: the launch then fails with
// the reason.
inline unsigned GridFor(int64_t tasks) {
  int device = 0, multiprocessors = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess) {
    return 0;
  }
  return static_cast<unsigned>(
      std::min<int64_t>(tasks, int64_t{multiprocessors} * kGroupsPerMultiprocessor));
}

// Enqueues kernel(arguments...) on groups of `threads` threads for `tasks` > 0 tasks.
template <typename... Parameters>
absl::Status Launch(const char* what, void (*kernel)(Parameters...), int64_t tasks, int threads,
                    Stream stream, const std::type_identity_t<Parameters>&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim.x = GridFor(tasks);
  config.blockDim.x = static_cast<unsigned>(threads);
  config.stream = stream;
  cudaLaunchKernelEx(&config, kernel, arguments...);
  return StatusOfCuda(cudaGetLastError(), what);
}

// Calls launch(table) for tables of all tensors whose matrix has_blocks is true for.
template <typename Tensor, typename Launcher>
absl::Status LaunchTables(absl::Span<const Tensor> tensors, bool (*has_blocks)(const MatrixShape&),
                          const Launcher& launch) {
  TensorTable<Tensor> table;
  for (const Tensor& tensor : tensors) {
    if (tensor.blocks.count == 0 || !has_blocks(tensor.matrix)) continue;
    table.Add(tensor);
    if (table.count < kTableTensors) continue;
    DISTRO_RETURN_IF_ERROR(launch(table));
    table = {};
  }
  return table.count == 0 ? absl::OkStatus() : launch(table);
}

// Launches a kernel's version for whole blocks and the one for edges (block.h), each if the matrix
// may have such blocks.
template <typename Arguments>
absl::Status LaunchVersions(const char* what, void (*whole)(Arguments), void (*edges)(Arguments),
                            const Arguments& arguments, Stream stream) {
  const int64_t blocks = arguments.blocks.count;
  if (blocks > 0 && MayHaveWholeBlocks(arguments.matrix))
    DISTRO_RETURN_IF_ERROR(Launch(what, whole, blocks, kThreads, stream, arguments));
  if (blocks > 0 && MayHaveEdges(arguments.matrix))
    return Launch(what, edges, blocks, kThreads, stream, arguments);
  return absl::OkStatus();
}

inline void CheckRange(const MatrixShape& matrix, BlockRange blocks) {
  CheckBlocks(matrix, blocks, static_cast<size_t>(matrix.elements));
  CheckShape(matrix.Blocks() < (int64_t{1} << 31), "the matrix has 2^31 blocks or more");
}

}  // namespace distro::cuda
