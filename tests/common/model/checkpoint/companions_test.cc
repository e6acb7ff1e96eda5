// Companion files of a run: which names are allowed, and which lists and bytes of a peer are
// refused.
#include "common/model/checkpoint/companions.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

const Companions kTwo = {{"tokenizer.json", "{\"model\": 1}"}, {"tokenizer_config.json", "{}"}};

class CompanionsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File(name), bytes).ok());
  }
  void ExpectList(const std::function<void(CompanionList&)>& change, const std::string& message) {
    CompanionList list = DescribeCompanions(kTwo);
    change(list);
    const absl::Status status = CheckCompanionList(list);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  testing::ScratchFolder folder_;
};

TEST_F(CompanionsTest, OnlyTheNamedFilesTravel) {
  Write("tokenizer_config.json", "{}");
  Write("tokenizer.json", "{\"model\": 1}");
  Write("README.md", "no");
  Write("model.safetensors", "no");
  const auto read = ReadCompanions(folder_.path());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].name, "tokenizer.json") << "ascending";
  const CompanionList list = DescribeCompanions(*read);
  EXPECT_TRUE(CheckCompanionList(list).ok());
  EXPECT_EQ(CompanionBytes(list), 14u);
  EXPECT_EQ(ToHex(Sha256("{}")), ToHex(Sha256((*read)[1].bytes)));
}

TEST_F(CompanionsTest, RefusesEmptyFile) {
  Write("tokenizer.model", "");
  const absl::Status status = ReadCompanions(folder_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer.model: is empty"));
}

TEST_F(CompanionsTest, NamesWhatIsNoTokenizer) {
  for (const auto& [bytes, what] :
       {std::pair("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        std::pair("<!DOCTYPE html><html>", "web page"), std::pair("Entry not found", "answer")}) {
    Write("tokenizer.json", bytes);
    const absl::Status status = ReadCompanions(folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.File("tokenizer.json") + ": is"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
}

TEST_F(CompanionsTest, TooManyBytesAreNotReadIntoMemory) {
  Write("tokenizer.json", "x");
  std::filesystem::resize_file(folder_.File("tokenizer.json"), kMaxCompanionBytes);
  EXPECT_TRUE(ReadCompanions(folder_.path()).ok());
  Write("tokenizer_config.json", "{}");
  EXPECT_EQ(ReadCompanions(folder_.path()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CompanionsTest, RefusesBadList) {
  ExpectList([](auto& l) { l[0].set_name("../tokenizer.json"); }, "not one of the files");
  ExpectList([](auto& l) { l[0].set_name("config.json"); }, "not one of the files");
  ExpectList([](auto& l) { l[0].set_name(std::string("tokenizer.json\0", 15)); }, "not one of");
  ExpectList([](auto& l) { l[1].set_name("tokenizer.json"); }, "comes twice");
  ExpectList([](auto& l) { l[0].Swap(&l[1]); }, "out of order");
  ExpectList([](auto& l) { l[0].set_size_bytes(0); }, "is empty");
  ExpectList([](auto& l) { l[0].set_size_bytes(kMaxCompanionBytes); }, "together");
  ExpectList([](auto& l) { l[1].set_size_bytes(UINT64_MAX); }, "together");
  ExpectList([](auto& l) { l[0].mutable_sha256()->pop_back(); }, "32 bytes");
  EXPECT_TRUE(CheckCompanionList({}).ok());
}

TEST_F(CompanionsTest, DamagedBytesAreRefusedAtEveryByte) {
  const CompanionList list = DescribeCompanions(kTwo);
  const std::string bytes = kTwo[0].bytes + kTwo[1].bytes;
  const auto split = SplitCompanions(list, bytes);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ((*split)[1].bytes, "{}");
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(SplitCompanions(list, bytes.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument);
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const absl::Status status = SplitCompanions(list, damaged).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(i < kTwo[0].bytes.size() ? "tokenizer.json" : "tokenizer_config.json"));
  }
  EXPECT_FALSE(SplitCompanions(list, bytes + "x").ok());
}

TEST_F(CompanionsTest, FetchesOnlyWhatIsMissing) {
  const CompanionList list = DescribeCompanions(kTwo);
  int fetched = 0;
  const auto fetch = [&](const v1::CompanionFile& file, const std::string& path) {
    ++fetched;
    for (const Companion& companion : kTwo) {
      if (companion.name == file.name()) return WriteFileAtomically(path, companion.bytes);
    }
    return absl::InternalError("asked for another file");
  };
  const std::string folder = folder_.File("kept");
  ASSERT_TRUE(CollectCompanions(list, folder, fetch).ok());
  EXPECT_EQ(fetched, 2);
  ASSERT_TRUE(WriteFileAtomically(folder + "/tokenizer.json", "damaged").ok());
  const auto again = CollectCompanions(list, folder, fetch);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(fetched, 3);
  EXPECT_EQ((*again)[0].bytes, kTwo[0].bytes);
}

TEST_F(CompanionsTest, FetchesNothingForRefusedList) {
  CompanionList list = DescribeCompanions(kTwo);
  list[0].set_name("authorized_keys");
  const auto fetch = [](const v1::CompanionFile&, const std::string&) {
    ADD_FAILURE() << "fetched";
    return absl::OkStatus();
  };
  EXPECT_EQ(CollectCompanions(list, folder_.File("kept"), fetch).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("kept")));
}

TEST_F(CompanionsTest, ChecksPinnedTokenizer) {
  const std::string pinned = ToHex(Sha256(kTwo[0].bytes));
  EXPECT_TRUE(CheckPinnedTokenizer(pinned, kTwo).ok());
  EXPECT_TRUE(CheckPinnedTokenizer("", kTwo).ok());
  EXPECT_TRUE(CheckPinnedTokenizer(std::string(64, 'a'), {}).ok()) << "there is none to compare";
  const absl::Status other = CheckPinnedTokenizer(std::string(64, 'a'), kTwo);
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()), HasSubstr("tokenizer.json is " + pinned));
}

}  // namespace
}  // namespace distro
