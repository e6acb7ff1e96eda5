// UTF-8 as RFC 3629 defines it, and how text of others (peers, files) is shown. Pure functions.
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

// Text of others is shown by these two in logs, on terminals and in messages, so that nobody can
// forge a line, command a terminal, turn the order of what is read, or hide something in it.
//
// `text` with an escape in place of every character that is not seen or that changes how others are
// seen: controls (also U+0080 to U+009F), direction marks, separators of lines, characters without
// width, tags. "\n", "\t", "\r", "\x1b", and from U+007F on as JSON does it: "\u202e". A byte that
// is not part of a valid character is "\x9b". Quotes and backslashes stay. What is shown is cut
// after `max_bytes`, between characters: "begi... (921600 bytes)".
inline constexpr size_t kShownBytes = 500;
std::string ShownText(absl::string_view text, size_t max_bytes = kShownBytes);
// The same for several lines: line feeds stay, and nothing is cut. JSON stays JSON of the same
// value.
std::string ShownLines(absl::string_view text);

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
