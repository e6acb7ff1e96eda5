#include "common/model/checkpoint/safetensors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

std::string Container(const std::string& header, const std::string& data) {
  std::string bytes;
  AppendLittleEndian<uint64_t>(&bytes, header.size());
  return bytes + header + data;
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                      ",\"data_offsets\":", offsets, "}");
}

void ExpectRefused(const std::string& bytes, const std::string& reason) {
  const absl::Status status = ParseSafetensors(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes.substr(0, 300);
  EXPECT_THAT(std::string(status.message()), StartsWith(reason + ": "));
}

void ExpectHeaderRefused(const std::string& header, const std::string& reason) {
  ExpectRefused(Container(header, std::string(8, '\0')), reason);
}

TEST(SafetensorsReaderTest, GivesTensorsByNameWithTheirBytes) {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             Entry("z", "BF16", "[2]", "[0,4]") + "," +
                             Entry("a", "I64", "[]", "[4,12]") + "}   ";
  const std::string bytes = Container(header, "abcdefghijkl");
  const auto contents = ParseSafetensors(bytes);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->tensors.size(), 2u);
  EXPECT_EQ(contents->tensors[0].name, "a");
  EXPECT_EQ(contents->tensors[0].dtype, "I64");
  EXPECT_EQ(contents->tensors[0].elements(), 1);
  EXPECT_EQ(contents->tensors[0].bytes, "efghijkl");
  EXPECT_EQ(contents->tensors[1].bytes, "abcd");
  EXPECT_THAT(contents->metadata, ElementsAre(Pair("format", "pt")));
}

// The worked example of docs/checkpoints.md.
TEST(SafetensorsReaderTest, ReadsTheExampleOfTheDocumentation) {
  const std::string bytes = std::string("\x38\0\0\0\0\0\0\0", 8) +
                            R"({"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}}  )" +
                            std::string("\0\0\x80\x3f\0\0\0\xc0", 8);
  ASSERT_EQ(bytes.size(), 72u);
  const auto contents = ParseSafetensors(bytes);
  ASSERT_TRUE(contents.ok()) << contents.status();
  float values[2];
  ASSERT_TRUE(CopyToFloat(contents->tensors.at(0), absl::MakeSpan(values)).ok());
  EXPECT_THAT(values, ElementsAre(1, -2));
}

TEST(SafetensorsReaderTest, TakesEmptyFilesEmptyTensorsAndEveryDtype) {
  EXPECT_TRUE(ParseSafetensors(Container("{}", "")).ok());
  EXPECT_TRUE(
      ParseSafetensors(Container("{" + Entry("e", "F32", "[0,5]", "[0,0]") + "}", "")).ok());
  for (const char* dtype : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"}) {
    EXPECT_TRUE(
        ParseSafetensors(Container("{" + Entry("t", dtype, "[8]", "[0,8]") + "}", "12345678")).ok())
        << dtype;
  }
  for (const char* dtype : {"F64", "I64", "U64", "C64"}) {
    EXPECT_TRUE(
        ParseSafetensors(Container("{" + Entry("t", dtype, "[1]", "[0,8]") + "}", "12345678")).ok())
        << dtype;
  }
  EXPECT_TRUE(
      ParseSafetensors(Container("{" + Entry("t", "F4", "[16]", "[0,8]") + "}", "12345678")).ok());
}

TEST(SafetensorsReaderTest, RefusesHeaderLengthsBeyondTheFile) {
  ExpectRefused("", "header_length");
  ExpectRefused(std::string(7, '\0'), "header_length");
  std::string long_header(9 + kMaxSafetensorsHeaderBytes, ' ');
  const uint64_t length = kMaxSafetensorsHeaderBytes + 1;
  std::memcpy(long_header.data(), &length, sizeof(length));
  ExpectRefused(long_header, "header_length");
}

TEST(SafetensorsReaderTest, RefusesWhatIsNotTheHeadersJson) {
  for (const char* header :
       {"", " {}", "[]", "{", "{}x", "{\"a\":}", "{\"\xff\":{}}", "\xEF\xBB\xBF{}"}) {
    ExpectHeaderRefused(header, "json");
  }
  ExpectHeaderRefused(std::string("{}\0", 3), "json");
  for (const char* header :
       {"{\"a\":1}", "{\"a\":[]}", "{\"a\":\"x\"}", "{\"a\":null}", "{\"a\":{}}"}) {
    ExpectHeaderRefused(header, "fields");
  }
  ExpectHeaderRefused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "fields");
  ExpectHeaderRefused("{\"a\":{\"extra\":1}}", "fields");
  ExpectHeaderRefused("{\"a\":{\"shape\":" + std::string(100000, '['), "shape");
}

TEST(SafetensorsReaderTest, RefusesMetadataThatIsNotStrings) {
  for (const char* value :
       {"1", "[]", "null", "{\"a\":1}", "{\"a\":{}}", "{\"a\":[]}", "{\"a\":true}"}) {
    ExpectHeaderRefused(absl::StrCat("{\"__metadata__\":", value, "}"), "metadata");
  }
}

TEST(SafetensorsReaderTest, RefusesRepeatedNamesAndKeys) {
  const std::string a = Entry("a", "F32", "[1]", "[0,4]");
  ExpectHeaderRefused("{" + a + "," + a + "}", "duplicate");
  ExpectHeaderRefused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "duplicate");
  ExpectHeaderRefused("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", "duplicate");
  ExpectHeaderRefused("{\"__metadata__\":{},\"__metadata__\":{}}", "duplicate");
}

TEST(SafetensorsReaderTest, RefusesDtypesShapesAndOffsetsThatDoNotFit) {
  const std::vector<std::vector<std::string>> cases = {
      {"F33", "[2]", "[0,8]", "dtype"},
      {"", "[2]", "[0,8]", "dtype"},
      {"F32", "2", "[0,8]", "shape"},
      {"F32", "[-2]", "[0,8]", "shape"},
      {"F32", "[2.0]", "[0,8]", "shape"},
      {"F32", "[\"2\"]", "[0,8]", "shape"},
      {"F32", "[[2]]", "[0,8]", "shape"},
      {"F32", "[{}]", "[0,8]", "shape"},
      {"F32", "[3]", "[0,8]", "shape"},
      {"F32", "[18446744073709551618]", "[0,8]", "shape"},
      {"F32", "[9223372036854775808]", "[0,8]", "shape"},
      {"F32", "[4611686018427387906]", "[0,8]", "shape"},
      {"F32", "[" + std::string(200, '1') + "]", "[0,8]", "shape"},
      {"F4", "[3]", "[0,1]", "shape"},
      {"F32", "[2]", "8", "offsets"},
      {"F32", "[2]", "[0]", "offsets"},
      {"F32", "[2]", "[0,8,8]", "offsets"},
      {"F32", "[2]", "[-8,0]", "offsets"},
      {"F32", "[2]", "[0,8.0]", "offsets"},
      {"F32", "[2]", "[8,0]", "offsets"},
      {"F32", "[1]", "[4,8]", "offsets"},
      {"F32", "[2]", "[9223372036854775800,9223372036854775808]", "offsets"},
  };
  for (const auto& c : cases) ExpectHeaderRefused("{" + Entry("a", c[0], c[1], c[2]) + "}", c[3]);
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  ExpectHeaderRefused("{" + Entry("a", "F32", many + "]", "[0,4]") + "}", "shape");
}

TEST(SafetensorsReaderTest, RefusesDataThatIsNotCoveredOnce) {
  const std::string a = Entry("a", "F32", "[1]", "[0,4]");
  ExpectRefused(Container("{" + a + "}", "12345"), "trailing");
  ExpectRefused(Container("{" + a + "}", "123"), "truncated");
  ExpectRefused(Container("{" + a + "," + Entry("b", "F32", "[1]", "[8,12]") + "}", "123456789012"),
                "offsets");
  ExpectRefused(Container("{" + a + "," + Entry("b", "F32", "[1]", "[2,6]") + "}", "123456"),
                "offsets");
  ExpectRefused(Container("{" + a + "," + Entry("b", "F32", "[1]", "[0,4]") + "}", "1234"),
                "offsets");
}

// Untrusted text in a message is shortened and has no control characters.
TEST(SafetensorsReaderTest, MessagesStayShort) {
  const std::string name = "\\n" + std::string(510, 'n'),
                    long_text = "\\n" + std::string(100000, 'n');
  ExpectHeaderRefused("{" + Entry(long_text, "F32", "[2]", "[0,8]") + "}", "name");
  for (const std::string& header :
       {"{" + Entry(name, "F33", "[2]", "[0,8]") + "}",
        "{" + Entry("a", long_text, "[2]", "[0,8]") + "}", "{\"a\":{\"" + long_text + "\":1}}",
        "{" + Entry(name, "F32", "[2]", "[8,16]") + "}", "{\"" + long_text}) {
    const absl::Status status = ParseSafetensors(Container(header, std::string(8, '\0'))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 1000u);
    EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
  }
}

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  std::string Write(std::vector<FloatTensor> tensors,
                    std::map<std::string, std::string> metadata = {}) {
    const absl::Status status = WriteSafetensors(path_, std::move(tensors), std::move(metadata));
    EXPECT_TRUE(status.ok()) << status;
    return *ReadFile(path_);
  }

  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
  const absl::Span<const float> all_ = values_;
  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("t.safetensors");
};

TEST_F(SafetensorsWriterTest, ReadsBackInAnyOrderWithTheSameBytes) {
  const std::vector<FloatTensor> tensors = {{"b", {2, 2}, all_.subspan(0, 4)},
                                            {"A\"\n\xC3\xA4", {2}, all_.subspan(4)}};
  const std::string bytes = Write(tensors, {{"round", "42"}});
  EXPECT_EQ(bytes, Write({tensors[1], tensors[0]}, {{"round", "42"}}));
  const auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata(), ElementsAre(Pair("format", "pt"), Pair("round", "42")));
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "A\"\n\xC3\xA4");
  const SafetensorsTensor* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 2}));
  std::vector<float> read(4);
  ASSERT_TRUE(CopyToFloat(*b, absl::MakeSpan(read)).ok());
  EXPECT_THAT(read, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(file->Find("c"), nullptr);
}

TEST_F(SafetensorsWriterTest, AlignsTheData) {
  const std::string bytes = Write({{"t", {6}, all_}});
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 24);
}

TEST_F(SafetensorsWriterTest, LeavesNoTemporaryFile) {
  Write({{"t", {6}, all_}});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(SafetensorsWriterTest, RefusesNamesAndShapesThatTheFormatLacks) {
  const std::vector<std::vector<FloatTensor>> cases = {{{"", {6}, all_}},
                                                       {{"__metadata__", {6}, all_}},
                                                       {{"\xff", {6}, all_}},
                                                       {{"t", {6}, all_}, {"t", {6}, all_}},
                                                       {{"t", {2, 2}, all_}},
                                                       {{"t", {-6}, all_}},
                                                       {{"t", {int64_t{1} << 62, 4}, {}}}};
  for (const auto& tensors : cases) {
    const absl::Status status = WriteSafetensors(path_, tensors, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor " + tensors[0].name));
  }
  EXPECT_EQ(WriteSafetensors(path_, {}, {{"a", "\xff"}}).code(),
            absl::StatusCode::kInvalidArgument);
}

// A cut file is always refused; a flipped byte gives other values or the documented error, never
// another outcome.
TEST_F(SafetensorsWriterTest, DamagedFilesAreReadOrRefused) {
  const std::string bytes = Write({{"a", {2}, all_.subspan(0, 2)}, {"b", {2, 2}, all_.subspan(2)}});
  const size_t data = bytes.size() - 24;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(ParseSafetensors(bytes.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::Status status = ParseSafetensors(damaged).status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
      const bool known = i < 8 || i >= data;
      EXPECT_TRUE(!known || status.ok() == (i >= data)) << i;
    }
  }
}

}  // namespace
}  // namespace distro
