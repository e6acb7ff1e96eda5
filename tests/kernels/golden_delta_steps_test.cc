// What a level of a result adds to a parameter, against a second implementation
// (tests/golden/deltas): the table of steps and single subtractions, to the bit.
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/combine_deltas.h"
#include "common/update/scale.h"
#include "kernels/cpu/deltas.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::Bits;
using testing::GoldenArray;
using testing::LoadGolden;

TEST(GoldenStepTest, EveryStepOfATable) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/tables");
  const auto alphas = data.at("alpha").As<float>();
  for (size_t i = 0; i < alphas.size(); ++i) {
    const StepTable table(alphas[i]);
    for (int code = 0; code < kScaleCodes; ++code) {
      EXPECT_EQ(Bits(table.steps()[code]), Bits(data.at("step").As<float>().subspan(
                                               (i * kScaleCodes + code) * kLevels, kLevels)))
          << "alpha " << alphas[i] << ", code " << code;
    }
  }
}

TEST(GoldenStepTest, SingleParametersHaveTheirBits) {
  const std::map<std::string, GoldenArray> data = LoadGolden("deltas/updates");
  const auto p = data.at("p").As<float>(), want = data.at("result").As<float>();
  const MatrixShape one = {.rows = 1, .cols = 1, .elements = 1};
  for (size_t i = 0; i < p.size(); ++i) {
    const DeltaResult result = {.offsets = {0, 1},
                                .positions = {0},
                                .signs = {data.at("sign").As<int8_t>()[i]},
                                .levels = {data.at("level").As<uint8_t>()[i]},
                                .codes = {data.at("code").As<uint8_t>()[i]}};
    float got = p[i];
    ApplyDeltas(one, {.first = 0, .count = 1}, result, 0,
                StepTable(data.at("alpha").As<float>()[i]), absl::MakeSpan(&got, 1));
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want[i])) << i << ": " << got;
  }
}

}  // namespace
}  // namespace distro
