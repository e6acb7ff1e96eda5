#include "worker/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/foreign_file.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/run/pinned_tokenizer.h"
#include "worker/data/token_paths.h"

namespace distro::worker {
namespace {

constexpr int64_t kChunkTokens = 1 << 14;
constexpr uint64_t kForeignBytes = 4096;  // enough to know what else a file may be

// Widens the little-endian tokens in `bytes`, which lie at the end of `out`, to all of `out`: no
// token is written over one that is still to be read.
template <typename T>
void Widen(const char* bytes, absl::Span<uint32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T token;  // the address may have any alignment
    std::memcpy(&token, bytes + i * sizeof(T), sizeof(T));
    out[i] = token;
  }
}

// The most frequent cause of a token beyond the vocabulary, as a hint for the message.
const char* HintFor(TokenFormat format) {
  if (format == TokenFormat::kUint16) return "; if its tokens have 32 bits, --data_format uint32";
  if (format == TokenFormat::kUint32) return "; if its tokens have 16 bits, --data_format uint16";
  return "";
}

bool IsIndexName(absl::string_view path) { return absl::EndsWithIgnoreCase(path, ".json"); }

absl::Status CheckShardSize(const TokenShard& shard, int token_bytes, const DataFile& file) {
  const int64_t expected = shard.tokens * token_bytes;
  if (static_cast<int64_t>(file.size()) == expected) return absl::OkStatus();
  std::string beginning(std::min<uint64_t>(file.size(), kForeignBytes), 0);
  DISTRO_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(beginning)));
  return ExplainForeign(absl::InvalidArgumentError(absl::StrCat(
                            "has ", file.size(), " bytes, and the index counts ", shard.tokens,
                            " tokens of ", token_bytes, " bytes, ", expected,
                            " bytes: it is not whole, or of another index; copy it again")),
                        beginning);
}

int64_t CountOf(const TokenBytes& data) {
  return static_cast<int64_t>(data.bytes.size()) / data.token_bytes;
}

absl::StatusOr<std::string> HashOf(const DataFile& file) {
  Sha256Stream hash;
  std::string chunk;
  for (uint64_t at = 0; at < file.size(); at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(sizeof(uint32_t) * kChunkTokens, file.size() - at));
    DISTRO_RETURN_IF_ERROR(file.Read(at, absl::MakeSpan(chunk)));
    hash.Update(chunk);
  }
  return ToHex(hash.Finish());
}

}  // namespace

absl::Status TokenSource::Piece::Read(int64_t first, absl::Span<uint32_t> out) const {
  const size_t size = out.size() * token_bytes;
  char* const raw = reinterpret_cast<char*>(out.data() + out.size()) - size;
  const uint64_t place = first * token_bytes;
  if (file.has_value()) {
    DISTRO_RETURN_IF_ERROR(file->Read(offset + place, {raw, size}));
  } else {
    std::memcpy(raw, bytes.data() + place, size);
  }
  if (token_bytes == sizeof(uint8_t)) Widen<uint8_t>(raw, out);
  if (token_bytes == sizeof(uint16_t)) Widen<uint16_t>(raw, out);
  return absl::OkStatus();
}

absl::Status TokenSource::Piece::ForEachChunk(
    absl::FunctionRef<absl::Status(int64_t, absl::Span<const uint32_t>)> visit) const {
  std::vector<uint32_t> chunk;
  for (int64_t first = 0; first < tokens; first += kChunkTokens) {
    chunk.resize(std::min(kChunkTokens, tokens - first));
    DISTRO_RETURN_IF_ERROR(Read(first, absl::MakeSpan(chunk)));
    DISTRO_RETURN_IF_ERROR(visit(first, chunk));
  }
  return absl::OkStatus();
}

void TokenSource::Append(Piece piece) {
  piece.begin = tokens_;
  tokens_ += piece.tokens;
  pieces_.push_back(std::move(piece));
}

absl::StatusOr<TokenSource> TokenSource::FromBytes(absl::string_view bytes, TokenFormat format) {
  TokenSource source;
  DISTRO_ASSIGN_OR_RETURN(const TokenBytes data, FindTokens(bytes, format));
  source.Append({.name = "",
                 .file = std::nullopt,
                 .bytes = data.bytes,
                 .token_bytes = data.token_bytes,
                 .format = format,
                 .tokens = CountOf(data)});
  return source;
}

absl::StatusOr<TokenSource> TokenSource::OpenFile(const std::string& path, TokenFormat format) {
  DISTRO_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  DISTRO_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));  // to look at it once
  if (IsLfsPointer(mapped.bytes()))
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", ForeignFormat(mapped.bytes())));
  absl::StatusOr<TokenFormat> known = format;
  if (format == TokenFormat::kAuto) known = GuessTokenFormat(path, mapped.bytes());
  if (!known.ok()) return Annotate(known.status(), path);
  const absl::StatusOr<TokenBytes> data = FindTokens(mapped.bytes(), *known);
  if (!data.ok()) return Annotate(data.status(), path);
  const auto offset = static_cast<uint64_t>(data->bytes.data() - mapped.bytes().data());
  TokenSource source;
  source.Append({.name = path,
                 .file = std::move(file),
                 .bytes = "",
                 .offset = offset,
                 .token_bytes = data->token_bytes,
                 .format = *known,
                 .tokens = CountOf(*data)});
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
    absl::StatusOr<DataFile> file = DataFile::Open(name);
    if (!file.ok()) return Annotate(file.status(), path);
    const int token_bytes = index->format == TokenFormat::kUint16 ? 2 : 4;
    const absl::Status status = CheckShardSize(shard, token_bytes, *file);
    if (!status.ok()) return Annotate(status, absl::StrCat(path, ": ", name));
    source.Append({.name = name,
                   .file = *std::move(file),
                   .bytes = "",
                   .token_bytes = token_bytes,
                   .format = TokenFormat::kAuto,
                   .tokens = shard.tokens});
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

absl::Status TokenSource::Read(int64_t begin, absl::Span<int32_t> out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t place, const Piece& p) { return place < p.begin; });
  for (--piece; !out.empty(); ++piece) {
    const int64_t first = begin - piece->begin;
    const int64_t count = std::min<int64_t>(out.size(), piece->tokens - first);
    auto* const place = reinterpret_cast<uint32_t*>(out.data());
    DISTRO_RETURN_IF_ERROR(piece->Read(first, {place, static_cast<size_t>(count)}));
    out.remove_prefix(count);
    begin += count;
  }
  return absl::OkStatus();
}

absl::Status TokenSource::ValidateVocabulary(int64_t vocab_size) const {
  for (const Piece& piece : pieces_) {
    DISTRO_RETURN_IF_ERROR(
        piece.ForEachChunk([&](int64_t first, absl::Span<const uint32_t> tokens) {
          const auto large = std::find_if(tokens.begin(), tokens.end(), [vocab_size](uint32_t t) {
            return int64_t{t} >= vocab_size;
          });
          if (large == tokens.end()) return absl::OkStatus();
          return TooLarge(piece, first + (large - tokens.begin()), *large, vocab_size);
        }));
  }
  return absl::OkStatus();
}

absl::Status TokenSource::TooLarge(const Piece& piece, int64_t position, uint32_t token,
                                   int64_t vocab_size) const {
  std::string hint = HintFor(piece.format);
  if (index_.has_value() && index_->vocabulary_size > vocab_size) {
    hint = absl::StrCat("; its index was made with a vocabulary of ", index_->vocabulary_size,
                        ": the data is of another tokenizer than the model");
  }
  const auto status = absl::InvalidArgumentError(
      absl::StrCat("token ", position, " is ", token, ", the model's vocabulary has ", vocab_size,
                   " (0 to ", vocab_size - 1, ")", hint));
  return piece.name.empty() ? status : Annotate(status, piece.name);
}

absl::StatusOr<std::string> TokenSource::Fingerprint() const {
  Sha256Stream hash;
  std::string count;
  AppendLittleEndian<uint64_t>(&count, tokens_);
  hash.Update(count);
  for (const Piece& piece : pieces_) {
    DISTRO_RETURN_IF_ERROR(piece.ForEachChunk([&](int64_t, absl::Span<const uint32_t> tokens) {
      hash.Update({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint32_t)});
      return absl::OkStatus();
    }));
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
    DISTRO_ASSIGN_OR_RETURN(const std::string sha256, HashOf(*pieces_[i].file));
    if (sha256 == index_->shards[i].sha256) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        pieces_[i].name,
        ": its SHA-256 is not the one in the index: it was damaged or changed; copy it "
        "again"));
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
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": an index has the format of its shards; leave --data_format out"));
    } else if (paths.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": an index cannot be combined with other files; give it alone"));
    } else {
      return TokenSource::OpenIndex(path);
    }
  }
  return TokenSource::Join(std::move(parts));
}

}  // namespace distro::worker
