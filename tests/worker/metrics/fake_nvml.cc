// A management library of a driver with three GPUs: the second does not answer, the third tells its
// memory only.
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index + 1));
  return index == 1 ? 999 : 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  const auto gpu = reinterpret_cast<unsigned long>(device);
  memory[0] = 80'000 * gpu;  // total
  memory[1] = 50'000 * gpu;
  memory[2] = 30'000 * gpu;  // used
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int* rates) {
  rates[0] = 75;
  rates[1] = 10;
  return reinterpret_cast<unsigned long>(device) == 3 ? 3 : 0;
}
}
