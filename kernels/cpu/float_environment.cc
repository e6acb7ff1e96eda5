#include "kernels/cpu/float_environment.h"

namespace distro {

DefaultFloatEnvironment::DefaultFloatEnvironment() {
  std::fegetenv(&callers_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() { std::fesetenv(&callers_); }

}  // namespace distro
