#include "common/model/checkpoint/hf_folder.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HfFolderTest : public ::testing::Test {
 protected:
  void WriteText(const std::string& name, absl::string_view text) {
    const absl::Status status = WriteFileAtomically(folder_.File(name), text);
    ASSERT_TRUE(status.ok()) << status;
  }
  void WriteTensors(const std::string& name, std::vector<FloatTensor> tensors) {
    const absl::Status status = WriteSafetensors(folder_.File(name), std::move(tensors), {});
    ASSERT_TRUE(status.ok()) << status;
  }
  void WriteIndex(const std::string& weight_map) {
    WriteText("model.safetensors.index.json", "{\"weight_map\": {" + weight_map + "}}");
  }
  void ExpectRefused(const std::string& message,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    const absl::Status status = OpenCheckpointFolder(folder_.path()).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path()));
  }

  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
  const absl::Span<const float> all_ = values_;
  testing::ScratchFolder folder_;
};

TEST_F(HfFolderTest, ReadsASingleFile) {
  WriteText("config.json", R"({"vocab_size": 2})");
  WriteTensors("model.safetensors",
               {{"b", {2}, all_.subspan(4)}, {"a", {2, 2}, all_.subspan(0, 4)}});
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->config_json(), R"({"vocab_size": 2})");
  EXPECT_THAT(folder->manifest().tensors(),
              ElementsAre(TensorSpec{"a", {2, 2}}, TensorSpec{"b", {2}}));
  const Layout layout = *Layout::Create(folder->manifest(), 16);
  TensorBuffer tensors(layout);
  ASSERT_TRUE(folder->ReadInto(layout, &tensors).ok());
  EXPECT_THAT(tensors.tensor(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(tensors.tensor(1), ElementsAre(5, 6));
}

TEST_F(HfFolderTest, ReadsShards) {
  WriteText("config.json", "{}");
  WriteTensors("x-1.safetensors", {{"b", {2}, all_.subspan(4)}});
  WriteTensors("x-2.safetensors", {{"a", {2, 2}, all_.subspan(0, 4)}});
  WriteIndex(R"("a": "x-2.safetensors", "b": "x-1.safetensors")");
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Layout layout = *Layout::Create(folder->manifest(), 16);
  TensorBuffer tensors(layout);
  ASSERT_TRUE(folder->ReadInto(layout, &tensors).ok());
  EXPECT_THAT(tensors.tensor(0), ElementsAre(1, 2, 3, 4));
}

TEST_F(HfFolderTest, TextMayHaveAByteOrderMark) {
  WriteText("config.json", "\xEF\xBB\xBF{\r\n}");
  WriteTensors("x-1.safetensors", {{"b", {2}, all_.subspan(4)}});
  WriteText("model.safetensors.index.json",
            "\xEF\xBB\xBF{\"weight_map\": {\"b\": \"x-1.safetensors\"}}");
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->config_json(), "{\n}") << "as it travels to every checkpoint";
}

TEST_F(HfFolderTest, TensorsAreReadWithoutAConfiguration) {
  WriteTensors("any.safetensors", {{"a", {2}, all_.subspan(4)}});
  WriteTensors("model.safetensors", {{"b", {2}, all_.subspan(4)}});
  const auto of_file = OpenStoredTensors(folder_.File("any.safetensors"));
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  EXPECT_THAT(of_file->manifest().tensors(), ElementsAre(TensorSpec{"a", {2}}));
  const auto of_folder = OpenStoredTensors(folder_.path());
  ASSERT_TRUE(of_folder.ok()) << of_folder.status();
  EXPECT_THAT(of_folder->manifest().tensors(), ElementsAre(TensorSpec{"b", {2}}));
  EXPECT_EQ(OpenStoredTensors(folder_.File("absent")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HfFolderTest, WidensBfloat16) {
  WriteText("config.json", "{}");
  std::string bytes;
  const std::string header = R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
  AppendLittleEndian<uint64_t>(&bytes, header.size());
  bytes += header + std::string("\x80\x3f\x20\xc0", 4);
  WriteText("model.safetensors", bytes);
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Layout layout = *Layout::Create(folder->manifest(), 16);
  TensorBuffer tensors(layout);
  ASSERT_TRUE(folder->ReadInto(layout, &tensors).ok());
  EXPECT_THAT(tensors.tensor(0), ElementsAre(1, -2.5));
}

TEST_F(HfFolderTest, LeavesOutTheConstantOfOldFiles) {
  WriteText("config.json", "{}");
  WriteTensors("model.safetensors",
               {{"a", {4}, all_.subspan(0, 4)},
                {"model.layers.0.self_attn.rotary_emb.inv_freq", {2}, all_.subspan(4)}});
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(folder->manifest().tensors(), ElementsAre(TensorSpec{"a", {4}}));
}

TEST_F(HfFolderTest, RefusesAnotherLayoutByTensor) {
  WriteText("config.json", "{}");
  WriteTensors("model.safetensors", {{"a", {6}, all_}});
  const auto folder = OpenCheckpointFolder(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Layout layout = *Layout::Create(*Manifest::Create({{"a", {7}}}), 16);
  TensorBuffer tensors(layout);
  const absl::Status status = folder->ReadInto(layout, &tensors);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor a has shape [6], expected [7]"));
}

TEST_F(HfFolderTest, NamesMissingFiles) {
  ExpectRefused("config.json", absl::StatusCode::kNotFound);
  WriteText("config.json", "{}");
  ExpectRefused("safe_serialization", absl::StatusCode::kNotFound);
  WriteIndex(R"("a": "x-1.safetensors")");
  ExpectRefused("x-1.safetensors", absl::StatusCode::kNotFound);
}

TEST_F(HfFolderTest, SaysWhatIsThereInsteadOfWeights) {
  const auto expect = [this](const std::string& name, const std::string& message) {
    WriteText(name, "x");
    ExpectRefused(message, absl::StatusCode::kNotFound);
    std::filesystem::remove(folder_.File(name));
  };
  WriteText("config.json", "{}");
  expect("pytorch_model.bin", "holds pytorch_model.bin: load it in PyTorch");
  expect("model-00001-of-00002.safetensors", "copy their index, too");
  expect("adapter_model.safetensors", "merge_and_unload()");
  expect("whole.safetensors", "name it model.safetensors");
  expect("model.gguf", "llama.cpp");
  WriteIndex(R"("a": "1.safetensors", "b": "2.safetensors", "c": "3.safetensors")");
  expect("2.safetensors", "names 3 files, and 2 are not there: 1.safetensors, ...");
}

TEST_F(HfFolderTest, SaysWhereTheCheckpointIs) {
  WriteText("config.json", "{}");
  WriteTensors("model.safetensors", {{"a", {6}, all_}});
  const auto expect = [](const std::string& path, absl::StatusCode code, const char* message) {
    const absl::Status status = OpenCheckpointFolder(path).status();
    EXPECT_EQ(status.code(), code) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  expect(folder_.File("model.safetensors"), absl::StatusCode::kInvalidArgument, "is a file: give");
  const std::string outer = folder_.File("outer");
  ASSERT_TRUE(CreateFolders(outer).ok());
  expect(outer, absl::StatusCode::kNotFound, "has no config.json: copy it");
  ASSERT_TRUE(CreateFolders(outer + "/checkpoint-5").ok());
  ASSERT_TRUE(WriteFileAtomically(outer + "/checkpoint-5/config.json", "{}").ok());
  expect(outer, absl::StatusCode::kNotFound, "checkpoint-5 has: give such a folder");
}

TEST_F(HfFolderTest, SaysWhatLiesInThePlaceOfAFile) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  WriteText("config.json", pointer);
  ExpectRefused("config.json: is a Git LFS pointer");
  WriteText("config.json", R"({"error": "Invalid username or password."})");
  ExpectRefused("config.json: is a web server's answer");
  WriteText("config.json", "{}");
  WriteText("model.safetensors", pointer);
  ExpectRefused("model.safetensors: is a Git LFS pointer");
  WriteText("model.safetensors", "{\"vocab_size\": 2}");
  ExpectRefused("model.safetensors: is JSON, not safetensors");
  std::filesystem::remove(folder_.File("model.safetensors"));
  WriteText("model.safetensors.index.json", pointer);
  ExpectRefused("model.safetensors.index.json: is a Git LFS pointer");
  WriteIndex(R"("a": "1.safetensors")");
  WriteText("1.safetensors", std::string("PK\x03\x04\0\0archive/data.pkl", 22));
  ExpectRefused("1.safetensors: is a PyTorch pickle");
}

TEST_F(HfFolderTest, LeavesOutTheEqualCopyOfATiedHead) {
  const auto tensors_with = [this](const char* config) {
    WriteText("config.json", config);
    const auto folder = OpenCheckpointFolder(folder_.path());
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder->manifest().tensors().size();
  };
  const FloatTensor embedding = {"model.embed_tokens.weight", {2, 2}, all_.subspan(0, 4)};
  const FloatTensor equal = {"lm_head.weight", {2, 2}, all_.subspan(0, 4)};
  WriteTensors("model.safetensors", {embedding, equal});
  EXPECT_EQ(tensors_with(R"({"tie_word_embeddings": true})"), 1u);
  EXPECT_EQ(tensors_with(R"({"tie_word_embeddings": false})"), 2u);
  EXPECT_EQ(tensors_with("{}"), 2u);
  WriteText("config.json", R"({"tie_word_embeddings": true})");
  const auto folder = OpenCheckpointFolder(folder_.path());
  const Layout layout = *Layout::Create(folder->manifest(), 16);
  TensorBuffer read(layout);
  ASSERT_TRUE(folder->ReadInto(layout, &read).ok());
  EXPECT_THAT(read.tensor(0), ElementsAre(1, 2, 3, 4));
  WriteTensors("model.safetensors", {embedding, {"lm_head.weight", {2, 2}, all_.subspan(1, 4)}});
  EXPECT_EQ(tensors_with(R"({"tie_word_embeddings": true})"), 2u) << "another head";
}

TEST_F(HfFolderTest, RefusesDamage) {
  WriteTensors("model.safetensors", {{"a", {6}, all_}});
  for (const char* config : {"", "[]", "{", "{\"a\":1,\"a\":1}"}) {
    WriteText("config.json", config);
    ExpectRefused("config.json");
  }
  WriteText("config.json", "{}");
  WriteText("model.safetensors", "12345678");
  ExpectRefused("model.safetensors: header_length");
  WriteTensors("model.safetensors", {{"scalar", {}, all_.subspan(0, 1)}});
  ExpectRefused("tensor scalar has no dimensions");
  std::string bytes = *ReadFile(folder_.File("model.safetensors"));
  bytes.replace(bytes.find("F32"), 3, "U32");
  WriteText("model.safetensors", bytes);
  ExpectRefused("tensor scalar: dtype U32 cannot be trained");
}

TEST_F(HfFolderTest, RefusesAnIndexThatDoesNotMatchItsFiles) {
  WriteText("config.json", "{}");
  WriteTensors("1.safetensors", {{"a", {4}, all_.subspan(0, 4)}, {"b", {2}, all_.subspan(4)}});
  WriteTensors("2.safetensors", {{"b", {2}, all_.subspan(4)}});
  WriteIndex(R"("a": "1.safetensors")");
  ExpectRefused("tensor b of 1.safetensors is not listed");
  WriteIndex(R"("a": "1.safetensors", "b": "2.safetensors")");
  ExpectRefused("tensor b is in 1.safetensors, the index says 2.safetensors");
  WriteIndex(R"("a": "1.safetensors", "b": "1.safetensors", "c": "1.safetensors")");
  ExpectRefused("tensor c is missing in 1.safetensors");
  WriteIndex(R"("a": "../1.safetensors")");
  ExpectRefused("tensor a: ../1.safetensors");
}

class WriteCheckpointFolderTest : public ::testing::Test {
 protected:
  WriteCheckpointFolderTest()
      : layout_(*Layout::Create(*Manifest::Create({{"w", {3}}}), 16)), tensors_(layout_) {}
  void Write(const std::string& name, float value) {
    for (float& element : tensors_.tensor(0)) element = value;
    const absl::Status status =
        WriteCheckpointFolder(folder_.File(name), config_, layout_, tensors_);
    ASSERT_TRUE(status.ok()) << status;
  }
  float FirstValue(const std::string& name) {
    TensorBuffer read(layout_);
    const auto folder = OpenCheckpointFolder(folder_.File(name));
    EXPECT_TRUE(folder.ok() && folder->ReadInto(layout_, &read).ok()) << folder.status();
    return read.tensor(0)[0];
  }

  const std::string config_ = R"({"torch_dtype": "bfloat16", "eos_token_id": 2})";
  testing::ScratchFolder folder_;
  Layout layout_;
  TensorBuffer tensors_;
};

TEST_F(WriteCheckpointFolderTest, CreatesTheFolderWithNothingElse) {
  ASSERT_TRUE(CreateFolders(folder_.File("new.tmp")).ok());
  ASSERT_TRUE(WriteFileAtomically(folder_.File("new.tmp/left_by_a_crash"), "x").ok());
  Write("new/", 3);
  EXPECT_EQ(FirstValue("new"), 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.File("new")), {}), 2);
}

TEST_F(WriteCheckpointFolderTest, WritesDtypeIntoConfiguration) {
  Write("new", 3);
  const auto config = ParseJson(OpenCheckpointFolder(folder_.File("new"))->config_json());
  EXPECT_EQ(*config, (nlohmann::json{{"torch_dtype", "float32"}, {"eos_token_id", 2}}));
}

TEST_F(WriteCheckpointFolderTest, ReplacesItsFilesInAFolderThatExists) {
  Write("new", 3);
  ASSERT_TRUE(WriteFileAtomically(folder_.File("new/tokenizer.json"), "{}").ok());
  Write("new", 4);
  EXPECT_EQ(FirstValue("new"), 4);
  EXPECT_EQ(*ReadFile(folder_.File("new/tokenizer.json")), "{}");
}

TEST_F(WriteCheckpointFolderTest, WritesAdapterAsPeft) {
  const Layout layout = *Layout::Create(
      *Manifest::Create({{"q.lora_A.default.weight", {2, 3}}, {"q.lora_B.default.weight", {3, 2}}}),
      16);
  const Companions companions = {{"adapter_config.json", "{}"}};
  ASSERT_TRUE(
      WriteCheckpointFolder(folder_.File("new"), "{}", layout, TensorBuffer(layout), companions)
          .ok());
  for (const char* of_a_whole_model : {"new/model.safetensors", "new/config.json"})
    EXPECT_FALSE(std::filesystem::exists(folder_.File(of_a_whole_model)));
  EXPECT_EQ(*ReadFile(folder_.File("new/adapter_config.json")), "{}");
  const auto manifest = SnapshotManifest(folder_.File("new/adapter_model.safetensors"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->tensors()[0].name, "q.lora_A.weight");
  EXPECT_EQ(manifest->tensors()[1].name, "q.lora_B.weight");
}

TEST_F(WriteCheckpointFolderTest, RefusesAConfigurationThatIsNotAnObject) {
  EXPECT_EQ(WriteCheckpointFolder(folder_.File("new"), "[]", layout_, tensors_).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("new")));
}

}  // namespace
}  // namespace distro
