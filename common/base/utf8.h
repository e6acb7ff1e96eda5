// UTF-8 as RFC 3629 defines it. Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace distro {

// The length of the longest prefix of `bytes` that is whole, valid characters: bytes.size() when
// all are. Overlong forms, surrogates and values above U+10FFFF are not valid.
size_t ValidUtf8Prefix(absl::string_view bytes);

// `bytes` with U+FFFD in place of every byte that is not part of a whole, valid character.
std::string ReplaceInvalidUtf8(absl::string_view bytes);

inline bool IsValidUtf8(absl::string_view bytes) { return ValidUtf8Prefix(bytes) == bytes.size(); }

}  // namespace distro
