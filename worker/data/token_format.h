// Detects the format of a token file, and finds the tokens in it (docs/data.md). Pure functions of
// untrusted bytes.
//
//   DISTRO_ASSIGN_OR_RETURN(TokenFormat format, GuessTokenFormat(path, file.bytes()));
//   DISTRO_ASSIGN_OR_RETURN(TokenBytes tokens, FindTokens(file.bytes(), format));
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro::worker {

enum class TokenFormat {
  kAuto,  // by name: .txt .md .pod text; .bin llm.c with its magic, else uint16; .u16; .u32
  kText,  // UTF-8, byte tokenizer
  kLlmc,  // llm.c: 256 x i32 header (magic, version, number of tokens, rest ignored), then tokens:
          // u16 with magic 20240520 and version 1, u32 with magic 20240801 and version 7
  kUint16,  // nanoGPT: u16 tokens and nothing else
  kUint32,  // u32 tokens and nothing else
};

// "auto", "text", "llmc", "uint16" or "uint32". InvalidArgument: none of them.
absl::StatusOr<TokenFormat> ParseTokenFormat(absl::string_view name);

// The format that kAuto selects for this file. InvalidArgument: the name does not determine it; the
// values of a .bin without a header look like 32-bit tokens, and the message names the
// --data_format to use; documents, of which distro-data makes tokens.
absl::StatusOr<TokenFormat> GuessTokenFormat(absl::string_view path, absl::string_view bytes);

struct TokenBytes {
  absl::string_view bytes;  // only the tokens, at least one; borrowed
  int token_bytes = 1;      // 1, 2 or 4, little-endian
};

// `format` must not be kAuto. InvalidArgument: text that is not UTF-8, with the offset of the first
// bad byte; a wrong header; a size that does not fit; no token at all.
absl::StatusOr<TokenBytes> FindTokens(absl::string_view bytes, TokenFormat format);

}  // namespace distro::worker
