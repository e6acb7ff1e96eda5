// The integers of deltas against golden data of a second implementation (tests/golden/deltas):
// scales, levels, scale codes, caps, and what single blocks combine to.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/method/deltas/caps.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/scale.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::GoldenArray;
using testing::GoldenList;
using testing::LoadGolden;

TEST(GoldenScaleTest, MatchesMagnitudes) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/tables");
  const auto scales = data.at("magnitude").As<int64_t>();
  const auto levels = data.at("level_value").As<int64_t>();
  ASSERT_EQ(std::ssize(scales), kScaleCodes);
  ASSERT_EQ(std::ssize(levels), kScaleCodes * kLevels);
  for (int code = 0; code < kScaleCodes; ++code) {
    EXPECT_EQ(ScaleOf(code), scales[code]) << code;
    for (int level = 0; level < kLevels; ++level)
      EXPECT_EQ(LevelMagnitude(code, level), levels[code * kLevels + level])
          << code << " " << level;
  }
}

TEST(GoldenScaleTest, MatchesCodesAtBorders) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/codes");
  const auto codes = data.at("code").As<int16_t>();
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto values = GoldenList<float>(data.at("value"), data.at("value_offset"), i);
    int64_t sum = 0;
    for (const float value : values) sum += ScaleUnits(value);
    const std::optional<uint8_t> code = ChooseScale(sum, static_cast<int>(values.size()));
    EXPECT_EQ(code.has_value() ? *code : -1, codes[i]) << "block " << i << ", sum " << sum;
  }
}

TEST(GoldenScaleTest, CapsFollowFromRatesAndTheMedian) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/caps");
  const auto caps = data.at("cap").As<uint8_t>();
  const auto medians = data.at("median").As<int16_t>();
  const int64_t steps = data.at("rate").shape[1];
  for (size_t i = 0; i < caps.size(); ++i) {
    std::optional<uint8_t> median;
    if (medians[i] >= 0) median = static_cast<uint8_t>(medians[i]);
    const auto rates = data.at("rate").As<float>().subspan(i * steps, steps);
    EXPECT_EQ(DeltaCap(rates, median), caps[i]) << "case " << i;
  }
}

class GoldenBlockTest : public ::testing::Test {
 protected:
  template <typename T>
  T At(const std::string& name, int64_t i) const {
    return data_.at(name).As<T>().at(i);
  }
  template <typename T>
  std::vector<T> List(const std::string& name, const std::string& offsets, int64_t i) const {
    const auto list = GoldenList<T>(data_.at(name), data_.at(offsets), i);
    return {list.begin(), list.end()};
  }
  int64_t cases() const { return data_.at("rows").shape[0]; }

  std::vector<BlockExtent> Extent(int64_t i) const {
    return {ExtentOf({.rows = At<uint8_t>("rows", i),
                      .cols = At<uint8_t>("cols", i),
                      .elements = At<uint16_t>("elements", i)},
                     0)};
  }
  // The case's records, each an update of one block.
  std::vector<DeltaUpdate> Updates(int64_t i) const {
    std::vector<DeltaUpdate> updates;
    for (const uint8_t code : List<uint8_t>("record_code", "record_offset", i)) {
      const int64_t record =
          At<uint32_t>("record_offset", i) + static_cast<int64_t>(updates.size());
      DeltaUpdate update = {.k = 0,
                            .positions = List<uint16_t>("entry_index", "entry_offset", record),
                            .signs = List<int8_t>("entry_sign", "entry_offset", record),
                            .codes = {code}};
      update.k = static_cast<int>(update.positions.size());
      updates.push_back(std::move(update));
    }
    return updates;
  }
  std::vector<WeightedDelta> Weighted(int64_t i, const std::vector<DeltaUpdate>& updates) const {
    const auto weights = List<uint32_t>("record_weight", "record_offset", i);
    std::vector<WeightedDelta> weighted;
    for (size_t j = 0; j < updates.size(); ++j)
      weighted.push_back({.update = &updates[j], .weight = static_cast<int>(weights[j])});
    return weighted;
  }
  MeanRule Rule(int64_t i) const {
    const int64_t weights = At<uint32_t>("included_weight", i);
    return {.divisor = At<uint8_t>("divisor", i) == 1 ? Divisor::kAll : Divisor::kSenders,
            .weights = weights,
            .least_senders = LeastSenders(weights, At<uint16_t>("floor_256", i))};
  }

  // What the case's list `name` says of its positions, without zeros.
  template <typename T>
  std::map<int, int64_t> Expected(const std::string& name, int64_t i) const {
    const auto positions = List<uint16_t>("sum_index", "sum_offset", i);
    const auto values = List<T>(name, "sum_offset", i);
    std::map<int, int64_t> expected;
    for (size_t j = 0; j < positions.size(); ++j) {
      if (values[j] != 0) expected[positions[j]] = values[j];
    }
    return expected;
  }
  static std::map<int, int64_t> ByPosition(const DeltaMeans& means) {
    std::map<int, int64_t> values;
    for (size_t i = 0; i < means.values.size(); ++i) values[means.positions[i]] = means.values[i];
    return values;
  }

  const std::map<std::string, GoldenArray> data_ = LoadGolden("deltas/combine");
};

// A mean with divisor 1 is its sum, and the sum of as many ones is the weight of the senders.
TEST_F(GoldenBlockTest, SumsAndTheWeightsOfSenders) {
  DeltaAccumulator accumulator({.divisor = Divisor::kAll, .weights = 1, .least_senders = 0});
  for (int64_t i = 0; i < cases(); ++i) {
    const std::vector<DeltaUpdate> updates = Updates(i);
    DeltaMeans sums, senders;
    for (const auto& [update, weight] : Weighted(i, updates)) {
      std::vector<int64_t> values;
      for (const int8_t sign : update->signs) values.push_back(sign * ScaleOf(update->codes[0]));
      accumulator.Add(Extent(i)[0], update->positions, values, weight);
    }
    accumulator.EmitBlock(&sums);
    for (const auto& [update, weight] : Weighted(i, updates)) {
      const std::vector<int64_t> ones(update->k, 1);
      accumulator.Add(Extent(i)[0], update->positions, ones, weight);
    }
    accumulator.EmitBlock(&senders);
    EXPECT_EQ(ByPosition(sums), Expected<int64_t>("sum_value", i)) << "case " << i;
    EXPECT_EQ(ByPosition(senders), Expected<uint32_t>("sum_count", i)) << "case " << i;
  }
}

TEST_F(GoldenBlockTest, MeansAndWhatIsKeptOfThem) {
  for (int64_t i = 0; i < cases(); ++i) {
    const std::vector<DeltaUpdate> updates = Updates(i);
    const DeltaMeans means = CombineDeltas(Weighted(i, updates), Extent(i), Rule(i));
    EXPECT_EQ(ByPosition(means), Expected<int64_t>("mean", i)) << "case " << i;
    const int keep = At<uint16_t>("keep", i);
    const DeltaResult result = RoundToLevels(
        keep == 0 ? means
                  : KeepLargest(means, keep, At<uint64_t>("seed", i),
                                RoundId(At<uint32_t>("round", i)), At<uint32_t>("block", i)));
    EXPECT_EQ(result.positions, List<uint16_t>("result_index", "result_offset", i)) << "case " << i;
    EXPECT_EQ(result.signs, List<int8_t>("result_sign", "result_offset", i)) << "case " << i;
    EXPECT_EQ(result.levels, List<uint8_t>("result_level", "result_offset", i)) << "case " << i;
    const int code = At<int16_t>("result_code", i);
    EXPECT_EQ(result.positions.empty(), code < 0) << "case " << i;
    EXPECT_EQ(result.codes[0], std::max(0, code)) << "case " << i;
    const std::vector<uint8_t> caps = {kScaleCodes - 1};
    EXPECT_EQ(ValidateDeltaResult(result, Extent(i), caps), absl::OkStatus()) << "case " << i;
  }
}

}  // namespace
}  // namespace distro
