#include "common/client/probe/greeting.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kMaxSettings = 64;
constexpr size_t kExcerptBytes = 40;

unsigned char Byte(absl::string_view bytes, size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

// Length (3 bytes), type 4, no flags, stream 0; the length is a multiple of a setting's 6 bytes.
bool IsSettings(absl::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) return false;
  const size_t length = Byte(bytes, 0) << 16 | Byte(bytes, 1) << 8 | Byte(bytes, 2);
  return length % 6 == 0 && length <= 6 * kMaxSettings && Byte(bytes, 3) == 4 &&
         bytes.substr(4, 5) == absl::string_view("\0\0\0\0\0", 5);
}

// An alert or a handshake, of any version 3.x.
bool IsTlsRecord(absl::string_view bytes) {
  return bytes.size() >= 3 && (Byte(bytes, 0) == 21 || Byte(bytes, 0) == 22) &&
         Byte(bytes, 1) == 3 && Byte(bytes, 2) <= 4;
}

}  // namespace

Greeting GreetingOf(absl::string_view first_bytes) {
  if (IsTlsRecord(first_bytes)) return Greeting::kTls;
  if (absl::StartsWith(first_bytes, "HTTP/1.")) return Greeting::kHttp1;
  if (IsSettings(first_bytes)) return Greeting::kHttp2;
  return first_bytes.size() < 3 ? Greeting::kNothing : Greeting::kOther;
}

std::string Excerpt(absl::string_view first_bytes) {
  const absl::string_view shown = first_bytes.substr(0, kExcerptBytes);
  return ShownText(shown.substr(0, shown.find_first_of("\r\n")));
}

absl::string_view Http2Preface() {
  static constexpr char kPreface[] =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
      "\0\0\0\4\0\0\0\0\0";
  return absl::string_view(kPreface, sizeof(kPreface) - 1);
}

}  // namespace distro
