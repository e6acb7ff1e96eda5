#include "common/model/checkpoint/round_folders.h"

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
#include "common/model/checkpoint/hf_folder.h"

namespace distro {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kFolder = "round-";
// RemoveFolder gives a folder this name before it removes it.
constexpr absl::string_view kRemoved = ".removed";

struct RoundFolders {
  std::vector<std::pair<uint64_t, fs::path>> whole;  // newest first
  std::vector<fs::path> halves;                      // that a process did not finish
};

// `whole` are those of rounds up to `last`.
RoundFolders List(const std::string& dir, RoundId last) {
  RoundFolders folders;
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(dir);
  if (!names.ok()) return folders;
  for (const std::string& name : *names) {
    absl::string_view digits = name;
    const bool half =
        absl::ConsumeSuffix(&digits, kRemoved) || absl::ConsumeSuffix(&digits, kHalfWrittenFolder);
    uint64_t round = 0;
    if (!absl::ConsumePrefix(&digits, kFolder) || !absl::SimpleAtoi(digits, &round) ||
        absl::StrCat(round) != digits) {
      continue;
    }
    if (half) {
      folders.halves.push_back(fs::path(dir) / name);
    } else if (round <= last.value()) {
      folders.whole.emplace_back(round, fs::path(dir) / name);
    }
  }
  std::sort(folders.whole.begin(), folders.whole.end(), std::greater<>());
  return folders;
}

}  // namespace

std::string RoundFolder(absl::string_view dir, RoundId round) {
  return absl::StrCat(dir, "/", kFolder, round.value());
}

absl::Status WriteRoundFolder(const std::string& dir, const RoundCheckpoint& checkpoint) {
  DISTRO_RETURN_IF_ERROR(CreateFolders(dir));
  std::error_code ignored;
  for (const fs::path& half : List(dir, checkpoint.round).halves) fs::remove_all(half, ignored);
  return WriteCheckpointFolder(RoundFolder(dir, checkpoint.round), *checkpoint.config_json,
                               *checkpoint.layout, *checkpoint.tensors, *checkpoint.companions);
}

absl::Status RemoveOldRoundFolders(const std::string& dir, RoundId newest, int keep,
                                   std::optional<RoundId> in_use) {
  if (keep <= 0) return absl::OkStatus();
  absl::Status first;
  const RoundFolders folders = List(dir, newest);
  for (size_t i = keep; i < folders.whole.size(); ++i) {
    const auto& [round, path] = folders.whole[i];
    if (in_use != RoundId(round)) first.Update(RemoveFolder(path));
  }
  return first;
}

}  // namespace distro
