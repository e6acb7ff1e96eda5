// The Range header of a request (RFC 9110, 14). Pure; the bytes are untrusted input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace distro {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // after the last byte
};

// The part of `bytes` bytes that a header such as "bytes=100-199", "bytes=100-" or "bytes=-100"
// asks for. Empty: there is no such part. nullopt: no header, several ranges, or one that is not
// understood, so that all bytes are to be sent.
std::optional<ByteRange> ParseRange(absl::string_view header, uint64_t bytes);

// The value of Content-Range: "bytes 100-199/1000", or "bytes */1000" of an empty range.
std::string ContentRange(const ByteRange& range, uint64_t bytes);

// The first byte of such a value, with which a response begins. nullopt: it is none.
std::optional<uint64_t> BeginOfContentRange(absl::string_view value);

}  // namespace distro
