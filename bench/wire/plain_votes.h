// Votes as plain numbers: the input of other compressors, and the file format of a recorded round.
// For each block the number of its votes, then position and value of each; all u16, little-endian.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/signs/votes.h"

namespace distro {

void AppendPlain(const Votes& votes, std::string* plain);
// InvalidArgument: not what AppendPlain wrote.
absl::StatusOr<Votes> ParsePlain(absl::string_view plain);

}  // namespace distro
