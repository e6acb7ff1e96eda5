// Token files (docs/data.md): one file, mapped, as a sequence of token ids. Text is read by the
// byte tokenizer: a token is a byte. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file.h"

namespace distro::worker {

inline constexpr int kByteVocabulary = 256;

enum class TokenFormat {
  kAuto,  // by name: .txt .md .pod text; .bin llm.c when it has the magic, else uint16; .u16; .u32
  kText,  // UTF-8, byte tokenizer
  kLlmc,  // llm.c: 256 x i32 header (20240520, 1, number of tokens, rest ignored), then u16 tokens
  kUint16,  // nanoGPT: u16 tokens and nothing else
  kUint32,  // u32 tokens and nothing else
};

// "auto", "text", "llmc", "uint16" or "uint32". InvalidArgument: none of them.
absl::StatusOr<TokenFormat> ParseTokenFormat(absl::string_view name);

class TokenSource {
 public:
  // Borrows `bytes`. `format` must not be kAuto. InvalidArgument: text that is not UTF-8, with the
  // offset of the first bad byte; a wrong header; a size that does not fit; no token at all.
  static absl::StatusOr<TokenSource> FromBytes(absl::string_view bytes, TokenFormat format);

  TokenFormat format() const { return format_; }
  int64_t tokens() const { return tokens_; }

  // Tokens [begin, begin + out.size()). Requires them to lie in 0..tokens(), and ids below 2^31
  // (ValidateVocabulary).
  void Read(int64_t begin, absl::Span<int32_t> out) const;

  // Reads all tokens once. InvalidArgument: one is not below vocab_size; names the first by
  // position and value.
  absl::Status ValidateVocabulary(int64_t vocab_size) const;

  // SHA-256, in hexadecimal, of the number of tokens as u64 and every token as u32, little-endian:
  // the same tokens have the same fingerprint in every format. Reads all tokens once.
  std::string Fingerprint() const;

 private:
  friend absl::StatusOr<TokenSource> OpenTokens(const std::string& path, TokenFormat format);
  TokenSource(absl::string_view data, TokenFormat format, int token_bytes);
  uint32_t At(int64_t position) const;

  std::optional<MappedFile> file_;
  absl::string_view data_;  // the tokens alone
  TokenFormat format_;
  int token_bytes_;
  int64_t tokens_;
};

// A mapped file; nobody may shorten it in place while it is open. The statuses of MappedFile::Open
// and, after "path: ", of FromBytes. InvalidArgument: kAuto cannot tell the format from the name.
absl::StatusOr<TokenSource> OpenTokens(const std::string& path, TokenFormat format);

}  // namespace distro::worker
