#include "common/net/security/token.h"

#include <openssl/rand.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kTokenCharacters = 43;
constexpr uint64_t kMaxFileBytes = 4096;

}  // namespace

absl::StatusOr<std::string> NewToken() {
  unsigned char bytes[kTokenBytes];
  if (RAND_bytes(bytes, kTokenBytes) != 1)
    return absl::InternalError("token: the system gives no random numbers");
  std::string escaped;
  absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<char*>(bytes), kTokenBytes),
                            &escaped);
  return escaped.substr(0, kTokenCharacters);  // without padding, whatever absl adds
}

bool IsToken(absl::string_view text) {
  if (text.size() != kTokenCharacters) return false;
  for (const char c : text)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') return false;
  return true;
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxFileBytes));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  if (!IsToken(token)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": holds no token: one line of 43 characters, as distroctl token new prints it"));
  }
  return std::string(token);
}

}  // namespace distro
