#include "worker/fingerprint_command.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_util.h"
#include "worker/data/token_file.h"

namespace distro::worker {

absl::StatusOr<std::string> DataFingerprint(const FingerprintOptions& options) {
  if (options.data.empty()) return absl::InvalidArgumentError("--data: is required, a token file");
  const absl::StatusOr<TokenFormat> format = ParseTokenFormat(options.data_format);
  if (!format.ok()) return Annotate(format.status(), "--data_format");
  const absl::StatusOr<TokenSource> tokens = OpenTokens(options.data, *format);
  if (!tokens.ok()) return Annotate(tokens.status(), "--data");
  return absl::StrCat(tokens->Fingerprint(), "  ", tokens->tokens(), " tokens  ", options.data);
}

}  // namespace distro::worker
