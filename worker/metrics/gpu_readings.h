// Reads the utilization of the machine's GPUs from the NVIDIA driver's management library (NVML).
// The library is loaded at run time if it exists, so the same worker runs without one. Reads all
// GPUs of the machine, including those used by other processes.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace distro::worker {

struct GpuReading {
  uint32_t index = 0;  // as in nvidia-smi
  // Not set if the driver does not report it.
  std::optional<uint64_t> memory_used_bytes = std::nullopt;
  std::optional<uint64_t> memory_total_bytes = std::nullopt;
  std::optional<double> utilization = std::nullopt;  // share of time in which it computed, 0 to 1
};

class GpuReader {
 public:
  // nullptr: there is no driver, or it does not answer.
  static std::unique_ptr<GpuReader> Open(const std::string& library = "libnvidia-ml.so.1");
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  // Ascending by index, at most 64.
  std::vector<GpuReading> Read() const;

 private:
  struct Library;
  explicit GpuReader(std::unique_ptr<Library> library);
  const std::unique_ptr<Library> library_;
};

}  // namespace distro::worker
