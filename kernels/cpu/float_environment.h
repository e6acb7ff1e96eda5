// The default floating-point environment for a scope: rounding to nearest, denormals kept, no traps. The exact
// operations open one, so that what the calling thread has set cannot reach a replica's bits; the caller's own
// environment comes back at the end.
//
// The compiler knows nothing of this environment: arithmetic inside the scope must sit behind a call into another
// source file, or it may be moved out.
#pragma once

#include <cfenv>

namespace distro {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment();
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace distro
