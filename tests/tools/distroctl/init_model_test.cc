#include "tools/distroctl/init_model.h"

#include <filesystem>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/listed_tensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::tools {
namespace {

using ::testing::ElementsAre;
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
TEST_F(InitModelTest, GivesFixedBytesOfSeed) {
  EXPECT_EQ(ToHex(HashOfWeights("a", 7)), "cf5407fd37c936eb");
}

TEST_F(InitModelTest, FollowsSeed) { EXPECT_NE(HashOfWeights("a", 7), HashOfWeights("b", 8)); }

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

constexpr char kManifest[] = R"({"format": "distro-tensors", "version": 1, "tensors": [
  {"name": "embed", "shape": [8, 4], "init": "normal", "std": 0.02},
  {"name": "fc", "shape": [4, 4], "init": "normal", "std": 0.1},
  {"name": "norm", "shape": [4], "init": "ones"}]})";

// Models that distro-worker does not have.
class AnyModelTest : public InitModelTest {
 protected:
  AnyModelTest() { EXPECT_TRUE(WriteFileAtomically(manifest_, kManifest).ok()); }

  InitModelOptions FromManifest(const std::string& out) {
    return {.from_manifest = manifest_,
            .outside = std::vector<std::string>{"embed"},
            .out = folder_.File(out),
            .seed = 7};
  }
  void ExpectRefused(const InitModelOptions& options, const std::string& message) {
    const absl::Status status = InitModel(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(options.out)) << "nothing is written";
  }
  const std::string manifest_ = folder_.File("tensors.json");
};

TEST_F(AnyModelTest, IsMadeFromManifest) {
  const auto line = InitModel(FromManifest("a"));
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->text, HasSubstr("52 parameters in 3 tensors, seed 7"));
  EXPECT_THAT(line->text, HasSubstr("\"workers\": \"python\""));
  const auto folder = OpenCheckpointFolder(folder_.File("a"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Layout layout = *Layout::Create(folder->manifest(), 4);
  EXPECT_THAT(*ListedTensorsInside(layout, folder->config_json()), ElementsAre(false, true, false));
  ASSERT_TRUE(InitModel(FromManifest("b")).ok());
  EXPECT_EQ(*ReadFile(folder_.File("a/model.safetensors")),
            *ReadFile(folder_.File("b/model.safetensors")));
}

TEST_F(AnyModelTest, TensorsOfAFileAreTaken) {
  ASSERT_TRUE(InitModel(FromManifest("a")).ok());
  // Beside the tensors lies a config.json that lists what is outside: a folder says it itself.
  const auto of_folder =
      InitModel({.from_safetensors = folder_.File("a"), .out = folder_.File("b")});
  ASSERT_TRUE(of_folder.ok()) << of_folder.status();
  const auto of_file = InitModel({.from_safetensors = folder_.File("a/model.safetensors"),
                                  .outside = std::vector<std::string>{"embed"},
                                  .out = folder_.File("c")});
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  for (const char* file : {"/model.safetensors", "/config.json"}) {
    EXPECT_EQ(*ReadFile(folder_.File("b") + file), *ReadFile(folder_.File("a") + file));
    EXPECT_EQ(*ReadFile(folder_.File("c") + file), *ReadFile(folder_.File("a") + file));
  }
}

TEST_F(AnyModelTest, KeysOfTheModelsConfigurationStay) {
  InitModelOptions options = FromManifest("a");
  options.config = config_;
  ASSERT_TRUE(InitModel(options).ok());
  const std::string written = *ReadFile(folder_.File("a/config.json"));
  EXPECT_THAT(written, HasSubstr("\"hidden_act\": \"silu\""));
  EXPECT_THAT(written, HasSubstr("\"distro_outside\""));
}

TEST_F(AnyModelTest, NamesFlagOfFault) {
  InitModelOptions options = FromManifest("a");
  options.outside.reset();
  ExpectRefused(options, "--outside");
  options.outside = {"lm_head"};
  ExpectRefused(options, "\"lm_head\"");
  options = FromManifest("a");
  options.from_safetensors = "x.safetensors";
  ExpectRefused(options, "give one of them");
  options = FromManifest("a");
  options.from_manifest = config_;
  ExpectRefused(options, config_ + ": is not a manifest of tensors");
  ExpectRefused(
      {.config = config_, .outside = std::vector<std::string>{}, .out = folder_.File("a")},
      "--outside: goes with");
  ExpectRefused({.from_safetensors = config_,
                 .outside = std::vector<std::string>{},
                 .out = folder_.File("a")},
                "is JSON, not safetensors");
}

TEST_F(AnyModelTest, ParametersBeyondTheMachinesMemoryAreRefused) {
  std::string huge = kManifest;
  huge.replace(huge.find("[8, 4]"), 6, "[1048576, 245760]");
  ASSERT_TRUE(WriteFileAtomically(manifest_, huge).ok());
  const absl::Status status = InitModel(FromManifest("a")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace distro::tools
