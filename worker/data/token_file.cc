#include "worker/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"

namespace distro::worker {
namespace {

constexpr size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);
constexpr uint32_t kLlmcMagic = 20240520;
constexpr uint32_t kLlmcWideMagic = 20240801;  // llm.c's shards of 32-bit tokens
constexpr uint32_t kLlmcVersion = 1;
constexpr int64_t kChunkTokens = 1 << 14;

// Places are of any alignment.
template <typename T>
T Load(const char* place) {
  T value;
  std::memcpy(&value, place, sizeof(T));
  return value;
}

// The magic that a file of llm.c begins with; 0 when it is too short to have a header.
uint32_t MagicOf(absl::string_view bytes) {
  uint32_t magic = 0;
  if (bytes.size() >= kLlmcHeaderBytes) std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic;
}

// The tokens of an llm.c shard.
absl::StatusOr<absl::string_view> LlmcTokens(absl::string_view bytes) {
  if (MagicOf(bytes) == kLlmcWideMagic) {
    return absl::InvalidArgumentError(
        "llm.c shards of 32-bit tokens (magic 20240801) are not read; store plain uint32");
  }
  if (MagicOf(bytes) != kLlmcMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("does not begin with the 1024-byte header of llm.c, magic ", kLlmcMagic));
  }
  ByteReader reader(bytes);
  uint32_t header[256];
  std::memcpy(header, reader.ReadBytes(kLlmcHeaderBytes, "header")->data(), kLlmcHeaderBytes);
  if (header[1] != kLlmcVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("llm.c version ", header[1], ", only 1 is read"));
  }
  const uint64_t expected = uint64_t{header[2]} * sizeof(uint16_t);
  if (reader.remaining() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the header counts ", header[2], " tokens, ",
                                                   expected, " bytes; ", reader.remaining(),
                                                   " follow it"));
  }
  return reader.ReadBytes(expected, "tokens");
}

absl::Status CheckUtf8(absl::string_view bytes) {
  const size_t valid = ValidUtf8Prefix(bytes);
  if (valid == bytes.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is not UTF-8 text: byte ", valid,
                                                 " is wrong; convert it, or give "
                                                 "the --data_format of a token file"));
}

absl::StatusOr<TokenFormat> FormatByName(const std::string& path, absl::string_view bytes) {
  for (const char* extension : {".txt", ".md", ".pod"}) {
    if (absl::EndsWith(path, extension)) return TokenFormat::kText;
  }
  if (absl::EndsWith(path, ".u32")) return TokenFormat::kUint32;
  if (absl::EndsWith(path, ".u16")) return TokenFormat::kUint16;
  if (absl::EndsWith(path, ".bin")) {
    const uint32_t magic = MagicOf(bytes);
    return magic == kLlmcMagic || magic == kLlmcWideMagic ? TokenFormat::kLlmc
                                                          : TokenFormat::kUint16;
  }
  return absl::InvalidArgumentError(
      "the name does not tell the format (.txt, .md, .pod, .bin, .u16, .u32 do); give "
      "--data_format text, llmc, uint16 or uint32");
}

}  // namespace

absl::StatusOr<TokenFormat> ParseTokenFormat(absl::string_view name) {
  if (name == "auto") return TokenFormat::kAuto;
  if (name == "text") return TokenFormat::kText;
  if (name == "llmc") return TokenFormat::kLlmc;
  if (name == "uint16") return TokenFormat::kUint16;
  if (name == "uint32") return TokenFormat::kUint32;
  return absl::InvalidArgumentError(
      absl::StrCat("token format ", name, ": not one of auto, text, llmc, uint16, uint32"));
}

TokenSource::TokenSource(absl::string_view data, TokenFormat format, int token_bytes)
    : data_(data),
      format_(format),
      token_bytes_(token_bytes),
      tokens_(static_cast<int64_t>(data.size()) / token_bytes) {}

absl::StatusOr<TokenSource> TokenSource::FromBytes(absl::string_view bytes, TokenFormat format) {
  int token_bytes = sizeof(uint16_t);
  if (format == TokenFormat::kText) {
    DISTRO_RETURN_IF_ERROR(CheckUtf8(bytes));
    token_bytes = 1;
  } else if (format == TokenFormat::kLlmc) {
    DISTRO_ASSIGN_OR_RETURN(bytes, LlmcTokens(bytes));
  } else if (format == TokenFormat::kUint32) {
    token_bytes = sizeof(uint32_t);
  }
  if (bytes.size() % token_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes.size(), " bytes are not a whole number of ", token_bytes, "-byte tokens"));
  }
  if (bytes.empty()) return absl::InvalidArgumentError("holds no token");
  return TokenSource(bytes, format, token_bytes);
}

uint32_t TokenSource::At(int64_t position) const {
  const char* place = data_.data() + position * token_bytes_;
  if (token_bytes_ == sizeof(uint8_t)) return static_cast<uint8_t>(*place);
  if (token_bytes_ == sizeof(uint16_t)) return Load<uint16_t>(place);
  return Load<uint32_t>(place);
}

void TokenSource::Read(int64_t begin, absl::Span<int32_t> out) const {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int32_t>(At(begin + static_cast<int64_t>(i)));
}

absl::Status TokenSource::ValidateVocabulary(int64_t vocab_size) const {
  for (int64_t i = 0; i < tokens_; ++i) {
    if (At(i) >= vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("token ", i, " is ", At(i),
                                                     ", the model's vocabulary has ", vocab_size,
                                                     " (0 to ", vocab_size - 1, ")"));
    }
  }
  return absl::OkStatus();
}

std::string TokenSource::Fingerprint() const {
  Sha256Stream hash;
  std::string count;
  AppendLittleEndian<uint64_t>(&count, tokens_);
  hash.Update(count);
  std::vector<uint32_t> chunk;
  for (int64_t begin = 0; begin < tokens_; begin += kChunkTokens) {
    chunk.resize(std::min(kChunkTokens, tokens_ - begin));
    for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = At(begin + static_cast<int64_t>(i));
    hash.Update({reinterpret_cast<const char*>(chunk.data()), chunk.size() * sizeof(uint32_t)});
  }
  return ToHex(hash.Finish());
}

absl::StatusOr<TokenSource> OpenTokens(const std::string& path, TokenFormat format) {
  DISTRO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  absl::StatusOr<TokenFormat> known = format;
  if (format == TokenFormat::kAuto) known = FormatByName(path, file.bytes());
  if (!known.ok()) return Annotate(known.status(), path);
  absl::StatusOr<TokenSource> source = TokenSource::FromBytes(file.bytes(), *known);
  if (!source.ok()) return Annotate(source.status(), path);
  source->file_ = std::move(file);
  return source;
}

}  // namespace distro::worker
