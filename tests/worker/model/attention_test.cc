// Attention of a block in bf16, as GPUs compute it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/model/batch_maker.h"
#include "worker/model/units.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::MakeLlama;
using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::distro::worker::testing::TinyModel;
using ::testing::HasSubstr;

constexpr int kHeads = 4, kPositions = 8;

// The parameters of the first block.
std::vector<at::Tensor> BlockOf(TinyModel& tiny, at::ScalarType type) {
  std::vector<at::Tensor> parameters;
  for (const int tensor : tiny.model->units()[1]->tensors()) {
    parameters.push_back(at::from_blob(tiny.parameters.tensor(tensor).data(),
                                       tiny.model->shapes()[tensor], at::kFloat)
                             .to(type));
  }
  return parameters;
}

// One block of a model with as many KV heads, from the same input.
absl::StatusOr<at::Tensor> Output(int kv_heads, absl::Span<const at::Tensor> parameters) {
  const TinyModel tiny(TinyConfig(kHeads, kv_heads));
  const at::ScalarType type = parameters[0].scalar_type();
  const std::vector<int32_t> tokens = RandomTokens(2 * kPositions, 40, 3);
  const Batch batch = BatchMaker(&tiny.model->architecture(), {.type = type})
                          .Unlabelled({.tokens = tokens, .sequences = 2});
  const int64_t hidden = TinyConfig().hidden_size;
  const at::Tensor input =
      at::arange(2 * kPositions * hidden, at::kFloat).sin().view({2, kPositions, hidden}).to(type);
  return CatchTorch("block", [&]() -> absl::StatusOr<at::Tensor> {
    return tiny.model->units()[1]->Forward(parameters, input, batch);
  });
}

TEST(AttentionTest, SharesHeads) {
  TinyModel tiny(TinyConfig(kHeads, 2));
  std::vector<at::Tensor> parameters = BlockOf(tiny, at::kBFloat16);
  const at::Tensor shared = Output(2, parameters).value();
  for (const int projection : {2, 3}) {  // of keys, of values: [kv_heads * d, hidden]
    at::Tensor& weight = parameters[projection];
    const std::vector<at::Tensor> heads = weight.chunk(2);
    weight = at::cat({heads[0], heads[0], heads[1], heads[1]});
  }
  EXPECT_TRUE(shared.equal(Output(kHeads, parameters).value()));
}

// Scores of every pair of positions would be slow, and are not in the memory plan.
TEST(AttentionTest, InBf16ItIsFusedOrAnError) {
  struct WithoutFlash {
    WithoutFlash() { at::globalContext().setSDPUseFlash(false); }
    ~WithoutFlash() { at::globalContext().setSDPUseFlash(true); }
  } const without_flash;
  TinyModel tiny(TinyConfig(kHeads, 2));
  EXPECT_THAT(Output(2, BlockOf(tiny, at::kBFloat16)).status().message(),
              HasSubstr("take --param_dtype f32"));
  EXPECT_TRUE(Output(2, BlockOf(tiny, at::kFloat)).ok());
}

}  // namespace
}  // namespace distro::worker
