#include "common/model/checkpoint/module_description.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGood[] = R"({"trained": {"b": [2, 3], "a.weight": [1]}, "more": 1})";

TEST(ModuleDescriptionTest, TensorsAreInTheOrderOfTheManifest) {
  const auto manifest = TrainedTensors(kGood);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(manifest->tensors(),
              ElementsAre(TensorSpec{"a.weight", {1}}, TensorSpec{"b", {2, 3}}));
}

TEST(ModuleDescriptionTest, IsTheCompanionOfItsName) {
  EXPECT_EQ(ModuleDescription({}), "");
  EXPECT_EQ(ModuleDescription({{"distro_module.json", kGood}, {"tokenizer.json", "{}"}}), kGood);
}

TEST(ModuleDescriptionTest, NamesTheKeyThatIsWrong) {
  for (const auto& [text, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[]", "\"trained\""},
           {"{}", "\"trained\""},
           {R"({"trained": 3})", "\"trained\""},
           {R"({"trained": {}})", "distro_module.json"},
           {R"({"trained": {"a": 3}})", "shape of a"},
           {R"({"trained": {"a": [-1]}})", "shape of a"},
           {R"({"trained": {"a": [1.5]}})", "shape of a"},
           {R"({"trained": {"a": []}})", "a"},
           {R"({"trained": {"a": [18446744073709551615]}})", "a"}}) {
    const absl::Status status = TrainedTensors(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
}

TEST(ModuleDescriptionTest, DamagedTextIsADescriptionOrInvalidArgument) {
  const std::string text = kGood;
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(TrainedTensors(text.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument);
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto manifest = TrainedTensors(damaged);
      EXPECT_TRUE(manifest.ok() || absl::IsInvalidArgument(manifest.status())) << damaged;
    }
  }
}

}  // namespace
}  // namespace distro
