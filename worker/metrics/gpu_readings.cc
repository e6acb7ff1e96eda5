#include "worker/metrics/gpu_readings.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace distro::worker {
namespace {

constexpr unsigned int kMaxGpus = 64;

// Of nvml.h, whose binary interface is kept from version to version.
using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned int gpu, memory;  // percent
};

}  // namespace

struct GpuReader::Library {
  explicit Library(void* opened) : handle(opened) {}
  ~Library() {
    if (started) shutdown();
    dlclose(handle);
  }

  template <typename F>
  bool Find(const char* name, F** function) {
    *function = reinterpret_cast<F*>(dlsym(handle, name));
    return *function != nullptr;
  }
  bool FindAll() {
    return Find("nvmlInit_v2", &init) && Find("nvmlShutdown", &shutdown) &&
           Find("nvmlDeviceGetCount_v2", &count) &&
           Find("nvmlDeviceGetHandleByIndex_v2", &device) &&
           Find("nvmlDeviceGetMemoryInfo", &memory) &&
           Find("nvmlDeviceGetUtilizationRates", &utilization);
  }

  void* const handle;
  bool started = false;
  // Each returns 0 when it succeeded.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*device)(unsigned int, Device*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
};

std::unique_ptr<GpuReader> GpuReader::Open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto loaded = std::make_unique<Library>(handle);
  if (!loaded->FindAll() || loaded->init() != 0) return nullptr;
  loaded->started = true;
  return std::unique_ptr<GpuReader>(new GpuReader(std::move(loaded)));
}

GpuReader::GpuReader(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuReader::~GpuReader() = default;

std::vector<GpuReading> GpuReader::Read() const {
  std::vector<GpuReading> readings;
  unsigned int count = 0;
  if (library_->count(&count) != 0) return readings;
  for (unsigned int i = 0; i < std::min(count, kMaxGpus); ++i) {
    Device device = nullptr;
    if (library_->device(i, &device) != 0) continue;
    GpuReading& reading = readings.emplace_back(GpuReading{.index = i});
    if (Memory memory{}; library_->memory(device, &memory) == 0) {
      reading.memory_used_bytes = memory.used;
      reading.memory_total_bytes = memory.total;
    }
    if (Utilization utilization{}; library_->utilization(device, &utilization) == 0)
      reading.utilization = 0.01 * utilization.gpu;
  }
  return readings;
}

}  // namespace distro::worker
