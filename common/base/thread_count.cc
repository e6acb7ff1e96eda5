#include "common/base/thread_count.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"

namespace distro {
namespace {

// With 32 a core a step of a tiny model takes twice as long, with 500 it does not end.
constexpr int kMostOfACore = 32;
constexpr int kMost = 1024;

}  // namespace

absl::Status CheckThreads(absl::string_view flag, int count, int least) {
  const int most = std::min(kMost, kMostOfACore * Cores());
  if (count >= least && count <= most) return absl::OkStatus();
  std::string message = absl::StrCat(flag, ": ", count, " is outside ", least, "..", most);
  if (count > most && most < kMost) {
    absl::StrAppend(&message, ", ", kMostOfACore, " for each of this machine's ", Cores(),
                    " processors: more only wait for each other");
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace distro
