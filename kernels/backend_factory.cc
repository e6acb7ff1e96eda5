#include "kernels/backend.h"

namespace distro {

std::unique_ptr<Backend> MakeCpuBackend() { return MakeReferenceBackend(); }

}  // namespace distro
