#include "common/model/layout/finite.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

const Layout kLayout = *Layout::Create(*Manifest::Create({{"a", {4}}, {"b", {3, 5}}}), 8);

TEST(FiniteTest, FiniteWeightsPass) {
  TensorBuffer tensors(kLayout);
  tensors.tensor(1)[7] = std::numeric_limits<float>::max();
  EXPECT_TRUE(CheckFinite(kLayout, tensors).ok());
}

TEST(FiniteTest, NamesElement) {
  for (const auto& [value, text] :
       {std::pair{std::numeric_limits<float>::quiet_NaN(), "is nan"},
        std::pair{-std::numeric_limits<float>::infinity(), "is -inf"}}) {
    TensorBuffer tensors(kLayout);
    tensors.tensor(1)[7] = value;
    const absl::Status status = CheckFinite(kLayout, tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor b: the element [1, 2]"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

}  // namespace
}  // namespace distro
