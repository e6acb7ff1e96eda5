#include "common/base/checksum.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tools/distroctl/create_run.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
  "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32,
  "num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": 256})";

class InitModelTest : public ::testing::Test {
 protected:
  InitModelTest() { EXPECT_TRUE(WriteFileAtomically(config_, kConfig).ok()); }

  // XXH3-64 of the weights' file for a seed.
  uint64_t HashOfWeights(const std::string& name, uint64_t seed) {
    const std::string out = folder_.path() + "/" + name;
    const absl::StatusOr<Report> line = InitModel({.config = config_, .out = out, .seed = seed});
    EXPECT_TRUE(line.ok()) << line.status();
    return Xxh3(*ReadFile(out + "/model.safetensors"));
  }

  testing::ScratchFolder folder_;
  const std::string config_ = folder_.path() + "/config.json";
};

// The number is that of every machine: it changes only with the generator, which is a new initial
// model for everybody.
TEST_F(InitModelTest, ASeedGivesTheSameBytesOnEveryMachine) {
  EXPECT_EQ(ToHex(HashOfWeights("a", 7)), "cf5407fd37c936eb");
}

TEST_F(InitModelTest, AnotherSeedGivesOtherWeights) {
  EXPECT_NE(HashOfWeights("a", 7), HashOfWeights("b", 8));
}

TEST_F(InitModelTest, DoesNotOverwriteACheckpoint) {
  HashOfWeights("a", 7);
  const absl::Status status =
      InitModel({.config = config_, .out = folder_.path() + "/a", .seed = 8}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(InitModelTest, NamesTheFileAndTheKeyOfABadConfiguration) {
  std::string json = kConfig;
  json.replace(json.find("silu"), 4, "gelu");
  ASSERT_TRUE(WriteFileAtomically(config_, json).ok());
  const absl::Status status =
      InitModel({.config = config_, .out = folder_.path() + "/a", .seed = 7}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("config.json"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("hidden_act"));
}

TEST_F(InitModelTest, AsksForWhatIsMissing) {
  EXPECT_EQ(InitModel({.config = "", .out = "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(InitModel({.config = config_, .out = ""}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(InitModel({.config = config_ + ".absent", .out = "x"}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace distro::tools
