#include "tools/archiver/published_folders.h"

#include <filesystem>
#include <system_error>

#include "common/model/checkpoint/round_folders.h"

namespace distro::tools {

std::string PublishedPath(const PublishOptions& options, RoundId round) {
  return RoundFolder(options.dir, round);
}

absl::Status Publish(const PublishOptions& options, const Replica& replica,
                     const std::string& config_json, const Companions& companions) {
  if (options.dir.empty()) return absl::OkStatus();
  const TensorPieces parameters = PiecesOf(replica.parameters());
  return WriteRoundFolder(options.dir, {.round = replica.next_round(),
                                        .config_json = &config_json,
                                        .layout = &replica.layout(),
                                        .tensors = &parameters,
                                        .companions = &companions});
}

bool IsPublished(const PublishOptions& options, RoundId round) {
  std::error_code ignored;
  return std::filesystem::exists(PublishedPath(options, round), ignored);
}

}  // namespace distro::tools
