#include "tests/worker/model/golden_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/safetensors.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace distro::worker::testing {

using ::distro::testing::GoldenDir;

GoldenCheckpoint::GoldenCheckpoint(const std::string& path, const std::string& config_json) {
  SetTorchThreads(1);
  const CheckpointFolder folder = OpenCheckpointFolder(GoldenDir() + "/" + path).value();
  layout =
      std::make_unique<Layout>(Layout::Create(folder.manifest(), kDefaultSegmentBlocks).value());
  parameters = std::make_unique<TensorBuffer>(*layout);
  EXPECT_TRUE(folder.ReadInto(*layout, parameters.get()).ok());
  const std::string json = config_json.empty() ? folder.config_json() : config_json;
  model = Model::Create(ParseModelConfig(json).value(), *layout).value();
}

void ExpectLogits(const GoldenCheckpoint& checkpoint, const TokenBatch& batch,
                  absl::Span<const float> expected) {
  const auto logits = checkpoint.model->Logits(batch, *checkpoint.parameters);
  ASSERT_TRUE(logits.ok()) << logits.status();
  ASSERT_EQ(logits->size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(double{(*logits)[i]} - expected[i]));
  }
  EXPECT_LE(worst, 2e-5);
  ::testing::Test::RecordProperty("largest_difference", std::to_string(worst));
}

void ExpectGradients(const GoldenCheckpoint& checkpoint, const TokenBatch& batch, float loss,
                     const std::string& gradients) {
  TensorBuffer gradient(*checkpoint.layout);
  const auto computed = checkpoint.model->LossAndGradient(batch, *checkpoint.parameters,
                                                          Accumulation::kStore, &gradient);
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_NEAR(*computed, loss, 1e-5);
  const auto file = SafetensorsFile::Open(GoldenDir() + "/" + gradients);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), static_cast<size_t>(gradient.tensors()));
  for (int i = 0; i < gradient.tensors(); ++i) {
    const std::string& name = checkpoint.layout->manifest().tensors()[i].name;
    std::vector<float> expected(gradient.tensor(i).size());
    ASSERT_NE(file->Find(name), nullptr) << name;
    ASSERT_TRUE(CopyToFloat(*file->Find(name), absl::MakeSpan(expected)).ok());
    double largest = 0, worst = 0;
    for (size_t j = 0; j < expected.size(); ++j) {
      largest = std::max(largest, std::abs(double{expected[j]}));
      worst = std::max(worst, std::abs(double{expected[j]} - gradient.tensor(i)[j]));
    }
    EXPECT_LE(worst, 1e-5 * largest) << name;
  }
}

}  // namespace distro::worker::testing
