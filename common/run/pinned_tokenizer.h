// Compares the tokenizer of a worker's data with the one that a run pins (`tokenizer_sha256`).
// Pure; used by the aggregator and by the one inside a process.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What JoinRequest.tokenizer says where a token is a byte.
inline constexpr absl::string_view kByteTokenizer = "bytes";

// `tokenizer` as JoinRequest has it. OK: the run pins none, this one, or the worker does not know.
// InvalidArgument: it is no SHA-256 and not kByteTokenizer. FailedPrecondition "other_data":
// another one; the message names both and the remedy.
absl::Status CheckTokenizer(const v1::RunConfig& config, absl::string_view tokenizer);

// 64 digits of lower-case hexadecimal.
bool IsSha256Text(absl::string_view text);

}  // namespace distro
