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

// `text` without the byte order mark (U+FEFF) with which Notepad, PowerShell and Excel begin it.
absl::string_view WithoutByteOrderMark(absl::string_view text);

// Whether `bytes` are UTF-16 or UTF-32: they begin with its byte order mark, or with a character of
// ASCII in it.
bool IsUtf16(absl::string_view bytes);

// What is said of such bytes, after the name of the file.
inline constexpr absl::string_view kIsUtf16 =
    "is UTF-16, as Notepad (\"Unicode\") and PowerShell (>) write it: save it as UTF-8";

}  // namespace distro
