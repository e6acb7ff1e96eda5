#include "common/method/methods.h"

#include "common/model/layout/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

using ::testing::Contains;

TEST(MethodsTest, CoverNumbersOfProtocol) {
  const auto* const numbers = google::protobuf::GetEnumDescriptor<v1::Method>();
  ASSERT_EQ(static_cast<size_t>(numbers->value_count()), AllMethods().size() + 1);  // unspecified
  for (int i = 0; i < numbers->value_count(); ++i) {
    const auto number = static_cast<v1::Method>(numbers->value(i)->number());
    if (number == v1::METHOD_UNSPECIFIED) continue;
    const Method& method = MethodOf(number);
    EXPECT_THAT(AllMethods(), Contains(&method));
    EXPECT_EQ(absl::StrCat("METHOD_", absl::AsciiStrToUpper(method.name())),
              numbers->value(i)->name());
  }
}

TEST(MethodsTest, AreKnownByStep) {
  const Layout layout = testing::SmallLayout();
  EXPECT_EQ(MethodOf(testing::BuildRound(layout, RoundId(1), 0).header.step()).name(), "signs");
  EXPECT_EQ(MethodOf(testing::BuildDeltaRound(layout, RoundId(1), 0).header.step()).name(),
            "deltas");
}

TEST(MethodsTest, OnlyDeltasBindUpdatesToSlotsAndHaveCaps) {
  const Layout layout = testing::SmallLayout();
  const v1::StepParameters deltas = testing::BuildDeltaRound(layout, RoundId(1), 0).header.step();
  EXPECT_TRUE(MethodOf(v1::METHOD_DELTAS).binds_updates_to_slots());
  EXPECT_FALSE(MethodOf(v1::METHOD_SIGNS).binds_updates_to_slots());
  EXPECT_EQ(MethodOf(deltas).Caps(deltas).size(), layout.tensors().size());
  EXPECT_TRUE(MethodOf(v1::METHOD_SIGNS).Caps({}).empty());
}

TEST(MethodsTest, SignsNeedNoModel) {
  v1::RunConfig config;
  config.set_method(v1::METHOD_SIGNS);
  const auto layout = std::make_shared<const Layout>(testing::SmallLayout());
  EXPECT_TRUE(MethodOf(config).MakeRounds(config, layout, "").ok());
}

TEST(MethodsTest, WeighUpdatesByTheirSteps) {
  EXPECT_EQ(StepsWeight(1, 1), 15);
  EXPECT_EQ(StepsWeight(30, 30), 15);
  EXPECT_EQ(StepsWeight(15, 30), 8);
  EXPECT_EQ(StepsWeight(1, 30), 1);
  EXPECT_EQ(StepsWeight(1, 1000), 1) << "0.5 and less";
}

}  // namespace
}  // namespace distro
