// What a result does to parameters, against a second implementation (tests/golden/deltas): the
// table of steps, single subtractions, and blocks that travel as their DCT, to the bit.
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/combine_deltas.h"
#include "common/update/scale.h"
#include "kernels/cpu/delta_transform.h"
#include "kernels/cpu/deltas.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::Bits;
using testing::GoldenArray;
using testing::GoldenList;
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

TEST(GoldenStepTest, BlocksOfFrequenciesHaveTheirBitsAtEveryWidth) {
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
    for (const VectorKernels& kernels : SupportedVectorKernels()) {
      std::vector<float> p = list("p", "element_offset", float{});
      DeltaTransform(kernels).Apply(matrix, {.first = 0, .count = 1}, result, 0, alphas[i],
                                    absl::MakeSpan(p));
      EXPECT_EQ(Bits(p), Bits(list("result", "element_offset", float{})))
          << "case " << i << ", " << kernels.name;
    }
  }
}

}  // namespace
}  // namespace distro
