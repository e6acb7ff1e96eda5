#include "worker/data/token_format.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace distro::worker {
namespace {

// llm.c's two kinds of shards differ in magic, version and width.
struct LlmcKind {
  uint32_t magic;
  uint32_t version;
  int token_bytes;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, sizeof(uint16_t)},
                                   {20240801, 7, sizeof(uint32_t)}};
constexpr uint32_t kLlmcEvaluationMagic = 20240522;  // questions with answers, not a text
constexpr size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);

// The number of pairs of 16-bit values that are examined for 32-bit tokens, and the largest upper
// half of such a token, for vocabularies below 2^20.
constexpr size_t kPairsLookedAt = 1 << 16;
constexpr uint16_t kLargestUpperHalf = 15;

// The first 32 bits, the magic of a file of llm.c; 0 if the file is too short for a header.
uint32_t MagicOf(absl::string_view bytes) {
  uint32_t magic = 0;
  if (bytes.size() >= kLlmcHeaderBytes) std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic;
}

const LlmcKind* FindKind(uint32_t magic) {
  for (const LlmcKind& kind : kLlmcKinds) {
    if (kind.magic == magic) return &kind;
  }
  return nullptr;
}

absl::StatusOr<TokenBytes> LlmcTokens(absl::string_view bytes) {
  const LlmcKind* const kind = FindKind(MagicOf(bytes));
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("does not begin with the 1024-byte header of llm.c, magic ",
                     kLlmcKinds[0].magic, " or ", kLlmcKinds[1].magic));
  }
  ByteReader reader(bytes);
  uint32_t header[256];
  std::memcpy(header, reader.ReadBytes(kLlmcHeaderBytes, "header")->data(), kLlmcHeaderBytes);
  if (header[1] != kind->version) {
    return absl::InvalidArgumentError(absl::StrCat("llm.c version ", header[1], ", with magic ",
                                                   kind->magic, " only ", kind->version,
                                                   " is read"));
  }
  const uint64_t expected = uint64_t{header[2]} * kind->token_bytes;
  if (reader.remaining() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the header counts ", header[2], " tokens, ",
                                                   expected, " bytes; ", reader.remaining(),
                                                   " follow it"));
  }
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view tokens, reader.ReadBytes(expected, "tokens"));
  return TokenBytes{.bytes = tokens, .token_bytes = kind->token_bytes};
}

absl::Status CheckUtf8(absl::string_view bytes) {
  if (IsUtf16(bytes)) return absl::InvalidArgumentError(kIsUtf16);
  const size_t valid = ValidUtf8Prefix(bytes);
  if (valid == bytes.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is not UTF-8 text: byte ", valid,
                                                 " is wrong; convert it, or give "
                                                 "the --data_format of a token file"));
}

// Whether every second 16-bit value is small and the others are not, as in 32-bit tokens, whose
// upper halves are small. Text of 16-bit tokens fails this within a few values.
bool LooksLike32Bits(absl::string_view bytes) {
  if (bytes.size() % sizeof(uint32_t) != 0) return false;
  const size_t pairs = std::min(bytes.size() / sizeof(uint32_t), kPairsLookedAt);
  uint16_t largest_lower = 0;
  for (size_t i = 0; i < pairs; ++i) {
    uint16_t halves[2];
    std::memcpy(halves, bytes.data() + i * sizeof(halves), sizeof(halves));
    if (halves[1] > kLargestUpperHalf) return false;
    largest_lower = std::max(largest_lower, halves[0]);
  }
  return largest_lower > kLargestUpperHalf;
}

absl::StatusOr<TokenFormat> GuessBin(absl::string_view bytes) {
  const uint32_t magic = MagicOf(bytes);
  if (FindKind(magic) != nullptr) return TokenFormat::kLlmc;
  if (magic == kLlmcEvaluationMagic) {
    return absl::InvalidArgumentError(absl::StrCat("is an evaluation file of llm.c (magic ", magic,
                                                   "), which holds no text to train on"));
  }
  if (LooksLike32Bits(bytes)) {
    return absl::InvalidArgumentError(
        "has no header and looks like 32-bit tokens: read as 16-bit ones, every second is 0 or "
        "little more; give --data_format uint32 (or, if its tokens do have 16 bits, --data_format "
        "uint16)");
  }
  return TokenFormat::kUint16;
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

absl::StatusOr<TokenFormat> GuessTokenFormat(absl::string_view path, absl::string_view bytes) {
  for (const char* extension : {".txt", ".md", ".pod"}) {
    if (absl::EndsWithIgnoreCase(path, extension)) return TokenFormat::kText;
  }
  if (absl::EndsWithIgnoreCase(path, ".u32")) return TokenFormat::kUint32;
  if (absl::EndsWithIgnoreCase(path, ".u16")) return TokenFormat::kUint16;
  if (absl::EndsWithIgnoreCase(path, ".bin")) return GuessBin(bytes);
  for (const char* extension : {".jsonl", ".ndjson", ".parquet"}) {
    if (absl::EndsWithIgnoreCase(path, extension)) {
      return absl::InvalidArgumentError(
          "holds documents, not tokens; make token files of them with scripts/distro-data, and "
          "give its index.json (docs/data.md)");
    }
  }
  return absl::InvalidArgumentError(
      "the name does not tell the format (.txt, .md, .pod, .bin, .u16, .u32, and .json for an "
      "index do); give --data_format text, llmc, uint16 or uint32");
}

absl::StatusOr<TokenBytes> FindTokens(absl::string_view bytes, TokenFormat format) {
  TokenBytes tokens{.bytes = bytes, .token_bytes = sizeof(uint16_t)};
  if (format == TokenFormat::kText) {
    DISTRO_RETURN_IF_ERROR(CheckUtf8(bytes));
    tokens = {.bytes = WithoutByteOrderMark(bytes), .token_bytes = 1};
  } else if (format == TokenFormat::kLlmc) {
    DISTRO_ASSIGN_OR_RETURN(tokens, LlmcTokens(bytes));
  } else if (format == TokenFormat::kUint32) {
    tokens.token_bytes = sizeof(uint32_t);
  }
  if (tokens.bytes.size() % tokens.token_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(tokens.bytes.size(),
                                                   " bytes are not a whole number of ",
                                                   tokens.token_bytes, "-byte tokens"));
  }
  if (tokens.bytes.empty()) return absl::InvalidArgumentError("holds no token");
  return tokens;
}

}  // namespace distro::worker
