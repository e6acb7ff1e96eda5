// The index of distro-data: what is refused before a file is opened, and what the files must be.
#include "worker/data/token_index.h"

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "worker/data/token_file.h"

namespace distro::worker {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHash(64, 'a');

// Tokens 97 98 | 99 in two shards.
json Good() {
  return {{"format", "distro-tokens"},
          {"version", 1},
          {"dtype", "uint16"},
          {"vocabulary_size", 256},
          {"tokens", 3},
          {"fingerprint", *TokenSource::FromBytes("abc", TokenFormat::kText)->Fingerprint()},
          {"tokenizer", {{"kind", "bytes"}, {"sha256", nullptr}, {"end_token", 10}}},
          {"documents", {{"name", "documents.u64"}, {"count", 1}, {"sha256", kHash}}},
          {"shards",
           {{{"name", "0.u16"}, {"tokens", 2}, {"sha256", ToHex(Sha256({"a\0b\0", 4}))}},
            {{"name", "1.u16"}, {"tokens", 1}, {"sha256", ToHex(Sha256({"c\0", 2}))}}}}};
}

void ExpectRefused(const json& index, const std::string& message) {
  const absl::Status status = ParseTokenIndex(WriteJson(index)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << index;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(TokenIndexTest, IsRead) {
  const auto index = ParseTokenIndex(WriteJson(Good()));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->format, TokenFormat::kUint16);
  EXPECT_EQ(index->tokens, 3);
  EXPECT_EQ(index->vocabulary_size, 256);
  EXPECT_EQ(index->tokenizer_sha256, "");
  ASSERT_EQ(index->shards.size(), 2u);
  EXPECT_EQ(index->shards[1].name, "1.u16");
  EXPECT_EQ(index->shards[1].tokens, 1);

  json other = Good();
  other["dtype"] = "uint32";
  other["vocabulary_size"] = 128256;
  other["tokenizer"] = {{"kind", "tokenizer.json"}, {"sha256", kHash}, {"end_token", nullptr}};
  const auto wide = ParseTokenIndex(WriteJson(other));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->format, TokenFormat::kUint32);
  EXPECT_EQ(wide->tokenizer_sha256, kHash);

  other["tokenizer"]["sha256"] = std::string(64, 'A');
  EXPECT_EQ(ParseTokenIndex(WriteJson(other))->tokenizer_sha256, kHash);
}

TEST(TokenIndexTest, NamesTheKeyThatIsWrong) {
  using Change = std::function<void(json&)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](json& i) { i["format"] = "other"; }, "is not an index of tokens"},
      {[](json& i) { i = json::array(); }, "is not an index of tokens"},
      {[](json& i) { i["version"] = 2; }, "version: '2"},
      {[](json& i) { i["version"] = "1"; }, "version: "},
      {[](json& i) { i.erase("tokens"); }, "lacks the key \"tokens\""},
      {[](json& i) { i["more"] = 1; }, "unknown key 'more'"},
      {[](json& i) { i["dtype"] = "int16"; }, "dtype: 'int16'"},
      {[](json& i) { i["vocabulary_size"] = 0; }, "vocabulary_size: "},
      {[](json& i) { i["vocabulary_size"] = 65537; }, "vocabulary_size: 65537"},
      {[](json& i) { i["vocabulary_size"] = 256.0; }, "vocabulary_size: "},
      {[](json& i) { i["fingerprint"] = "abc"; }, "fingerprint: "},
      {[](json& i) { i["fingerprint"] = std::string(64, 'g'); }, "fingerprint: "},
      {[](json& i) { i["tokens"] = 4; }, "tokens: 4, which is not the sum"},
      {[](json& i) { i["tokens"] = 2; }, "tokens: 2, which is not the sum"},
      {[](json& i) { i["tokens"] = -3; }, "tokens: "},
      {[](json& i) { i["tokens"] = UINT64_MAX; }, "tokens: "},
      {[](json& i) { i["shards"][1]["tokens"] = UINT64_MAX; }, "shards[1]: tokens: "},
      {[](json& i) { i["shards"][1]["tokens"] = 0; }, "shards[1]: tokens: "},
      {[](json& i) { i["shards"][1]["sha256"] = 5; }, "shards[1]: sha256: "},
      {[](json& i) { i["shards"][1]["name"] = "0.u16"; }, "'0.u16' is named twice"},
      {[](json& i) { i["shards"][0].erase("name"); }, "shards[0]: lacks the key"},
      {[](json& i) { i["shards"] = json::array(); }, "shards: "},
      {[](json& i) { i["shards"] = json::object(); }, "shards: "},
      {[](json& i) { i["tokenizer"]["kind"] = "mine"; }, "tokenizer: kind: 'mine'"},
      {[](json& i) { i["tokenizer"]["kind"] = "sentencepiece"; }, "tokenizer: sha256: "},
      {[](json& i) { i["tokenizer"]["end_token"] = 256; }, "tokenizer: end_token: "},
      {[](json& i) { i["documents"]["count"] = 4; }, "documents: count: "},
      {[](json& i) { i["documents"]["name"] = "../x"; }, "documents: name: "},
      {[](json& i) { i["documents"] = 1; }, "documents: is not an object"}};
  for (const auto& [change, message] : cases) {
    json index = Good();
    change(index);
    ExpectRefused(index, message);
  }
}

TEST(TokenIndexTest, RefusesFilesOutsideTheFolder) {
  for (const std::string name : {"", ".", "..", "/etc/passwd", "a/b.u16", "../b.u16", ".hidden"}) {
    json index = Good();
    index["shards"][0]["name"] = name;
    ExpectRefused(index, "is not the name of a file in the folder");
  }
  json index = Good();
  index["shards"][0]["name"] = std::string("a\0b", 3);
  ExpectRefused(index, "is not the name of a file in the folder");
}

TEST(TokenIndexTest, DamagedTextIsAnIndexOrInvalidArgument) {
  const std::string text = Good().dump();
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(ParseTokenIndex(text.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::StatusOr<TokenIndex> index = ParseTokenIndex(damaged);
      EXPECT_TRUE(index.ok() || index.status().code() == absl::StatusCode::kInvalidArgument)
          << index.status();
      if (!index.ok()) continue;
      int64_t tokens = 0;
      for (const TokenShard& shard : index->shards) tokens += shard.tokens;
      EXPECT_EQ(tokens, index->tokens);
    }
  }
}

class OpenIndexTest : public ::testing::Test {
 protected:
  OpenIndexTest() {
    Write("0.u16", {"a\0b\0", 4});
    Write("1.u16", {"c\0", 2});
    Write("index.json", WriteJson(Good()));
  }
  void Write(const std::string& name, absl::string_view bytes) {
    EXPECT_TRUE(WriteFileAtomically(folder_.File(name), bytes).ok());
  }
  absl::StatusOr<TokenSource> Open(TokenFormat format = TokenFormat::kAuto) {
    return OpenTokens(folder_.File("index.json"), format);
  }
  void ExpectOpenRefused(absl::StatusCode code, const std::string& message) {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.File("index.json") + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  testing::ScratchFolder folder_;
};

TEST_F(OpenIndexTest, ShardsAreOneSequence) {
  const auto source = Open();
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<int32_t> tokens(source->tokens());
  EXPECT_TRUE(source->Read(0, absl::MakeSpan(tokens)).ok());
  EXPECT_THAT(tokens, ElementsAre(97, 98, 99));
  EXPECT_EQ(*source->Fingerprint(),
            *TokenSource::FromBytes("abc", TokenFormat::kText)->Fingerprint());
  EXPECT_TRUE(source->ValidateVocabulary(256).ok());
}

TEST_F(OpenIndexTest, NamesTheShardThatIsMissingOrNotWhole) {
  Write("1.u16", "c");
  ExpectOpenRefused(absl::StatusCode::kInvalidArgument, folder_.File("1.u16") + ": has 1 bytes");
  Write("1.u16", {"c\0d\0", 4});
  ExpectOpenRefused(absl::StatusCode::kInvalidArgument, "has 4 bytes");
  std::filesystem::remove(folder_.File("1.u16"));
  ExpectOpenRefused(absl::StatusCode::kNotFound, folder_.File("1.u16"));
}

TEST_F(OpenIndexTest, ReadingTheFingerprintFindsTheShardThatChanged) {
  Write("1.u16", {"d\0", 2});
  const absl::Status changed = Open()->Fingerprint().status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(changed.message()), HasSubstr(folder_.File("1.u16") + ": its SHA-256"));

  Write("1.u16", {"c\0", 2});
  json other = Good();
  other["fingerprint"] = kHash;
  Write("index.json", WriteJson(other));
  EXPECT_THAT(std::string(Open()->Fingerprint().status().message()), HasSubstr("fingerprint"));
}

// A tokenizer may have tokens that the model does not have, such as an added [PAD], as long as the
// data does not have them.
TEST_F(OpenIndexTest, TokensThatTheDataHasMustBeTheModels) {
  for (const int64_t vocabulary : {100, 255, 300})
    EXPECT_TRUE(Open()->ValidateVocabulary(vocabulary).ok());
  const absl::Status status = Open()->ValidateVocabulary(99);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(folder_.File("1.u16") + ": token 0 is 99, the model's vocabulary has 99"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a vocabulary of 256"));
}

TEST_F(OpenIndexTest, StandsAloneAndSaysItsFormat) {
  EXPECT_THAT(std::string(Open(TokenFormat::kUint32).status().message()),
              HasSubstr("leave --data_format out"));
  EXPECT_GT(Open(TokenFormat::kText)->tokens(), 100);  // JSON may be what one trains on
  for (const std::string& data :
       {folder_.File("*"), absl::StrCat(folder_.File("0.u16"), ",", folder_.File("index.json"))}) {
    EXPECT_THAT(std::string(OpenTokens(data, TokenFormat::kAuto).status().message()),
                HasSubstr("an index cannot be combined"));
  }
}

}  // namespace
}  // namespace distro::worker
