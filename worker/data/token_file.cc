#include "worker/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/foreign_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/run/pinned_tokenizer.h"
#include "worker/data/token_paths.h"

namespace distro::worker {
namespace {

constexpr int64_t kChunkTokens = 1 << 14;

// The address may have any alignment.
template <typename T>
T Load(const char* place) {
  T value;
  std::memcpy(&value, place, sizeof(T));
  return value;
}

// The most frequent cause of a token beyond the vocabulary, as a hint for the message.
const char* HintFor(TokenFormat format) {
  if (format == TokenFormat::kUint16) return "; if its tokens have 32 bits, --data_format uint32";
  if (format == TokenFormat::kUint32) return "; if its tokens have 16 bits, --data_format uint16";
  return "";
}

bool IsIndexName(absl::string_view path) { return absl::EndsWithIgnoreCase(path, ".json"); }

absl::Status CheckShardSize(const TokenShard& shard, int token_bytes, size_t size) {
  const int64_t expected = shard.tokens * token_bytes;
  if (static_cast<int64_t>(size) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "has ", size, " bytes, and the index counts ", shard.tokens, " tokens of ", token_bytes,
      " bytes, ", expected, " bytes: it is not whole, or of another index; copy it again"));
}

}  // namespace

uint32_t TokenSource::Piece::At(int64_t position) const {
  const char* const place = data.bytes.data() + position * data.token_bytes;
  if (data.token_bytes == sizeof(uint8_t)) return static_cast<uint8_t>(*place);
  if (data.token_bytes == sizeof(uint16_t)) return Load<uint16_t>(place);
  return Load<uint32_t>(place);
}

void TokenSource::Append(Piece piece) {
  piece.begin = tokens_;
  piece.tokens = static_cast<int64_t>(piece.data.bytes.size()) / piece.data.token_bytes;
  tokens_ += piece.tokens;
  pieces_.push_back(std::move(piece));
}

absl::StatusOr<TokenSource> TokenSource::FromBytes(absl::string_view bytes, TokenFormat format) {
  TokenSource source;
  DISTRO_ASSIGN_OR_RETURN(const TokenBytes data, FindTokens(bytes, format));
  source.Append({.name = "", .file = std::nullopt, .data = data, .format = format});
  return source;
}

absl::StatusOr<TokenSource> TokenSource::OpenFile(const std::string& path, TokenFormat format) {
  DISTRO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (IsLfsPointer(file.bytes()))
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", ForeignFormat(file.bytes())));
  absl::StatusOr<TokenFormat> known = format;
  if (format == TokenFormat::kAuto) known = GuessTokenFormat(path, file.bytes());
  if (!known.ok()) return Annotate(known.status(), path);
  const absl::StatusOr<TokenBytes> data = FindTokens(file.bytes(), *known);
  if (!data.ok()) return Annotate(data.status(), path);
  TokenSource source;
  source.Append({.name = path, .file = std::move(file), .data = *data, .format = *known});
  return source;
}

absl::StatusOr<TokenSource> TokenSource::OpenIndex(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxTokenIndexBytes));
  absl::StatusOr<TokenIndex> index = ParseTokenIndex(text);
  if (!index.ok()) return Annotate(index.status(), path);
  TokenSource source;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const TokenShard& shard : index->shards) {
    const std::string name = folder / shard.name;
    absl::StatusOr<MappedFile> file = MappedFile::Open(name);
    if (!file.ok()) return Annotate(file.status(), path);
    const TokenBytes data{.bytes = file->bytes(),
                          .token_bytes = index->format == TokenFormat::kUint16 ? 2 : 4};
    const absl::Status status = CheckShardSize(shard, data.token_bytes, data.bytes.size());
    if (!status.ok()) {
      return Annotate(ExplainForeign(status, data.bytes), absl::StrCat(path, ": ", name));
    }
    source.Append(
        {.name = name, .file = *std::move(file), .data = data, .format = TokenFormat::kAuto});
  }
  source.index_ = *std::move(index);
  return source;
}

TokenSource TokenSource::Join(std::vector<TokenSource> parts) {
  TokenSource source;
  for (TokenSource& part : parts) {
    for (Piece& piece : part.pieces_) source.Append(std::move(piece));
  }
  return source;
}

void TokenSource::Read(int64_t begin, absl::Span<int32_t> out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t place, const Piece& p) { return place < p.begin; });
  for (--piece; !out.empty(); ++piece) {
    const int64_t first = begin - piece->begin;
    const int64_t count = std::min<int64_t>(out.size(), piece->tokens - first);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(piece->At(first + i));
    out.remove_prefix(count);
    begin += count;
  }
}

absl::Status TokenSource::ValidateVocabulary(int64_t vocab_size) const {
  if (index_.has_value() && index_->vocabulary_size > vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the data's index was made with a vocabulary of ", index_->vocabulary_size,
        ", the model's has ", vocab_size, ": the data is of another tokenizer than the model"));
  }
  for (const Piece& piece : pieces_) {
    for (int64_t i = 0; i < piece.tokens; ++i) {
      if (piece.At(i) < vocab_size) continue;
      const auto status = absl::InvalidArgumentError(
          absl::StrCat("token ", i, " is ", piece.At(i), ", the model's vocabulary has ",
                       vocab_size, " (0 to ", vocab_size - 1, ")", HintFor(piece.format)));
      return piece.name.empty() ? status : Annotate(status, piece.name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenSource::Fingerprint() const {
  Sha256Stream hash;
  std::string count;
  AppendLittleEndian<uint64_t>(&count, tokens_);
  hash.Update(count);
  std::vector<uint32_t> chunk;
  for (const Piece& piece : pieces_) {
    for (int64_t begin = 0; begin < piece.tokens; begin += kChunkTokens) {
      chunk.resize(std::min(kChunkTokens, piece.tokens - begin));
      for (size_t i = 0; i < chunk.size(); ++i)
        chunk[i] = piece.At(begin + static_cast<int64_t>(i));
      hash.Update({reinterpret_cast<const char*>(chunk.data()), chunk.size() * sizeof(uint32_t)});
    }
  }
  std::string fingerprint = ToHex(hash.Finish());
  if (index_.has_value() && index_->fingerprint != fingerprint) return DamagedShard();
  return fingerprint;
}

std::string TokenSource::tokenizer() const {
  const bool bytes = index_.has_value() ? index_->tokenizer_sha256.empty()
                                        : std::ranges::all_of(pieces_, [](const Piece& piece) {
                                            return piece.format == TokenFormat::kText;
                                          });
  if (bytes) return std::string(kByteTokenizer);
  return index_.has_value() ? index_->tokenizer_sha256 : "";
}

absl::Status TokenSource::DamagedShard() const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (ToHex(Sha256(pieces_[i].data.bytes)) == index_->shards[i].sha256) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(pieces_[i].name,
                     ": its bytes are not those that the index has the SHA-256 of: it was "
                     "damaged or changed; copy it again"));
  }
  return absl::InvalidArgumentError(
      "the index's fingerprint is not that of its shards; copy it again, or make it again");
}

absl::StatusOr<TokenSource> OpenTokens(const std::string& data, TokenFormat format) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindTokenFiles(data));
  std::vector<TokenSource> parts;
  for (const std::string& path : paths) {
    if (!IsIndexName(path) || format == TokenFormat::kText) {
      DISTRO_ASSIGN_OR_RETURN(TokenSource part, TokenSource::OpenFile(path, format));
      parts.push_back(std::move(part));
    } else if (format != TokenFormat::kAuto) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": an index says itself what its shards hold; leave --data_format out"));
    } else if (paths.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": an index stands alone, without other files beside it"));
    } else {
      return TokenSource::OpenIndex(path);
    }
  }
  return TokenSource::Join(std::move(parts));
}

}  // namespace distro::worker
