// For programs that time kernels on a GPU: device arrays, and the time of an operation as a line of
// JSON. An error ends the program.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/random.h"

namespace distro::bench {

inline constexpr int kWarmUps = 3, kRepetitions = 11;

inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "GPU: %s\n", cudaGetErrorString(error));
  std::exit(1);
}
inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "GPU: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename T>
T* Allocate(int64_t count) {
  void* data = nullptr;
  Check(cudaMalloc(&data, count * sizeof(T)));
  return static_cast<T*>(data);
}
template <typename T>
T* Upload(const std::vector<T>& host) {
  T* data = Allocate<T>(static_cast<int64_t>(host.size()));
  Check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return data;
}

// Random bits repeated over an array: what matters to the time is that coefficients differ.
inline float* RandomArray(uint64_t seed, int64_t count) {
  constexpr int64_t kPeriod = 16 << 20;
  std::vector<float> some;
  for (int64_t i = 0; i < std::min(count, kPeriod); ++i) {
    some.push_back(static_cast<float>(static_cast<int64_t>(SplitMix64(seed, i)) * 0x1p-63));
  }
  float* data = Allocate<float>(count);
  for (int64_t at = 0; at < count; at += kPeriod) {
    Check(cudaMemcpy(data + at, some.data(), std::min(kPeriod, count - at) * sizeof(float),
                     cudaMemcpyHostToDevice));
  }
  return data;
}

class Timer {
 public:
  Timer() {
    Check(cudaStreamCreate(&stream_));
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
  }
  cudaStream_t stream() const { return stream_; }

  // Reports an operation that enqueues on the stream. `bytes`: bytes that must move per parameter.
  void Report(const std::string& name, int64_t parameters, double bytes,
              const std::function<void()>& operation) {
    for (int i = 0; i < kWarmUps; ++i) operation();
    std::vector<float> times(kRepetitions);
    for (float& time : times) {
      Check(cudaEventRecord(begin_, stream_));
      operation();
      Check(cudaEventRecord(end_, stream_));
      Check(cudaEventSynchronize(end_));
      Check(cudaEventElapsedTime(&time, begin_, end_));
    }
    std::sort(times.begin(), times.end());
    std::printf(
        "{\"name\": \"%s\", \"parameters\": %lld, \"bytes\": %.3f, \"median_ms\": %.4f, "
        "\"least_ms\": %.4f}\n",
        name.c_str(), static_cast<long long>(parameters), bytes, times[kRepetitions / 2],
        times.front());
    std::fflush(stdout);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace distro::bench
