#include "worker/local_identity.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_util.h"

namespace distro::worker {
namespace {

// The host's name in the alphabet of worker names and a suffix that keeps workers of one host
// apart.
std::string DefaultName() {
  char host[256] = "worker";
  gethostname(host, sizeof(host) - 1);
  std::string name;
  for (const char c : absl::string_view(host).substr(0, 54)) {
    name.push_back(absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '-');
  }
  return absl::StrCat(name, "-", absl::Hex(RandomWord() & 0xffffffff, absl::kZeroPad8));
}

}  // namespace

absl::StatusOr<LocalIdentity> OpenLocalIdentity(const WorkerOptions& options, Log* log) {
  LocalIdentity identity{.name = options.name.empty() ? DefaultName() : options.name,
                         .state = nullptr};
  if (options.state_dir.empty()) return identity;
  absl::StatusOr<std::unique_ptr<StateDir>> state = StateDir::Open(options.state_dir, log);
  if (!state.ok()) return Annotate(state.status(), "--state_dir");
  identity.state = *std::move(state);
  if (!options.name.empty()) return identity;
  absl::StatusOr<std::string> kept = identity.state->KeepName(identity.name);
  if (!kept.ok()) return Annotate(kept.status(), "--state_dir");
  identity.name = *std::move(kept);
  return identity;
}

}  // namespace distro::worker
