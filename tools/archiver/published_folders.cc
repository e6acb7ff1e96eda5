#include "tools/archiver/published_folders.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/hf_folder.h"

namespace distro::tools {
namespace {

namespace fs = std::filesystem;

// Folders of rounds up to `last`, newest first.
std::vector<std::pair<uint64_t, fs::path>> List(const std::string& dir, RoundId last) {
  std::vector<std::pair<uint64_t, fs::path>> folders;
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(dir);
  if (!names.ok()) return folders;
  for (const std::string& name : *names) {
    absl::string_view digits = name;
    uint64_t round = 0;
    if (absl::ConsumePrefix(&digits, "round-") && absl::SimpleAtoi(digits, &round) &&
        absl::StrCat("round-", round) == name && round <= last.value()) {
      folders.emplace_back(round, fs::path(dir) / name);
    }
  }
  std::sort(folders.begin(), folders.end(), std::greater<>());
  return folders;
}

}  // namespace

std::string PublishedPath(const PublishOptions& options, RoundId round) {
  return absl::StrCat(options.dir, "/round-", round.value());
}

absl::Status Publish(const PublishOptions& options, const Replica& replica,
                     const std::string& config_json, const Companions& companions,
                     std::optional<RoundId> in_use) {
  if (options.dir.empty()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(CreateFolders(options.dir));
  const RoundId round = replica.next_round();
  DISTRO_RETURN_IF_ERROR(WriteCheckpointFolder(PublishedPath(options, round), config_json,
                                               replica.layout(), replica.parameters(), companions));
  const std::vector<std::pair<uint64_t, fs::path>> folders = List(options.dir, round);
  for (size_t i = options.keep; options.keep > 0 && i < folders.size(); ++i) {
    if (in_use != RoundId(folders[i].first))
      DISTRO_RETURN_IF_ERROR(RemoveFolder(folders[i].second));
  }
  return absl::OkStatus();
}

bool IsPublished(const PublishOptions& options, RoundId round) {
  std::error_code ignored;
  return fs::exists(PublishedPath(options, round), ignored);
}

}  // namespace distro::tools
