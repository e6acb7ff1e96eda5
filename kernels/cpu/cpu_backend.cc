#include "kernels/cpu/cpu_backend.h"

namespace distro {

std::vector<VectorKernels> SupportedVectorKernels() {
  std::vector<VectorKernels> supported = {{"vector128", &kTransform128, &kExact128, &kMatrix128}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    supported.push_back({"avx2", &kTransform256, &kExact256, &kMatrix256});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    supported.push_back({"avx512", &kTransform512, &kExact512, &kMatrix512});
  }
#endif
  return supported;
}

std::unique_ptr<Backend> MakeCpuBackend() {
  return MakeVectorBackend(SupportedVectorKernels().back());
}

}  // namespace distro
