#include "tests/worker/model/tiny_model.h"

#include "common/base/random.h"
#include "common/model/init_weights.h"
#include "gtest/gtest.h"

namespace distro::worker::testing {
namespace {

Layout MakeLayout(const DecoderConfig& config) {
  return Layout::Create(Manifest::Create(Decoder(config).Tensors()).value(), /*segment_blocks=*/4)
      .value();
}

}  // namespace

TinyModel::TinyModel(const DecoderConfig& config, uint64_t seed)
    : layout(MakeLayout(config)),
      parameters(layout),
      model(Model::Create(MakeLlama(config), layout).value()) {
  SetTorchThreads(1);
  EXPECT_TRUE(InitWeights(Decoder(config), layout, seed, &parameters).ok());
}

std::vector<int32_t> RandomTokens(int count, int vocabulary, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(SplitMix64(seed, i) % static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

std::vector<float> Flat(const TensorBuffer& buffer) {
  std::vector<float> all;
  for (int i = 0; i < buffer.tensors(); ++i) {
    all.insert(all.end(), buffer.tensor(i).begin(), buffer.tensor(i).end());
  }
  return all;
}

}  // namespace distro::worker::testing
