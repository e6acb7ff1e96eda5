#include "worker/model/generate.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/model/tiny_model.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::distro::worker::testing::TinyModel;

std::vector<int32_t> Continue(const TinyModel& tiny, const std::vector<int32_t>& prompt,
                              const GenerateOptions& options) {
  return Generate(*tiny.model, tiny.parameters, prompt, options).value();
}

TEST(GenerateTest, GreedyTakesTheLikeliestTokenEachTime) {
  TinyModel tiny(TinyConfig());
  std::vector<int32_t> text = RandomTokens(4, 40, 1);
  const std::vector<int32_t> added = Continue(tiny, text, {.count = 5});
  ASSERT_EQ(added.size(), 5u);
  for (const int32_t token : added) {
    const auto logits = tiny.model->Logits({.tokens = text}, tiny.parameters).value();
    const auto last = logits.end() - 40;
    EXPECT_EQ(token, std::max_element(last, logits.end()) - last);
    text.push_back(token);
  }
}

TEST(GenerateTest, SeesOnlyTheLastMaxPositionsTokens) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> long_prompt = RandomTokens(30, 40, 2);
  const std::vector<int32_t> seen(long_prompt.end() - 16, long_prompt.end());
  EXPECT_EQ(Continue(tiny, long_prompt, {.count = 4}), Continue(tiny, seen, {.count = 4}));
}

TEST(GenerateTest, DrawsDependOnTheSeedAlone) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> prompt = RandomTokens(4, 40, 3);
  std::set<std::vector<int32_t>> texts;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const GenerateOptions options{.count = 8, .temperature = 2.0, .seed = seed};
    EXPECT_EQ(Continue(tiny, prompt, options), Continue(tiny, prompt, options));
    texts.insert(Continue(tiny, prompt, options));
  }
  EXPECT_EQ(texts.size(), 4u);
}

TEST(GenerateTest, IsGreedyAtLowTemperature) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> prompt = RandomTokens(4, 40, 4);
  EXPECT_EQ(Continue(tiny, prompt, {.count = 6, .temperature = 1e-6, .seed = 5}),
            Continue(tiny, prompt, {.count = 6}));
}

TEST(GenerateTest, RefusesWhatItCannotContinue) {
  TinyModel tiny(TinyConfig());
  const auto code = [&](const std::vector<int32_t>& prompt, const GenerateOptions& options) {
    return Generate(*tiny.model, tiny.parameters, prompt, options).status().code();
  };
  EXPECT_EQ(code({}, {.count = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({40}, {.count = 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1}, {.count = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1}, {.count = 1, .temperature = -1}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
