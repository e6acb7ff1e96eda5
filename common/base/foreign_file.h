// Recognises what lies in the place of a file that a parser refuses: a Git LFS pointer, a web page,
// a pickle, an archive. Whoever copies models and configurations meets these instead of the file.
// Pure; thread-safe. The input may be hostile: only its first bytes are read.
//
//   if (!contents.ok()) return ExplainForeign(contents.status(), bytes);
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// What the bytes are, and the remedy: "is a Git LFS pointer, not the file itself: ...". Empty if
// they are nothing that is known here. A file in the right format may be recognised too (a zip
// archive is one): ask only after a parser refused it.
std::string ForeignFormat(absl::string_view bytes);
inline constexpr absl::string_view kIsSafetensors = "is a safetensors file";

// Whether the bytes are a Git LFS pointer, which a reader of plain text would take for text.
bool IsLfsPointer(absl::string_view bytes);

// `refused`, the status of a parser of `bytes`, or instead the status with what they are.
absl::Status ExplainForeign(const absl::Status& refused, absl::string_view bytes);

}  // namespace distro
