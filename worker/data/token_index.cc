#include "worker/data/token_index.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/run/pinned_tokenizer.h"

namespace distro::worker {
namespace {

using nlohmann::json;

constexpr int64_t kMaxTokens = int64_t{1} << 48;
constexpr int64_t kMaxVocabulary = int64_t{1} << 31;
constexpr int64_t kMaxVocabulary16 = 1 << 16;
constexpr size_t kHashDigits = 64;
constexpr size_t kMaxShownBytes = 200;

absl::Status Wrong(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", what));
}

std::string Shown(absl::string_view text) {
  return absl::StrCat("'", ShownText(text, kMaxShownBytes), "'");
}

// Checks that `value` is an object with exactly these keys.
absl::Status CheckKeys(const json& value, std::initializer_list<absl::string_view> keys) {
  if (!value.is_object()) return absl::InvalidArgumentError("is not an object");
  for (const absl::string_view key : keys) {
    if (!value.contains(std::string(key)))
      return absl::InvalidArgumentError(absl::StrCat("lacks the key \"", key, "\""));
  }
  for (const auto& item : value.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      return absl::InvalidArgumentError(absl::StrCat("has an unknown key ", Shown(item.key())));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Number(const json& object, const char* key, int64_t smallest,
                               int64_t largest) {
  const json& value = object[key];
  const bool fits = value.is_number_unsigned() &&
                    value.get<uint64_t>() >= static_cast<uint64_t>(smallest) &&
                    value.get<uint64_t>() <= static_cast<uint64_t>(largest);
  if (fits) return value.get<int64_t>();
  return Wrong(key, absl::StrCat("is not a whole number of ", smallest, " to ", largest));
}

absl::StatusOr<std::string> Text(const json& object, const char* key) {
  if (object[key].is_string()) return object[key].get<std::string>();
  return Wrong(key, "is not a string");
}

absl::StatusOr<std::string> Hash(const json& object, const char* key) {
  const json& value = object[key];
  const std::string text = value.is_string() ? Sha256TextOf(value.get<std::string>()) : "";
  if (IsSha256Text(text)) return text;
  return Wrong(key, "is not 64 hexadecimal digits");
}

// With a name outside the folder a downloaded index could make the worker read any file of this
// machine.
absl::StatusOr<std::string> FileName(const json& object) {
  DISTRO_ASSIGN_OR_RETURN(std::string name, Text(object, "name"));
  const bool plain = !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
                     name.find('\0') == std::string::npos;
  if (plain) return name;
  return Wrong("name", absl::StrCat(Shown(name), " is not the name of a file in the folder"));
}

absl::StatusOr<TokenShard> ParseShard(const json& value) {
  DISTRO_RETURN_IF_ERROR(CheckKeys(value, {"name", "tokens", "sha256"}));
  TokenShard shard;
  DISTRO_ASSIGN_OR_RETURN(shard.name, FileName(value));
  DISTRO_ASSIGN_OR_RETURN(shard.tokens, Number(value, "tokens", 1, kMaxTokens));
  DISTRO_ASSIGN_OR_RETURN(shard.sha256, Hash(value, "sha256"));
  return shard;
}

absl::Status ParseShards(const json& list, TokenIndex* index) {
  if (!list.is_array() || list.empty()) return Wrong("shards", "is not a list of one or more");
  std::set<std::string> names;
  int64_t tokens = 0;
  for (const json& value : list) {
    absl::StatusOr<TokenShard> shard = ParseShard(value);
    if (!shard.ok())
      return Annotate(shard.status(), absl::StrCat("shards[", index->shards.size(), "]"));
    if (!names.insert(shard->name).second)
      return Wrong("shards", absl::StrCat(Shown(shard->name), " is named twice"));
    tokens += shard->tokens;
    if (tokens > index->tokens) break;  // long before it could overflow
    index->shards.push_back(*std::move(shard));
  }
  if (tokens == index->tokens) return absl::OkStatus();
  return Wrong("tokens", absl::StrCat(index->tokens, ", which is not the sum of the shards'"));
}

absl::Status ParseTokenizer(const json& value, TokenIndex* index) {
  DISTRO_RETURN_IF_ERROR(CheckKeys(value, {"kind", "sha256", "end_token"}));
  DISTRO_ASSIGN_OR_RETURN(const std::string kind, Text(value, "kind"));
  if (!value["end_token"].is_null()) {
    DISTRO_RETURN_IF_ERROR(Number(value, "end_token", 0, index->vocabulary_size - 1).status());
  }
  if (kind == "bytes" && value["sha256"].is_null()) return absl::OkStatus();
  if (kind != "tokenizer.json" && kind != "sentencepiece") {
    return Wrong("kind", absl::StrCat(Shown(kind),
                                      " is not bytes without a hash, tokenizer.json or "
                                      "sentencepiece"));
  }
  DISTRO_ASSIGN_OR_RETURN(index->tokenizer_sha256, Hash(value, "sha256"));
  return absl::OkStatus();
}

absl::Status CheckDocuments(const json& value, const TokenIndex& index) {
  DISTRO_RETURN_IF_ERROR(CheckKeys(value, {"name", "count", "sha256"}));
  DISTRO_RETURN_IF_ERROR(FileName(value).status());
  DISTRO_RETURN_IF_ERROR(Number(value, "count", 1, index.tokens).status());
  return Hash(value, "sha256").status();
}

absl::Status ParseFormat(const json& value, TokenIndex* index) {
  DISTRO_ASSIGN_OR_RETURN(const std::string dtype, Text(value, "dtype"));
  if (dtype != "uint16" && dtype != "uint32")
    return Wrong("dtype", absl::StrCat(Shown(dtype), " is neither uint16 nor uint32"));
  index->format = dtype == "uint16" ? TokenFormat::kUint16 : TokenFormat::kUint32;
  DISTRO_ASSIGN_OR_RETURN(index->vocabulary_size,
                          Number(value, "vocabulary_size", 1, kMaxVocabulary));
  if (index->format == TokenFormat::kUint16 && index->vocabulary_size > kMaxVocabulary16) {
    return Wrong("vocabulary_size",
                 absl::StrCat(index->vocabulary_size, " is more than uint16 can hold"));
  }
  return absl::OkStatus();
}

// Checked first, because a newer version may give the keys another meaning.
absl::Status CheckVersion(const json& value) {
  const bool ours = value.is_object() && value.contains("format") &&
                    value["format"] == "distro-tokens" && value.contains("version");
  if (!ours) {
    return absl::InvalidArgumentError(
        "is not an index of tokens: it needs \"format\": \"distro-tokens\" and a \"version\"");
  }
  if (value["version"] == kTokenIndexVersion) return absl::OkStatus();
  return Wrong("version", absl::StrCat(Shown(WriteJson(value["version"])), ", this program reads ",
                                       kTokenIndexVersion, " only"));
}

}  // namespace

absl::StatusOr<TokenIndex> ParseTokenIndex(absl::string_view text) {
  DISTRO_ASSIGN_OR_RETURN(const json value, ParseJson(text));
  DISTRO_RETURN_IF_ERROR(CheckVersion(value));
  DISTRO_RETURN_IF_ERROR(
      CheckKeys(value, {"format", "version", "dtype", "vocabulary_size", "tokens", "fingerprint",
                        "tokenizer", "documents", "shards"}));
  TokenIndex index;
  DISTRO_RETURN_IF_ERROR(ParseFormat(value, &index));
  DISTRO_ASSIGN_OR_RETURN(index.tokens, Number(value, "tokens", 1, kMaxTokens));
  DISTRO_ASSIGN_OR_RETURN(index.fingerprint, Hash(value, "fingerprint"));
  DISTRO_RETURN_IF_ERROR(Annotate(ParseTokenizer(value["tokenizer"], &index), "tokenizer"));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckDocuments(value["documents"], index), "documents"));
  DISTRO_RETURN_IF_ERROR(ParseShards(value["shards"], &index));
  return index;
}

}  // namespace distro::worker
