// Strict JSON (RFC 8259) from bytes that may be hostile, without exceptions.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace distro {

inline constexpr int kMaxJsonDepth = 64;

// The value. InvalidArgument, with the offset or the key: not JSON, not UTF-8, a repeated key in an
// object, nesting beyond kMaxJsonDepth; or what the text is instead, if it is known
// (foreign_file.h). The caller bounds the size of `text`; the value takes up to
// about 20 times as much memory.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

// Text that ParseJson reads back as the same value, indented by two spaces, with a newline at the
// end. Strings that are not UTF-8 get U+FFFD for the bad bytes.
std::string WriteJson(const nlohmann::json& value);

}  // namespace distro
