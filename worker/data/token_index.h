// The index that distro-data writes beside its shards (docs/data.md, "The index"): the files of the
// tokens, their order, and the tokenizer. Parsing is pure; the bytes are untrusted, and no file is
// opened.
//
//   DISTRO_ASSIGN_OR_RETURN(TokenIndex index, ParseTokenIndex(bytes));
//   for (const TokenShard& shard : index.shards) ... folder + "/" + shard.name ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/token_format.h"

namespace distro::worker {

inline constexpr int kTokenIndexVersion = 1;
inline constexpr uint64_t kMaxTokenIndexBytes = 16 << 20;  // a hundred thousand shards

struct TokenShard {
  std::string name;    // a plain file name, in the index's folder
  int64_t tokens = 0;  // 1 or more
  std::string sha256;  // of the file, 64 digits of lower-case hexadecimal
};

struct TokenIndex {
  TokenFormat format = TokenFormat::kUint16;  // of every shard: kUint16 or kUint32
  int64_t tokens = 0;                         // of all shards together
  int64_t vocabulary_size = 0;                // 1 to 2^31; every token is below it
  std::string tokenizer_sha256;               // of the tokenizer's file; empty: bytes
  std::string fingerprint;                    // as of TokenSource::Fingerprint
  std::vector<TokenShard> shards;             // in the order of the tokens, one or more
};

// InvalidArgument names the key: not JSON, another version, a missing or unknown key, a value out
// of range, a name that is repeated or not a plain file name, or numbers of tokens that do not add
// up.
absl::StatusOr<TokenIndex> ParseTokenIndex(absl::string_view json);

}  // namespace distro::worker
