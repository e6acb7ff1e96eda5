// Compares the tokenizer of a worker's data with the one pinned by the run (`tokenizer_sha256`).
// Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The value of JoinRequest.tokenizer if each token is a byte.
inline constexpr absl::string_view kByteTokenizer = "bytes";

// `tokenizer` is JoinRequest.tokenizer. OK: the run pins none, or this one, or the worker does not
// know its tokenizer. InvalidArgument: neither a SHA-256 nor kByteTokenizer. FailedPrecondition
// "other_data": another tokenizer; the message names both and the remedy.
absl::Status CheckTokenizer(const v1::RunConfig& config, absl::string_view tokenizer);

// Whether `text` is 64 lower-case hexadecimal digits.
bool IsSha256Text(absl::string_view text);

// `text` as this project writes it: in lower case if it is 64 hexadecimal digits of any case, as
// people paste them; otherwise unchanged.
std::string Sha256TextOf(absl::string_view text);

}  // namespace distro
