// Compares the application of deltas results with a second implementation (tests/golden/deltas),
// bit for bit on every backend: every step of a table, single subtractions, and blocks sent as DCT.
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/method/deltas/scale.h"
#include "common/model/layout/matrix.h"
#include "kernels/deltas_view.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::Bits;
using testing::GoldenArray;
using testing::GoldenList;
using testing::LoadGolden;

class GoldenStepTest : public testing::BackendTest {
 protected:
  // The parameter after an entry.
  float Applied(float p, float alpha, int code, int level, int sign) {
    const DeltaResult result = {.offsets = {0, 1},
                                .positions = {0},
                                .signs = {static_cast<int8_t>(sign)},
                                .levels = {static_cast<uint8_t>(level)},
                                .codes = {static_cast<uint8_t>(code)}};
    const BlockRange block = {.first = 0, .count = 1};
    EXPECT_TRUE(backend_
                    ->ApplyDeltas({.rows = 1, .cols = 1, .elements = 1}, block,
                                  {.alpha = alpha, .as_dct = false}, ViewOf(result, block),
                                  absl::MakeSpan(&p, 1))
                    .ok());
    return p;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GoldenStepTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(GoldenStepTest, MatchesTable) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/tables");
  const auto alphas = data.at("alpha").As<float>(), steps = data.at("step").As<float>();
  for (size_t i = 0; i < alphas.size(); ++i) {
    for (int code = 0; code < kScaleCodes; ++code) {
      for (int level = 0; level < kLevels; ++level) {
        const float want = steps[(i * kScaleCodes + code) * kLevels + level];
        ASSERT_EQ(Applied(0, alphas[i], code, level, -1), want)
            << "alpha " << alphas[i] << ", code " << code << ", level " << level;
      }
    }
  }
}

TEST_P(GoldenStepTest, SingleParametersHaveTheirBits) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/updates");
  const auto p = data.at("p").As<float>(), want = data.at("result").As<float>();
  for (size_t i = 0; i < p.size(); ++i) {
    const float got =
        Applied(p[i], data.at("alpha").As<float>()[i], data.at("code").As<uint8_t>()[i],
                data.at("level").As<uint8_t>()[i], data.at("sign").As<int8_t>()[i]);
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want[i])) << i << ": " << got;
  }
}

TEST_P(GoldenStepTest, BlocksOfFrequenciesHaveTheirBits) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/frequencies");
  const auto alphas = data.at("alpha").As<float>();
  for (size_t i = 0; i < alphas.size(); ++i) {
    const auto list = [&](const std::string& name, const std::string& offsets, auto zero) {
      const auto of_case = GoldenList<decltype(zero)>(data.at(name), data.at(offsets), i);
      return std::vector(of_case.begin(), of_case.end());
    };
    DeltaResult result = {.offsets = {0},
                          .positions = list("entry_index", "entry_offset", uint16_t{}),
                          .signs = list("entry_sign", "entry_offset", int8_t{}),
                          .levels = list("entry_level", "entry_offset", uint8_t{}),
                          .codes = {data.at("code").As<uint8_t>()[i]}};
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
    const MatrixShape matrix = {.rows = data.at("rows").As<uint8_t>()[i],
                                .cols = data.at("cols").As<uint8_t>()[i],
                                .elements = data.at("elements").As<uint16_t>()[i]};
    const BlockRange block = {.first = 0, .count = 1};
    std::vector<float> p = list("p", "element_offset", float{});
    EXPECT_TRUE(backend_
                    ->ApplyDeltas(matrix, block, {.alpha = alphas[i], .as_dct = true},
                                  ViewOf(result, block), absl::MakeSpan(p))
                    .ok());
    EXPECT_EQ(Bits(p), Bits(list("result", "element_offset", float{}))) << "case " << i;
  }
}

}  // namespace
}  // namespace distro
