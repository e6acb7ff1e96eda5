#include "server/connections/connection_limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace distro::server {
namespace {

constexpr uint64_t kFilesForOtherThings = 256;

}  // namespace

ConnectionLimits ConnectionLimits::ForOpenFiles(uint64_t open_files) {
  ConnectionLimits limits;
  const uint64_t files = std::min<uint64_t>(open_files, uint64_t{1} << 24);
  limits.connections = static_cast<int>((files - std::min(files, kFilesForOtherThings)) / 2);
  limits.anonymous = std::min(limits.anonymous, limits.connections / 3);
  limits.anonymous_of_address = limits.anonymous / 4;
  const uint64_t at_once = static_cast<uint64_t>(limits.anonymous_of_address) * kConnectionCost;
  limits.address_burst = std::min(limits.address_burst, at_once);
  return limits;
}

uint64_t OpenFilesLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace distro::server
