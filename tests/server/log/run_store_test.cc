#include "server/log/run_store.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/strings/match.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr absl::string_view kModelConfig = R"({"model_type": "some"})";

class RunStoreTest : public ::testing::Test {
 protected:
  RunStoreTest() {
    parameters_.tensor(0)[3] = 0.5f;
    WriteModel("model", parameters_);
    prepared_ = *PrepareInitialSnapshot(folder_.File("model"), folder_.File("snapshot"));
    snapshot_ = *ReadFile(folder_.File("snapshot"));
  }

  void WriteModel(const std::string& name, const TensorBuffer& parameters) {
    ASSERT_TRUE(
        WriteCheckpointFolder(folder_.File(name), std::string(kModelConfig), layout_, parameters)
            .ok());
  }

  absl::StatusOr<std::unique_ptr<RunStore>> Open() {
    return RunStore::Open(folder_.File("data"), &disk_, &clock_, &log_);
  }
  std::string Data(const std::string& name) const { return folder_.File("data/" + name); }

  static v1::RunConfig Config(const std::string& name = "test") {
    v1::RunConfig config;
    config.set_name(name);
    config.set_rounds(10);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_segment_blocks(1);
    config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
    return config;
  }

  absl::Status Create(RunStore* store, const v1::RunConfig& config) {
    return store->CreateRun(config, prepared_.model_config_json, snapshot_.size(),
                            prepared_.sha256);
  }

  // Uploads in pieces from where the store is.
  absl::Status Upload(RunStore* store, size_t piece = 1000) {
    uint64_t at = *store->IncomingBytes(prepared_.sha256);
    while (at < snapshot_.size()) {
      const absl::Status status = store->AppendIncoming(
          prepared_.sha256, snapshot_.size(), at, absl::string_view(snapshot_).substr(at, piece));
      if (!status.ok()) return status;
      at = *store->IncomingBytes(prepared_.sha256);
    }
    return absl::OkStatus();
  }

  void CreateARun() {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(Upload(store->get()).ok());
    const absl::Status status = Create(store->get(), Config());
    ASSERT_TRUE(status.ok()) << status;
  }

  void ExpectDataLoss(const std::string& path, const std::string& message) {
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  static void Overwrite(const std::string& path, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }

  const Layout layout_ = *Layout::Create(*Manifest::Create({{"a", {70, 64}}, {"b", {9}}}), 1);
  TensorBuffer parameters_{layout_};
  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  testing::FakeClock clock_;
  Log log_{LogLevel::kError};
  InitialSnapshot prepared_;
  std::string snapshot_;
};

TEST_F(RunStoreTest, RefusesUploadsBeyondTheAnnouncedSize) {
  auto store = Open();
  const auto append = [&](uint64_t total, uint64_t offset, const std::string& data) {
    return (*store)->AppendIncoming(prepared_.sha256, total, offset, data).code();
  };
  EXPECT_EQ(append(10, 0, std::string(11, 'x')), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(append(10, 0, std::string(10, 'x')), absl::StatusCode::kOk);
  EXPECT_EQ(append(10, 10, "x"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(append(5, 10, "x"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*(*store)->IncomingBytes(prepared_.sha256), 10);
}

TEST_F(RunStoreTest, RefusesASecondOwner) {
  auto one = Open();
  const auto two = Open();
  EXPECT_EQ(two.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(two.status().message()), HasSubstr("another aggregator holds"));
  one->reset();
  EXPECT_TRUE(Open().ok());
}

// Companion files of the run.
class RunCompanionsTest : public RunStoreTest {
 protected:
  absl::Status Create(RunStore* store, const Companions& companions) {
    v1::RunConfig config = Config();
    config.set_tokenizer_sha256(ToHex(Sha256("of the run")));
    return store->CreateRun(config, prepared_.model_config_json, snapshot_.size(), prepared_.sha256,
                            companions);
  }
  const Companions companions_ = {{"tokenizer.json", "of the run"},
                                  {"tokenizer_config.json", "{}"}};
  const CompanionList list_ = DescribeCompanions(companions_);
};

TEST_F(RunCompanionsTest, AreUploadedInPiecesAndKept) {
  {
    auto store = Open();
    ASSERT_TRUE(Upload(store->get()).ok());
    EXPECT_EQ(*(*store)->IncomingCompanionBytes(list_), 0u);
    ASSERT_TRUE((*store)->AppendIncomingCompanions(list_, 0, "of the ").ok());
    EXPECT_EQ((*store)->IncomingCompanions(list_).status().code(),
              absl::StatusCode::kInvalidArgument)
        << "not whole";
    EXPECT_EQ(*(*store)->IncomingCompanionBytes(list_), 0u) << "so it was removed";
    ASSERT_TRUE((*store)->AppendIncomingCompanions(list_, 0, "of the run{").ok());
    EXPECT_EQ((*store)->AppendIncomingCompanions(list_, 11, "}too much").code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE((*store)->AppendIncomingCompanions(list_, 11, "}").ok());
    const auto companions = (*store)->IncomingCompanions(list_);
    ASSERT_TRUE(companions.ok()) << companions.status();
    const absl::Status created = Create(store->get(), *companions);
    ASSERT_TRUE(created.ok()) << created;
    EXPECT_EQ(*(*store)->IncomingCompanionBytes(list_), 0u) << "nothing is left of the upload";
  }
  EXPECT_EQ(*ReadFile(Data("companions/tokenizer.json")), "of the run");
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ((*store)->run()->companions.size(), 2);
  EXPECT_EQ((*store)->run()->companions[1].name(), "tokenizer_config.json");
}

TEST_F(RunCompanionsTest, ThatTheRunDoesNotPinAreRefused) {
  auto store = Open();
  ASSERT_TRUE(Upload(store->get()).ok());
  const absl::Status status = Create(store->get(), {{"tokenizer.json", "another"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer_sha256"));
  EXPECT_FALSE((*store)->has_run());
}

TEST_F(RunCompanionsTest, TellRunsApartWhereBothHaveSome) {
  auto store = Open();
  ASSERT_TRUE(Upload(store->get()).ok());
  ASSERT_TRUE(Create(store->get(), companions_).ok());
  EXPECT_TRUE(Create(store->get(), companions_).ok());
  EXPECT_TRUE(Create(store->get(), {}).ok()) << "by an older version";
  EXPECT_EQ(Create(store->get(), {{"tokenizer.json", "another"}}).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(RunCompanionsTest, ThatWereOnlySavedAnewAreTheRuns) {
  Overwrite(folder_.File("model/tokenizer_config.json"), "{\"a\": 1}");
  auto store = Open();
  ASSERT_EQ((*store)->CreateRunFromFolder(Config(), folder_.File("model")), absl::OkStatus());
  Overwrite(folder_.File("model/tokenizer_config.json"), "{\r\n\"a\":1}");
  EXPECT_EQ((*store)->CreateRunFromFolder(Config(), folder_.File("model")), absl::OkStatus());
  Overwrite(folder_.File("model/tokenizer_config.json"), "{\"a\": 2}");
  const absl::Status other = (*store)->CreateRunFromFolder(Config(), folder_.File("model"));
  EXPECT_EQ(other.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(other.message()), HasSubstr("tokenizer_config.json: "));
}

TEST_F(RunCompanionsTest, DamagedOrMissingOnesAreNamedAtTheStart) {
  {
    auto store = Open();
    ASSERT_TRUE(Upload(store->get()).ok());
    ASSERT_TRUE(Create(store->get(), companions_).ok());
  }
  Overwrite(Data("companions/tokenizer.json"), "of the rum");
  ExpectDataLoss(Data("companions/tokenizer.json"), "SHA-256");
  std::filesystem::remove(Data("companions/tokenizer.json"));
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RunStoreTest, CreatesARunAndFindsItAgain) {
  CreateARun();
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->has_run());
  const RunIdentity& run = *(*store)->run();
  EXPECT_THAT(run.run_id, MatchesRegex("test-[0-9a-f]{8}"));
  EXPECT_EQ(run.config.SerializeAsString(), CompleteRunConfig(Config())->SerializeAsString());
  EXPECT_EQ(run.model_config_json, prepared_.model_config_json);
  EXPECT_EQ(run.layout->manifest().hash(), layout_.manifest().hash());
  EXPECT_EQ(run.layout->segments(), 3);
  EXPECT_EQ(run.initial_snapshot.round(), 0);
  EXPECT_EQ(run.initial_snapshot.size_bytes(), snapshot_.size());
  EXPECT_EQ(run.initial_snapshot.sha256(),
            std::string(prepared_.sha256.begin(), prepared_.sha256.end()));
  EXPECT_EQ(run.initial_snapshot.state_hash(),
            StateHash(layout_, parameters_, MakeReferenceBackend().get()));
  EXPECT_EQ(*ReadFile(run.initial_snapshot_path), snapshot_);
  EXPECT_TRUE(std::filesystem::is_empty(Data("incoming")));
  EXPECT_TRUE(ParseRunConfig(*ReadFile(Data("run.json"))).ok());
}

TEST_F(RunStoreTest, CreatesTheSameRunFromAFolder) {
  std::string uploaded;
  {
    CreateARun();
    uploaded = *ReadFile(Data("snapshots/0.safetensors"));
    std::filesystem::remove_all(Data(""));
  }
  auto store = Open();
  ASSERT_TRUE((*store)->CreateRunFromFolder(Config(), folder_.File("model")).ok());
  EXPECT_EQ(*ReadFile((*store)->run()->initial_snapshot_path), uploaded);
  const std::string run_id = (*store)->run()->run_id;
  EXPECT_TRUE((*store)->CreateRunFromFolder(Config(), folder_.File("model")).ok());
  EXPECT_EQ((*store)->run()->run_id, run_id);
  Overwrite(folder_.File("model/config.json"), "{\r\n  \"model_type\":\"some\"\r\n}");
  EXPECT_EQ((*store)->CreateRunFromFolder(Config(), folder_.File("model")), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_empty(Data("incoming")));
  EXPECT_EQ((*store)->CreateRunFromFolder(Config(), folder_.File("nowhere")).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RunStoreTest, RefusesARunWhoseRoundsCouldNotBeStored) {
  auto store = Open();
  ASSERT_TRUE(Upload(store->get()).ok());
  v1::RunConfig config = Config();
  config.set_kept_per_block(1);
  config.set_max_workers(32'767);
  const absl::Status refused = Create(store->get(), config);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("max_workers"));
  EXPECT_FALSE((*store)->has_run());
  EXPECT_TRUE(Create(store->get(), Config()).ok());
}

// Both hold the same number, and no time passes: only what is drawn tells them apart. Three starts
// each, so that the test fails by chance in one case of 2^60.
TEST_F(RunStoreTest, DrawsOtherEpochsThanItsCopy) {
  CreateARun();
  std::filesystem::copy(Data(""), folder_.File("copy"), std::filesystem::copy_options::recursive);
  std::vector<uint64_t> epochs, of_the_copy;
  for (int i = 0; i < 3; ++i) {
    epochs.push_back((*Open())->epoch().value());
    of_the_copy.push_back(
        (*RunStore::Open(folder_.File("copy"), &disk_, &clock_, &log_))->epoch().value());
  }
  EXPECT_NE(epochs, of_the_copy);
}

TEST_F(RunStoreTest, RaisesNoEpochForAStartThatFails) {
  CreateARun();
  const std::string before = ReadTextFile(Data("epoch"), 1 << 10).value();
  const auto refused = RunStore::Open(Data(""), &disk_, &clock_, &log_, [](RunStore* store) {
    EXPECT_TRUE(store->has_run());
    return absl::UnavailableError("the port is in use");
  });
  EXPECT_EQ(refused.status(), absl::UnavailableError("the port is in use"));
  EXPECT_EQ(ReadTextFile(Data("epoch"), 1 << 10).value(), before);
}

TEST_F(RunStoreTest, KeepsTheRunItHas) {
  CreateARun();
  auto store = Open();
  EXPECT_TRUE(Create(store->get(), Config()).ok());
  const absl::Status other_name = Create(store->get(), Config("other"));
  EXPECT_EQ(other_name.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(other_name.message()), HasSubstr("another configuration (name: "));
  Sha256Digest other_sha256 = prepared_.sha256;
  other_sha256[0] ^= 1;
  EXPECT_EQ((*store)
                ->CreateRun(Config(), prepared_.model_config_json, snapshot_.size(), other_sha256)
                .code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ((*store)->CreateRun(Config(), "{}", snapshot_.size(), prepared_.sha256).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ((*store)->AppendIncoming(prepared_.sha256, snapshot_.size(), 0, "x").code(),
            absl::StatusCode::kFailedPrecondition);
  parameters_.tensor(0)[0] = 1;
  WriteModel("other", parameters_);
  EXPECT_EQ((*store)->CreateRunFromFolder(Config(), folder_.File("other")).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::is_empty(Data("incoming")));
}

TEST_F(RunStoreTest, GoesOnWithAnInterruptedUpload) {
  {
    auto store = Open();
    ASSERT_EQ(*(*store)->IncomingBytes(prepared_.sha256), 0);
    ASSERT_TRUE(
        (*store)
            ->AppendIncoming(prepared_.sha256, snapshot_.size(), 0, snapshot_.substr(0, 777))
            .ok());
    const absl::Status early = Create(store->get(), Config());
    EXPECT_EQ(early.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(early.message()), HasSubstr("777 of"));
  }
  auto store = Open();
  EXPECT_EQ(*(*store)->IncomingBytes(prepared_.sha256), 777);
  for (const uint64_t offset : {0, 776, 778}) {
    EXPECT_EQ((*store)->AppendIncoming(prepared_.sha256, snapshot_.size(), offset, "x").code(),
              absl::StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(Upload(store->get()).ok());
  EXPECT_TRUE(Create(store->get(), Config()).ok());
}

TEST_F(RunStoreTest, RemovesADamagedUpload) {
  auto store = Open();
  std::string damaged = snapshot_;
  damaged[damaged.size() / 2] ^= 1;
  ASSERT_TRUE((*store)->AppendIncoming(prepared_.sha256, damaged.size(), 0, damaged).ok());
  const absl::Status status = Create(store->get(), Config());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("SHA-256"));
  EXPECT_EQ(*(*store)->IncomingBytes(prepared_.sha256), 0);
  ASSERT_TRUE(
      (*store)->AppendIncoming(prepared_.sha256, snapshot_.size() + 1, 0, snapshot_ + "x").ok());
  EXPECT_EQ(Create(store->get(), Config()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*(*store)->IncomingBytes(prepared_.sha256), 0);
  ASSERT_TRUE(Upload(store->get()).ok());
  EXPECT_TRUE(Create(store->get(), Config()).ok());
}

TEST_F(RunStoreTest, RefusesWhatCannotBeARun) {
  auto store = Open();
  ASSERT_TRUE(Upload(store->get()).ok());
  v1::RunConfig bad = Config();
  bad.set_rounds(0);
  EXPECT_EQ(Create(store->get(), bad).code(), absl::StatusCode::kInvalidArgument);
  for (const std::string json : {"", "[]", "{", "{\"a\": \"\xff\"}"}) {
    const absl::Status status =
        (*store)->CreateRun(Config(), json, snapshot_.size(), prepared_.sha256);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("config.json"));
  }
  v1::RunConfig of_any_workers = Config();
  of_any_workers.clear_workers();
  const absl::Status nobodys = Create(store->get(), of_any_workers);
  EXPECT_EQ(nobodys.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nobodys.message()), HasSubstr("model_type: \"some\""));
  const std::string text = "not safetensors";
  const Sha256Digest sha256 = Sha256(text);
  ASSERT_TRUE((*store)->AppendIncoming(sha256, text.size(), 0, text).ok());
  EXPECT_EQ((*store)->CreateRun(Config(), kModelConfig, text.size(), sha256).code(),
            absl::StatusCode::kInvalidArgument);
  parameters_.tensor(1)[8] = std::numeric_limits<float>::quiet_NaN();
  WriteModel("nan", parameters_);
  const absl::Status status = (*store)->CreateRunFromFolder(Config(), folder_.File("nan"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor b: "));
  EXPECT_FALSE((*store)->has_run());
  EXPECT_FALSE(std::filesystem::exists(Data("run.pb")));
  EXPECT_TRUE(Create(store->get(), Config()).ok());
}

// A kill after the snapshot got its name and before run.pb: there is no run yet, and it can be
// created.
TEST_F(RunStoreTest, CreatesTheRunAfterAKillInBetween) {
  CreateARun();
  std::filesystem::remove(Data("run.pb"));
  Overwrite(Data("run.pb.tmp"), "half");
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->has_run());
  EXPECT_FALSE(std::filesystem::exists(Data("run.pb.tmp")));
  ASSERT_TRUE(Upload(store->get()).ok());
  EXPECT_TRUE(Create(store->get(), Config("again")).ok());
}

TEST_F(RunStoreTest, RefusesToStartWithADamagedRunFile) {
  CreateARun();
  const std::string good = *ReadFile(Data("run.pb"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1 << (i % 8);
    Overwrite(Data("run.pb"), bad);
    ExpectDataLoss(Data("run.pb"), "restore the file");
    Overwrite(Data("run.pb"), good.substr(0, i));
    ExpectDataLoss(Data("run.pb"), "restore the file");
    if (HasFailure()) return;
  }
  Overwrite(Data("run.pb"), good);
  EXPECT_TRUE(Open().ok());
}

TEST_F(RunStoreTest, RefusesToStartWithADamagedSnapshot) {
  CreateARun();
  std::string bad = snapshot_;
  bad.back() ^= 1;
  Overwrite(Data("snapshots/0.safetensors"), bad);
  ExpectDataLoss(Data("snapshots/0.safetensors"), "SHA-256");
  std::filesystem::remove(Data("snapshots/0.safetensors"));
  ExpectDataLoss(Data("snapshots/0.safetensors"), "restore the file");
  Overwrite(Data("snapshots/0.safetensors"), snapshot_);
}

TEST_F(RunStoreTest, RefusesToStartWithRoundsOfALostRun) {
  CreateARun();
  std::filesystem::remove(Data("run.pb"));
  Overwrite(Data("rounds/start.record"), "x");
  ExpectDataLoss(Data("run.pb"), "is missing, but the folder has rounds");
}

// Written by a version that has only signs.
TEST_F(RunStoreTest, ContinuesRunWithoutMethodAsSigns) {
  CreateARun();
  v1::StoredRun stored = *ParseRunFile(*ReadFile(Data("run.pb")));
  stored.mutable_config()->clear_method();
  Overwrite(Data("run.pb"), EncodeRunFile(stored));
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->run()->config.method(), v1::METHOD_SIGNS);
  v1::RunConfig again = Config();
  again.clear_method();
  EXPECT_EQ(Create(store->get(), again), absl::OkStatus()) << "as the operator gave it before";
  again.set_method(v1::METHOD_DELTAS);
  EXPECT_EQ(Create(store->get(), again).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RunStoreTest, RefusesRunWithAKeyOfANewerVersionAsNewerNotAsDamaged) {
  CreateARun();
  v1::StoredRun stored = *ParseRunFile(*ReadFile(Data("run.pb")));
  v1::RunConfig& config = *stored.mutable_config();
  config.GetReflection()->MutableUnknownFields(&config)->AddVarint(4000, 1);
  Overwrite(Data("run.pb"), EncodeRunFile(stored));
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_THAT(std::string(status.message()),
              MatchesRegex(".*run\\.pb: this version does not know key 4000 of the run: use .*"));
}

// The model determines which tensors Muon steps, so its architecture must be known.
TEST_F(RunStoreTest, NeedsKnownModelForDeltas) {
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(Upload(store->get()).ok());
  v1::RunConfig config = Config();
  config.set_method(v1::METHOD_DELTAS);
  const absl::Status status = Create(store->get(), config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("config.json"));
}

}  // namespace
}  // namespace distro::server
