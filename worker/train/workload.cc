#include "worker/train/workload.h"

#include <algorithm>

namespace distro::worker {

bool HasTensorsOf(const v1::JoinResponse& run, const Manifest& manifest) {
  return std::ranges::equal(run.manifest_hash(), manifest.hash(),
                            [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

}  // namespace distro::worker
