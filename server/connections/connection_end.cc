#include "server/connections/connection_end.h"

namespace distro::server {

absl::string_view ConnectionEndName(ConnectionEnd end) {
  switch (end) {
    case ConnectionEnd::kFull:
      return "full";
    case ConnectionEnd::kRate:
      return "rate";
    case ConnectionEnd::kNoCredential:
      return "no_credential";
    case ConnectionEnd::kAnonymousBytes:
      return "anonymous_bytes";
    case ConnectionEnd::kMadeRoom:
      return "made_room";
    case ConnectionEnd::kNewerOfCredential:
      return "newer_of_credential";
    case ConnectionEnd::kCalls:
      return "calls";
    case ConnectionEnd::kOverhead:
      return "overhead";
  }
  return "";
}

}  // namespace distro::server
