// The golden Llama, as transformers saved it: whole, in shards, and rounded to bf16.
#include <bit>
#include <filesystem>

#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/decoder/decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

struct Model {
  DecoderConfig config;
  Layout layout;
  TensorBuffer tensors;
};

DecoderConfig ConfigOf(const std::string& json) {
  const auto model = ParseModelConfig(json);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? dynamic_cast<const Decoder&>(**model).config() : DecoderConfig();
}

Model Load(const std::string& path) {
  const auto folder = OpenCheckpointFolder(path);
  if (!folder.ok()) {
    ADD_FAILURE() << folder.status();
    std::abort();
  }
  Layout layout = *Layout::Create(folder->manifest(), kDefaultSegmentBlocks);
  TensorBuffer tensors(layout);
  const absl::Status status = folder->ReadInto(layout, &tensors);
  EXPECT_TRUE(status.ok()) << status;
  return {ConfigOf(folder->config_json()), std::move(layout), std::move(tensors)};
}

std::string Golden(const std::string& name) { return testing::GoldenDir() + "/llama/" + name; }

// To the nearest bf16, ties to even.
float RoundedToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

TEST(LlamaGoldenTest, HasTensorsOfItsConfiguration) {
  const Model model = Load(Golden("model"));
  const absl::Status status =
      CheckSameTensors(*Manifest::Create(Decoder(model.config).Tensors()), model.layout.manifest());
  EXPECT_TRUE(status.ok()) << status;
}

TEST(LlamaGoldenTest, ReadsOlderKeys) {
  EXPECT_EQ(ConfigOf(*ReadFile(Golden("model/config.v4.json"))), Load(Golden("model")).config);
}

// One file, and in shards where the folder has them (the tree's has not, to stay small).
TEST(LlamaGoldenTest, HasEqualWeightsInFolders) {
  const Model whole = Load(Golden("model"));
  for (const auto& entry : std::filesystem::directory_iterator(Golden(""))) {
    if (!entry.is_directory() || entry.path().filename() == "model_bf16") continue;
    const Model other = Load(entry.path());
    ASSERT_EQ(whole.layout.manifest().hash(), other.layout.manifest().hash()) << entry.path();
    for (int i = 0; i < whole.tensors.tensors(); ++i)
      EXPECT_EQ(whole.tensors.tensor(i), other.tensors.tensor(i)) << entry.path();
  }
}

TEST(LlamaGoldenTest, BfloatWeightsAreWidenedExactly) {
  const Model whole = Load(Golden("model")), narrow = Load(Golden("model_bf16"));
  ASSERT_EQ(whole.layout.manifest().hash(), narrow.layout.manifest().hash());
  for (int i = 0; i < whole.tensors.tensors(); ++i) {
    for (size_t j = 0; j < whole.tensors.tensor(i).size(); ++j) {
      ASSERT_EQ(RoundedToBfloat16(whole.tensors.tensor(i)[j]), narrow.tensors.tensor(i)[j]);
    }
  }
}

TEST(LlamaGoldenTest, IsWrittenAndReadBackUnchanged) {
  const Model model = Load(Golden("model"));
  const testing::ScratchFolder folder;
  const absl::Status status = WriteCheckpointFolder(
      folder.File("out"), Decoder(model.config).ConfigJson(), model.layout, model.tensors);
  ASSERT_TRUE(status.ok()) << status;
  const Model again = Load(folder.File("out"));
  EXPECT_EQ(again.config, model.config);
  for (int i = 0; i < model.tensors.tensors(); ++i)
    EXPECT_EQ(model.tensors.tensor(i), again.tensors.tensor(i));
}

}  // namespace
}  // namespace distro
