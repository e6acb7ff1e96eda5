#include "common/model/listed_tensors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ListedTensorsTest : public ::testing::Test {
 protected:
  std::string Refusal(absl::string_view config) const {
    const absl::Status status = ListedTensorsInside(layout_, config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
    return std::string(status.message());
  }
  const Layout layout_ = *Layout::Create(
      *Manifest::Create({{"bias", {4}}, {"conv", {2, 2, 3}}, {"embed", {8, 2}}, {"head", {2, 8}}}),
      /*segment_blocks=*/4);
};

TEST_F(ListedTensorsTest, MatricesAreInsideUnlessListed) {
  EXPECT_THAT(*ListedTensorsInside(layout_, R"({"distro_outside": ["head", "embed"]})"),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(*ListedTensorsInside(layout_, R"({"model_type": "gpt2", "distro_outside": []})"),
              ElementsAre(false, true, true, true));
}

TEST_F(ListedTensorsTest, NamesFaultAndRemedy) {
  EXPECT_THAT(Refusal("{"), HasSubstr("config.json"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("distro_outside"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("[] for none"));
  EXPECT_THAT(Refusal(R"({"distro_outside": "head"})"), HasSubstr("no list"));
  EXPECT_THAT(Refusal(R"({"distro_outside": ["lm_head"]})"), HasSubstr("\"lm_head\""));
  EXPECT_THAT(Refusal(R"({"distro_outside": [3]})"), HasSubstr("\"3\""));
}

TEST_F(ListedTensorsTest, WritesListIntoConfiguration) {
  const auto config = WithListedOutside(R"({"model_type": "x"})", {"head", "embed", "head"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(*config, HasSubstr("\"model_type\": \"x\""));
  EXPECT_THAT(*ListedTensorsInside(layout_, *config), ElementsAre(false, true, false, false));
  for (const char* wrong : {"", "[]", "{"}) {
    EXPECT_EQ(WithListedOutside(wrong, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace distro
