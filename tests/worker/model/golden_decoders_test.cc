// golden/decoders: a tiny model of each architecture besides Llama, computed by transformers.
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/worker/model/golden_checkpoint.h"

namespace distro::worker {
namespace {

using ::distro::testing::GoldenArray;
using ::distro::testing::LoadGolden;
using ::distro::worker::testing::ExpectGradients;
using ::distro::worker::testing::ExpectLogits;
using ::distro::worker::testing::GoldenCheckpoint;

class GoldenDecodersTest : public ::testing::TestWithParam<const char*> {
 protected:
  // [sequences, S + 1]
  TokenBatch Tokens() const {
    const GoldenArray& tokens = golden_.at("tokens");
    return {.tokens = tokens.As<int32_t>(), .sequences = static_cast<int>(tokens.shape[0])};
  }
  absl::Span<const float> Floats(const std::string& name) const {
    return golden_.at(name).As<float>();
  }

  const std::string folder_ = std::string("decoders/") + GetParam();
  const std::map<std::string, GoldenArray> golden_ = LoadGolden(folder_);
  const GoldenCheckpoint checkpoint_{folder_ + "/model"};
};

TEST_P(GoldenDecodersTest, MatchesLogits) {
  const TokenBatch all = Tokens();
  const size_t length = all.tokens.size() / all.sequences;
  std::vector<int32_t> inputs;
  for (int i = 0; i < all.sequences; ++i) {
    const absl::Span<const int32_t> row = all.tokens.subspan(i * length, length - 1);
    inputs.insert(inputs.end(), row.begin(), row.end());
  }
  ExpectLogits(checkpoint_, {.tokens = inputs, .sequences = all.sequences}, Floats("logits"));
}

TEST_P(GoldenDecodersTest, MatchesLossAndEveryGradient) {
  ExpectGradients(checkpoint_, Tokens(), Floats("loss")[0], folder_ + "/gradients.safetensors");
}

INSTANTIATE_TEST_SUITE_P(Architectures, GoldenDecodersTest,
                         ::testing::Values("qwen2", "qwen2_windows", "qwen3", "mistral", "smollm3"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace distro::worker
