#include "worker/data/token_file.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& tokens) {
  std::string bytes;
  for (T token : tokens) AppendLittleEndian<T>(&bytes, token);
  return bytes;
}

template <typename T>
std::string Llmc(int32_t magic, int32_t version, int32_t count, const std::vector<T>& tokens) {
  std::string bytes = Bytes<int32_t>({magic, version, count});
  bytes.resize(1024);
  return bytes + Bytes(tokens);
}

std::vector<int32_t> ReadAll(const TokenSource& source) {
  std::vector<int32_t> tokens(source.tokens());
  EXPECT_TRUE(source.Read(0, absl::MakeSpan(tokens)).ok());
  return tokens;
}

void ExpectRefused(const std::string& bytes, TokenFormat format, const std::string& message) {
  const absl::Status status = TokenSource::FromBytes(bytes, format).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

const std::vector<uint16_t> kTokens = {7, 65535, 0, 300};

TEST(TokenSourceTest, ReadsEveryFormat) {
  EXPECT_THAT(ReadAll(*TokenSource::FromBytes("a\xC3\xA4", TokenFormat::kText)),
              ElementsAre(97, 0xC3, 0xA4));
  EXPECT_THAT(ReadAll(*TokenSource::FromBytes(Bytes(kTokens), TokenFormat::kUint16)),
              ElementsAre(7, 65535, 0, 300));
  EXPECT_THAT(ReadAll(*TokenSource::FromBytes(Llmc(20240520, 1, 4, kTokens), TokenFormat::kLlmc)),
              ElementsAre(7, 65535, 0, 300));
  EXPECT_THAT(ReadAll(*TokenSource::FromBytes(Bytes<uint32_t>({70000, 1}), TokenFormat::kUint32)),
              ElementsAre(70000, 1));
  EXPECT_THAT(ReadAll(*TokenSource::FromBytes(Llmc<uint32_t>(20240801, 7, 2, {128000, 1}),
                                              TokenFormat::kLlmc)),
              ElementsAre(128000, 1));
}

TEST(TokenSourceTest, ReadsFromTheMiddle) {
  const std::string bytes = Bytes(kTokens);
  const auto source = TokenSource::FromBytes(bytes, TokenFormat::kUint16);
  std::vector<int32_t> two(2);
  EXPECT_TRUE(source->Read(1, absl::MakeSpan(two)).ok());
  EXPECT_THAT(two, ElementsAre(65535, 0));
}

TEST(TokenSourceTest, RefusesTextThatIsNotUtf8WithItsOffset) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"abc\xff", 3},
      {"\x80", 0},
      {"12345678\xC3", 8},
      {"\xC0\xAF", 0},  // overlong
      {"a\xE0\x80\x80", 1},
      {"\xED\xA0\x80", 0},  // a surrogate
      {"\xF4\x90\x80\x80", 0},
      {"\xF0\x80\x80\x80", 0},  // beyond U+10FFFF; overlong
      {"\xE2\x82", 0},
      {"\xE2\x82\xAC\xE2(\xAC", 3},
      {"\xF8\x88\x80\x80\x80", 0}};
  for (const auto& [text, offset] : cases) {
    ExpectRefused(text, TokenFormat::kText, "byte " + std::to_string(offset) + " ");
  }
  EXPECT_TRUE(TokenSource::FromBytes(
                  "\xC2\x80\xE0\xA0\x80\xED\x9F\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\x01\x7F",
                  TokenFormat::kText)
                  .ok());
}

TEST(TokenSourceTest, RefusesHeadersAndSizesThatDoNotFit) {
  ExpectRefused(Llmc(20240521, 1, 4, kTokens), TokenFormat::kLlmc, "magic");
  ExpectRefused(Llmc(20240520, 1, 4, kTokens).substr(0, 1023), TokenFormat::kLlmc, "header");
  ExpectRefused(Llmc(20240801, 7, 4, kTokens), TokenFormat::kLlmc, "8 follow it");
  ExpectRefused(Llmc(20240801, 1, 4, kTokens), TokenFormat::kLlmc, "version 1");
  ExpectRefused(Llmc(20240520, 2, 4, kTokens), TokenFormat::kLlmc, "version 2");
  for (int32_t count : {3, 5, -1, INT32_MIN}) {
    ExpectRefused(Llmc(20240520, 1, count, kTokens), TokenFormat::kLlmc, "8 follow it");
  }
  ExpectRefused(Llmc<uint16_t>(20240520, 1, 0, {}), TokenFormat::kLlmc, "no token");
  ExpectRefused("abc", TokenFormat::kUint16, "2-byte tokens");
  ExpectRefused("abcdef", TokenFormat::kUint32, "4-byte tokens");
  for (TokenFormat format : {TokenFormat::kText, TokenFormat::kUint16, TokenFormat::kUint32}) {
    ExpectRefused("", format, "no token");
  }
}

TEST(TokenSourceTest, NamesTheTokenBeyondTheVocabulary) {
  const std::string bytes = Bytes<uint32_t>({5, 255, 0xFFFFFFFF});
  const auto source = TokenSource::FromBytes(bytes, TokenFormat::kUint32);
  EXPECT_TRUE(source->ValidateVocabulary(int64_t{1} << 32).ok());
  const absl::Status status = source->ValidateVocabulary(255);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 1 is 255"));
  EXPECT_THAT(std::string(source->ValidateVocabulary(256).message()),
              HasSubstr("token 2 is 4294967295"));
}

TEST(TokenSourceTest, FingerprintIsOfTheTokensNotTheFile) {
  const auto fingerprint = [](const std::string& bytes, TokenFormat format) {
    return *TokenSource::FromBytes(bytes, format)->Fingerprint();
  };
  const std::string text = fingerprint("abc", TokenFormat::kText);
  EXPECT_EQ(text.size(), 64u);
  EXPECT_EQ(text, fingerprint(Bytes<uint16_t>({97, 98, 99}), TokenFormat::kUint16));
  EXPECT_EQ(text, fingerprint(Llmc<uint16_t>(20240520, 1, 3, {97, 98, 99}), TokenFormat::kLlmc));
  EXPECT_EQ(text, fingerprint(Llmc<uint32_t>(20240801, 7, 3, {97, 98, 99}), TokenFormat::kLlmc));
  EXPECT_EQ(text, fingerprint(Bytes<uint32_t>({97, 98, 99}), TokenFormat::kUint32));
  EXPECT_NE(text, fingerprint("abd", TokenFormat::kText));
  EXPECT_NE(text, fingerprint(std::string("abc\0", 4), TokenFormat::kText));
  // Longer than one piece of the hash, with the difference at the end.
  const std::string long_text(100000, 'x');
  EXPECT_NE(fingerprint(long_text, TokenFormat::kText),
            fingerprint(long_text.substr(1) + "y", TokenFormat::kText));
}

// sha256(u64 3, u32 97, u32 98, u32 99)
TEST(TokenSourceTest, FingerprintIsFixed) {
  EXPECT_EQ(*TokenSource::FromBytes("abc", TokenFormat::kText)->Fingerprint(),
            "269183a246b435c0d088afadaadc0a2a1e6cbcf8004f5e27a35b9d54b1f87049");
}

TEST(TokenSourceTest, CutOrChangedShardsAreReadOrRefused) {
  for (const std::string& bytes :
       {Llmc(20240520, 1, 4, kTokens), Llmc<uint32_t>(20240801, 7, 2, {128000, 1})}) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(TokenSource::FromBytes(bytes.substr(0, i), TokenFormat::kLlmc).status().code(),
                absl::StatusCode::kInvalidArgument)
          << i;
      for (int flip : {0x01, 0x80, 0xFF}) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        const absl::Status status = TokenSource::FromBytes(damaged, TokenFormat::kLlmc).status();
        const bool in_header = i < 12;
        EXPECT_EQ(status.code(),
                  in_header ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk)
            << i;
      }
    }
  }
}

TEST(TokenSourceTest, CutOrChangedTextIsReadOrRefused) {
  const std::string text = "Gr\xC3\xBC\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x98\x80.";
  for (size_t i = 0; i < text.size(); ++i) {
    for (int flip = 0; flip < 256; ++flip) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      for (const std::string& bytes : {damaged, damaged.substr(0, i)}) {
        const absl::Status status = TokenSource::FromBytes(bytes, TokenFormat::kText).status();
        EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
      }
    }
  }
}

class OpenTokensTest : public ::testing::Test {
 protected:
  absl::StatusOr<TokenSource> Open(const std::string& name, const std::string& bytes,
                                   TokenFormat format = TokenFormat::kAuto) {
    const absl::Status status = WriteFileAtomically(folder_.File(name), bytes);
    EXPECT_TRUE(status.ok()) << status;
    return OpenTokens(folder_.File(name), format);
  }
  testing::ScratchFolder folder_;
};

TEST_F(OpenTokensTest, TellsTheFormatByNameAndMagic) {
  for (const char* name : {"a.txt", "a.md", "a.pod"})
    EXPECT_THAT(ReadAll(*Open(name, "me")), ElementsAre('m', 'e'));
  for (const std::string& bytes : {Bytes(kTokens), Llmc(20240520, 1, 4, kTokens)})
    EXPECT_THAT(ReadAll(*Open("a.bin", bytes)), ElementsAre(7, 65535, 0, 300));
  EXPECT_THAT(ReadAll(*Open("a.bin", Llmc<uint32_t>(20240801, 7, 1, {70000}))), ElementsAre(70000));
  EXPECT_THAT(ReadAll(*Open("a.u16", Bytes(kTokens))), ElementsAre(7, 65535, 0, 300));
  EXPECT_THAT(ReadAll(*Open("a.u32", Bytes<uint32_t>({70000}))), ElementsAre(70000));
}

TEST_F(OpenTokensTest, PrefersGivenFormat) {
  EXPECT_EQ(Open("a.bin", "text", TokenFormat::kText)->tokens(), 4);
  EXPECT_EQ(Open("a", "text", TokenFormat::kUint16)->tokens(), 2);
}

TEST_F(OpenTokensTest, MovesFileWithSource) {
  absl::StatusOr<TokenSource> source = Open("a.txt", "text");
  ASSERT_TRUE(source.ok()) << source.status();
  const TokenSource moved = *std::move(source);
  EXPECT_THAT(ReadAll(moved), ElementsAre('t', 'e', 'x', 't'));
}

TEST_F(OpenTokensTest, ErrorsNameTheFile) {
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"a", "text"},
           {"a.txt", "\xff"},
           {"a.txt", ""},
           {"a.bin", "abc"},
           {"a.bin", Llmc<uint16_t>(20240801, 7, 4, {1})}}) {
    const absl::Status status = Open(name, bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.File(name) + ": "));
  }
  EXPECT_EQ(OpenTokens(folder_.File("absent.txt"), TokenFormat::kAuto).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(OpenTokensTest, DocumentsAreRefusedWithTheToolThatMakesTokensOfThem) {
  for (const char* name : {"a.jsonl", "a.ndjson", "a.parquet"}) {
    const absl::Status status = Open(name, "{\"text\": \"One.\"}").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("scripts/distro-data"));
  }
  EXPECT_EQ(Open("a.jsonl", "{}", TokenFormat::kText)->tokens(), 2);
}

// A .bin says nothing about its width. Llama's tokens have upper halves of 0 and 1, GPT-2's of 0.
TEST_F(OpenTokensTest, RefusesABinOf32BitTokensAndNamesTheFlag) {
  for (const std::vector<uint32_t>& tokens :
       {std::vector<uint32_t>{464, 3290, 318, 50256}, std::vector<uint32_t>{128000, 791, 100264}}) {
    const absl::Status status = Open("a.bin", Bytes(tokens)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--data_format uint32"));
    EXPECT_EQ(Open("a.bin", Bytes(tokens), TokenFormat::kUint32)->tokens(),
              static_cast<int64_t>(tokens.size()));
    EXPECT_EQ(Open("a.bin", Bytes(tokens), TokenFormat::kUint16)->tokens(),
              static_cast<int64_t>(2 * tokens.size()));
  }
}

TEST_F(OpenTokensTest, TakesBinOf16BitTokens) {
  EXPECT_EQ(Open("a.bin", Bytes<uint16_t>({464, 0, 318, 16}))->tokens(), 4);
  EXPECT_EQ(Open("a.bin", Bytes<uint16_t>({1, 0, 3, 2, 15, 15}))->tokens(), 6);  // few symbols
  EXPECT_EQ(Open("a.bin", Bytes<uint16_t>({464, 0, 318}))->tokens(), 3);
}

TEST_F(OpenTokensTest, RefusesAnEvaluationFileOfLlmc) {
  EXPECT_THAT(std::string(Open("a.bin", Llmc(20240522, 1, 4, kTokens)).status().message()),
              HasSubstr("20240522"));
}

TEST_F(OpenTokensTest, NamesTokenBeyondVocabulary) {
  const auto message = [](const absl::StatusOr<TokenSource>& source) {
    return std::string(source->ValidateVocabulary(50257).message());
  };
  const auto wide = message(Open("a.u16", Bytes<uint32_t>({464, 0xFFFF0000})));
  EXPECT_THAT(wide, HasSubstr("a.u16: token 3 is 65535"));
  EXPECT_THAT(wide, HasSubstr("--data_format uint32"));
  EXPECT_THAT(message(Open("a.u32", Bytes<uint16_t>({464, 3290}))),
              HasSubstr("--data_format uint16"));
  EXPECT_THAT(message(Open("a.bin", Llmc(20240520, 1, 4, kTokens))),
              ::testing::Not(HasSubstr("--data_format")));
}

TEST_F(OpenTokensTest, SeveralFilesAreOneSequence) {
  ASSERT_TRUE(Open("b.u16", Bytes<uint16_t>({98, 99})).ok());
  ASSERT_TRUE(Open("c.u32", Bytes<uint32_t>({100})).ok());
  ASSERT_TRUE(Open("a.txt", "a").ok());
  const auto source = OpenTokens(absl::StrCat(folder_.File("a.txt"), ",", folder_.File("*.u*")),
                                 TokenFormat::kAuto);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(ReadAll(*source), ElementsAre(97, 98, 99, 100));
  EXPECT_EQ(*source->Fingerprint(),
            *TokenSource::FromBytes("abcd", TokenFormat::kText)->Fingerprint());
  for (int64_t begin = 0; begin <= 4; ++begin) {
    for (int64_t end = begin; end <= 4; ++end) {
      std::vector<int32_t> some(end - begin);
      EXPECT_TRUE(source->Read(begin, absl::MakeSpan(some)).ok());
      for (int64_t i = begin; i < end; ++i) EXPECT_EQ(some[i - begin], 97 + i);
    }
  }
  EXPECT_THAT(std::string(source->ValidateVocabulary(100).message()),
              HasSubstr("c.u32: token 0 is 100"));
}

TEST_F(OpenTokensTest, AppliesFormatToFiles) {
  ASSERT_TRUE(Open("1", "ab", TokenFormat::kUint16).ok());
  ASSERT_TRUE(Open("2", "cd", TokenFormat::kUint16).ok());
  EXPECT_EQ(OpenTokens(folder_.File("?"), TokenFormat::kUint16)->tokens(), 2);
  EXPECT_THAT(std::string(OpenTokens(folder_.File("?"), TokenFormat::kAuto).status().message()),
              HasSubstr(folder_.File("1") + ": "));
}

TEST(TokenFormatTest, HasNames) {
  EXPECT_EQ(*ParseTokenFormat("auto"), TokenFormat::kAuto);
  EXPECT_EQ(*ParseTokenFormat("text"), TokenFormat::kText);
  EXPECT_EQ(*ParseTokenFormat("llmc"), TokenFormat::kLlmc);
  EXPECT_EQ(*ParseTokenFormat("uint16"), TokenFormat::kUint16);
  EXPECT_EQ(*ParseTokenFormat("uint32"), TokenFormat::kUint32);
  EXPECT_EQ(ParseTokenFormat("bytes").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
