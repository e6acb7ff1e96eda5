// The manifest of tensors: reading it, and refusals that name the fault.
#include "common/model/tensor_manifest.h"

#include <functional>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/model/init_weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Good() {
  return {{"format", "distro-tensors"},
          {"version", 1},
          {"tensors",
           {{{"name", "wte"}, {"shape", {8, 4}}, {"init", "normal"}, {"std", 0.5}},
            {{"name", "norm"}, {"shape", {4}}, {"init", "ones"}},
            {{"name", "bias"}, {"shape", {4}}, {"init", "zeros"}},
            {{"name", "fc"}, {"shape", {2, 2, 3}}, {"init", "normal"}}}}};
}

TEST(TensorManifestTest, TensorsAreInTheOrderOfTheManifest) {
  const auto parsed = ParseTensorManifest(Good().dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->manifest.tensors(),
              ElementsAre(TensorSpec{"bias", {4}}, TensorSpec{"fc", {2, 2, 3}},
                          TensorSpec{"norm", {4}}, TensorSpec{"wte", {8, 4}}));
  EXPECT_EQ(parsed->initial[1].deviation, 0.02f) << "where none is given";
  EXPECT_EQ(parsed->initial[3].deviation, 0.5f);
}

TEST(TensorManifestTest, InitializesBySeed) {
  const auto parsed = ParseTensorManifest(Good().dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Layout layout = *Layout::Create(parsed->manifest, 4);
  TensorBuffer values(layout);
  InitTensors(*parsed, 7, &values);
  EXPECT_THAT(values.tensor(0), Each(0.0f));
  EXPECT_THAT(values.tensor(2), Each(1.0f));
  const absl::Span<const float> wte = std::as_const(values).tensor(3);
  std::vector<float> expected(wte.size());  // whose bits init_weights_test fixes
  FillInitial("wte", {.deviation = 0.5f}, 7, absl::MakeSpan(expected));
  EXPECT_EQ(std::vector<float>(wte.begin(), wte.end()), expected);
  TensorBuffer others(layout);
  InitTensors(*parsed, 8, &others);
  EXPECT_NE(others.tensor(3)[0], values.tensor(3)[0]);
  EXPECT_EQ(others.tensor(2)[0], 1.0f);
}

TEST(TensorManifestTest, NamesTheTensorAndTheKeyThatIsWrong) {
  using Change = std::function<void(json&)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](json& m) { m = json::array(); }, "is not a manifest of tensors"},
      {[](json& m) { m["format"] = "distro-tokens"; }, "is not a manifest of tensors"},
      {[](json& m) { m["version"] = 2; }, "version: this program reads 1"},
      {[](json& m) { m["more"] = 1; }, "unknown key \"more\""},
      {[](json& m) { m.erase("tensors"); }, "tensors: is missing"},
      {[](json& m) { m["tensors"] = json::array(); }, "no tensor"},
      {[](json& m) { m["tensors"][0] = 3; }, "tensors[0]: is not an object"},
      {[](json& m) { m["tensors"][1].erase("name"); }, "tensors[1]: name: "},
      {[](json& m) { m["tensors"][0]["dtype"] = "F16"; }, "\"wte\": has an unknown key \"dtype\""},
      {[](json& m) { m["tensors"][0].erase("shape"); }, "\"wte\": shape: is missing"},
      {[](json& m) { m["tensors"][0]["shape"][0] = -1; }, "\"wte\": shape: "},
      {[](json& m) { m["tensors"][0]["shape"][0] = 2.0; }, "\"wte\": shape: "},
      {[](json& m) { m["tensors"][0]["shape"][0] = UINT64_MAX; }, "\"wte\": shape: "},
      {[](json& m) { m["tensors"][0]["shape"][0] = 0; }, "wte"},
      {[](json& m) { m["tensors"][0]["shape"] = json::array(); }, "wte"},
      {[](json& m) {
         m["tensors"][0]["shape"] = {1 << 30, 1 << 30};
       },
       "elements"},
      {[](json& m) { m["tensors"][1]["name"] = "wte"; }, "wte"},
      {[](json& m) { m["tensors"][1]["name"] = ""; }, "name"},
      {[](json& m) { m["tensors"][0].erase("init"); }, "\"wte\": init: "},
      {[](json& m) { m["tensors"][0]["init"] = "uniform"; }, "\"wte\": init: "},
      {[](json& m) { m["tensors"][0]["init"] = 3; }, "init: "},
      {[](json& m) { m["tensors"][0]["std"] = 0; }, "std: "},
      {[](json& m) { m["tensors"][0]["std"] = "0.1"; }, "std: "},
      {[](json& m) { m["tensors"][1]["std"] = 0.1; }, "\"norm\": std: belongs to"}};
  for (const auto& [change, message] : cases) {
    json manifest = Good();
    change(manifest);
    const absl::Status status = ParseTensorManifest(manifest.dump()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << manifest;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << manifest;
  }
}

TEST(TensorManifestTest, DamagedTextIsAManifestOrInvalidArgument) {
  const std::string text = Good().dump();
  int accepted = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(ParseTensorManifest(text.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto parsed = ParseTensorManifest(damaged);
      if (parsed.ok()) {
        ++accepted;  // another name, or another number
        EXPECT_EQ(parsed->initial.size(), parsed->manifest.tensors().size());
      } else {
        EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << parsed.status();
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace distro
