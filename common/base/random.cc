#include "common/base/random.h"

#include <random>

namespace distro {

uint64_t RandomWord() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace distro
