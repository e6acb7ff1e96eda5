// Token files (docs/data.md): opens one or several files and presents them as one sequence of token
// ids. In text a token is a byte. Immutable, thread-safe.
//
//   absl::StatusOr<TokenSource> tokens = OpenTokens("shards/index.json", TokenFormat::kAuto);
//   std::vector<int32_t> sample(129);
//   DISTRO_RETURN_IF_ERROR(tokens->Read(12 * 128, absl::MakeSpan(sample)));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/data/data_file.h"
#include "worker/data/token_format.h"
#include "worker/data/token_index.h"

namespace distro::worker {

inline constexpr int kByteVocabulary = 256;

class TokenSource {
 public:
  // Borrows `bytes`. The statuses of FindTokens.
  static absl::StatusOr<TokenSource> FromBytes(absl::string_view bytes, TokenFormat format);

  // Opens one file. The statuses of DataFile::Open and, after "path: ", of GuessTokenFormat and
  // FindTokens.
  static absl::StatusOr<TokenSource> OpenFile(const std::string& path, TokenFormat format);

  // Opens all files of an index, in its order. The statuses of ReadFile and, after "path: ", of
  // ParseTokenIndex. NotFound: a shard is missing. InvalidArgument: a shard has another size than
  // in the index. The message names index and shard.
  static absl::StatusOr<TokenSource> OpenIndex(const std::string& path);

  // Concatenates the tokens of all parts. Requires at least one part, none from an index.
  static TokenSource Join(std::vector<TokenSource> parts);

  int64_t tokens() const { return tokens_; }

  // The tokenizer of the tokens, as in JoinRequest.tokenizer: the SHA-256 in the index; "bytes" for
  // text; empty: unknown.
  std::string tokenizer() const;

  // Tokens [begin, begin + out.size()). Requires them to lie in 0..tokens(), and ids below 2^31
  // (ValidateVocabulary). The statuses of DataFile::Read, also of the functions below: a file that
  // changes while it is open is an error.
  absl::Status Read(int64_t begin, absl::Span<int32_t> out) const;

  // Reads all tokens once. InvalidArgument: a token is not below vocab_size (names the first, with
  // file, position and value). A larger vocabulary of the index is none: a tokenizer may have
  // tokens that its data does not have.
  absl::Status ValidateVocabulary(int64_t vocab_size) const;

  // SHA-256, in hexadecimal, of the number of tokens as u64 and every token as u32, little-endian:
  // the same tokens have the same fingerprint in every format and any number of files. Reads all
  // tokens once. InvalidArgument: the index has another fingerprint; names the first changed shard.
  absl::StatusOr<std::string> Fingerprint() const;

 private:
  struct Piece {
    // Its tokens [first, first + out.size()).
    absl::Status Read(int64_t first, absl::Span<uint32_t> out) const;
    // Calls `visit(first, tokens)` for all tokens in chunks, until it returns an error.
    absl::Status ForEachChunk(
        absl::FunctionRef<absl::Status(int64_t, absl::Span<const uint32_t>)> visit) const;

    std::string name;              // path; empty: of FromBytes
    std::optional<DataFile> file;  // nullopt: of FromBytes
    absl::string_view bytes;       // of FromBytes: only the tokens
    uint64_t offset = 0;           // of the first token in the file
    int token_bytes = 1;
    TokenFormat format;
    int64_t begin = 0;  // position of its first token among all
    int64_t tokens = 0;
  };

  TokenSource() = default;
  void Append(Piece piece);
  absl::Status TooLarge(const Piece& piece, int64_t position, uint32_t token,
                        int64_t vocab_size) const;
  absl::Status DamagedShard() const;

  std::vector<Piece> pieces_;  // one or more, none empty
  int64_t tokens_ = 0;
  std::optional<TokenIndex> index_;  // whose shards the pieces are
};

// Opens the value of --data: an index (a name that ends in .json, with kAuto), a file, several
// files or a pattern (token_paths.h), all in `format`; with kAuto the name of each file determines
// its format. The statuses of FindTokenFiles, OpenFile and OpenIndex. InvalidArgument: an index
// that is not alone, or with the format of a token file.
absl::StatusOr<TokenSource> OpenTokens(const std::string& data, TokenFormat format);

}  // namespace distro::worker
