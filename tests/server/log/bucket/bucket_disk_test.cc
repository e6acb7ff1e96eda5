// A run whose truth is in a bucket: what a machine has stored another one reads, whatever requests
// fail and wherever a process ends; and of two that write, one is stopped.
#include "server/log/bucket/bucket_disk.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/bucket/folder_copy.h"
#include "server/log/bucket/store_folder.h"
#include "server/log/round_log.h"
#include "server/log/run_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/object_store.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::ObjectStore;
using testing::ScratchFolder;
using testing::StoreFault;

constexpr uint64_t kRounds = 7;

// A process on a machine of its own, with an empty folder.
class Machine {
 public:
  explicit Machine(const ObjectStore& store, int tries = 1)
      : client_(store.Client(tries)), disk_(client_.get(), Disk::Real(), Data(), {}, &log_) {}

  std::string Data() const { return folder_.File("data"); }
  std::string Path(const std::string& name) const { return Data() + "/" + name; }
  S3Client* client() { return client_.get(); }
  BucketDisk* disk() { return &disk_; }
  RunStore* store() { return store_.get(); }
  RoundLog* rounds() { return rounds_.get(); }

  // Opens the run, creates it where there is none, and its log.
  absl::Status Open() {
    auto store = RunStore::Open(Data(), &disk_, Clock::Real(), &log_);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    if (!store_->has_run()) {
      if (absl::Status created = Create(); !created.ok()) return created;
    }
    auto rounds =
        RoundLog::Open(store_->rounds_dir(), store_->run()->layout.get(), 100, &disk_, &log_);
    if (!rounds.ok()) return rounds.status();
    rounds_ = *std::move(rounds);
    if (rounds_->has_start()) return absl::OkStatus();
    v1::StartHeader start;
    start.set_run_id(store_->run()->run_id);
    const Sha256Digest& hash = store_->run()->layout->manifest().hash();
    start.set_manifest_hash(std::string(hash.begin(), hash.end()));
    return rounds_->WriteStart(start);
  }

  absl::Status WriteRound() {
    const Layout& layout = *store_->run()->layout;
    const testing::BuiltRound round = testing::BuildRound(
        layout, rounds_->next_round(), rounds_->HashBefore(rounds_->next_round()), store_->epoch());
    auto writer = rounds_->Begin(rounds_->next_round());
    if (!writer.ok()) return writer.status();
    for (uint32_t i = 0; i < layout.segments(); ++i) {
      const absl::Status added = writer->AddSegment(SegmentId(i), round.payloads[i]);
      if (!added.ok()) return added;
    }
    return rounds_->Commit(*std::move(writer), round.header_bytes());
  }

  absl::Status Pause(bool paused) {
    v1::StoredAdmission admission;
    admission.set_paused(paused);
    return store_->admission()->Write(admission);
  }

  // The names and bytes of the files that are in the bucket as well.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Data())) {
      const std::string name = entry.path().string().substr(Data().size() + 1);
      if (entry.is_regular_file() && name != "lock") files[name] = *ReadFile(entry.path().string());
    }
    return files;
  }

 private:
  absl::Status Create() {
    const Layout layout = testing::SmallLayout();
    const absl::Status written =
        WriteCheckpointFolder(folder_.File("model"), "{}", layout, TensorBuffer(layout));
    if (!written.ok()) return written;
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(1000);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_workers(v1::WORKERS_PYTHON);
    return store_->CreateRunFromFolder(config, folder_.File("model"));
  }

  ScratchFolder folder_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  std::unique_ptr<S3Client> client_;
  BucketDisk disk_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<RoundLog> rounds_;
};

// Does a run's work from wherever it is: seven rounds, an operator's decision, two prunings.
absl::Status Work(Machine* machine) {
  RoundLog* const rounds = machine->rounds();
  while (true) {
    const uint64_t next = rounds->next_round().value();
    absl::Status status = absl::OkStatus();
    if (next == 2) status = machine->Pause(true);
    if (next == 4) status = rounds->Prune(RoundId(3));
    if (next == 6) status = rounds->Prune(RoundId(5));
    if (next == kRounds || !status.ok()) return status;
    status = machine->WriteRound();
    if (!status.ok()) return status;
  }
}

std::vector<uint64_t> HashesOf(const RoundLog& log) {
  std::vector<uint64_t> hashes;
  for (uint64_t t = 0; t <= log.next_round().value(); ++t)
    hashes.push_back(log.HashBefore(RoundId(t)));
  return hashes;
}

// Another machine gets the same files, but for the epoch, which it raises.
void ExpectTheSameElsewhere(const ObjectStore& store, Machine* machine) {
  Machine other(store);
  const absl::Status opened = other.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  std::map<std::string, std::string> expected = machine->Files(), got = other.Files();
  expected.erase("epoch");
  got.erase("epoch");
  EXPECT_EQ(got, expected);
}

TEST(BucketDiskTest, AnotherMachineHasTheSameFiles) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  const absl::Status worked = Work(&machine);
  ASSERT_TRUE(worked.ok()) << worked;
  EXPECT_EQ(machine.rounds()->first_round(), RoundId(5));
  EXPECT_EQ(machine.Files().size(), store.objects().size());
  ExpectTheSameElsewhere(store, &machine);
}

TEST(BucketDiskTest, OldRoundsLeaveTheBucket) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(Work(&machine).ok());
  const auto objects = store.objects();
  for (uint64_t t : {1, 2, 3, 4})
    EXPECT_EQ(objects.count("rounds/" + RecordName(RoundId(t))), 0) << t;
  for (uint64_t t : {0, 5, 6}) EXPECT_EQ(objects.count("rounds/" + RecordName(RoundId(t))), 1) << t;
}

// Does `step` until it is OK; more failures than there are faults are none of the store.
template <typename Step>
void Insist(const Step& step) {
  absl::Status status;
  for (int i = 0; i < 4; ++i) {
    status = step();
    if (status.ok()) return;
    ASSERT_EQ(ReasonOf(status), "disk") << status;
  }
  FAIL() << status;
}

TEST(BucketDiskTest, AnyRequestMayFail) {
  for (const StoreFault fault : {StoreFault::kRefuse, StoreFault::kLose, StoreFault::kCut}) {
    bool reached = true;
    for (int n = 0; reached; ++n) {
      SCOPED_TRACE(absl::StrCat("request ", n, ", fault ", static_cast<int>(fault)));
      ObjectStore store;
      Machine machine(store);
      ASSERT_TRUE(machine.Open().ok());
      const int begin = store.requests();
      store.SetFault([&](const std::string&, const std::string&, int i) {
        return i == begin + n ? fault : StoreFault::kNone;
      });
      Insist([&] { return Work(&machine); });
      reached = store.requests() > begin + n;
      store.SetFault(nullptr);
      if (n % 8 == 0 || !reached) ExpectTheSameElsewhere(store, &machine);
    }
  }
}

TEST(BucketDiskTest, LosesNothingIfAProcessEndsAtAnyRequest) {
  for (const StoreFault fault : {StoreFault::kLose, StoreFault::kCut}) {
    bool reached = true;
    for (int n = 0; reached; ++n) {
      SCOPED_TRACE(absl::StrCat("request ", n, ", fault ", static_cast<int>(fault)));
      ObjectStore store;
      Machine killed(store);
      store.SetFault([&](const std::string&, const std::string&, int i) {
        return i == n ? fault : i > n ? StoreFault::kCut : StoreFault::kNone;
      });
      absl::Status status = killed.Open();
      if (status.ok()) status = Work(&killed);
      reached = store.requests() > n;
      store.SetFault(nullptr);
      Machine next(store);
      ASSERT_TRUE(next.Open().ok());
      if (killed.rounds() != nullptr && killed.rounds()->has_start()) {
        const std::vector<uint64_t> acknowledged = HashesOf(*killed.rounds());
        const std::vector<uint64_t> kept = HashesOf(*next.rounds());
        ASSERT_LE(acknowledged.size(), kept.size());
        EXPECT_LE(kept.size(), acknowledged.size() + 1) << "at most the one whose answer was lost";
        EXPECT_TRUE(std::equal(acknowledged.begin(), acknowledged.end(), kept.begin()));
      }
      const absl::Status worked = Work(&next);
      ASSERT_TRUE(worked.ok()) << worked;
      EXPECT_EQ(next.rounds()->next_round(), RoundId(kRounds));
      if (n % 16 < 2) ExpectTheSameElsewhere(store, &next);
    }
  }
}

TEST(BucketDiskTest, WhoeverStartsLaterIsTheOnlyWriter) {
  ObjectStore store;
  Machine first(store), second(store);
  ASSERT_TRUE(first.Open().ok());
  ASSERT_TRUE(first.WriteRound().ok());
  ASSERT_TRUE(second.Open().ok());
  const auto before = store.objects();
  EXPECT_EQ(ReasonOf(first.WriteRound()), "fenced");
  EXPECT_EQ(ReasonOf(first.Pause(true)), "fenced");
  EXPECT_EQ(ReasonOf(first.rounds()->Prune(RoundId(1))), "fenced");
  EXPECT_EQ(ReasonOf(first.disk()->CheckLeader()), "fenced");
  EXPECT_EQ(store.objects(), before);
  EXPECT_EQ(first.rounds()->next_round(), RoundId(1));
  EXPECT_TRUE(second.WriteRound().ok());
  EXPECT_TRUE(second.rounds()->Prune(RoundId(1)).ok());
}

// The first process sleeps between its look at the epoch and its write, and another one starts.
class LateWriteTest : public ::testing::Test {
 protected:
  // Opens the second machine, and does `then`, before the PUT of `key` by the first one.
  void Before(
      const std::string& key, std::function<void()> then = [] {}) {
    store_.SetFault([this, key, then](const std::string& method, const std::string& put, int) {
      if (!slept_ && method == "PUT" && put == key) {
        slept_ = true;
        EXPECT_TRUE(second_.Open().ok());
        then();
      }
      return StoreFault::kNone;
    });
  }

  const std::string record_ = "rounds/" + RecordName(RoundId(0));
  ObjectStore store_;
  Machine first_{store_}, second_{store_};
  bool slept_ = false;
};

TEST_F(LateWriteTest, OfARoundThatTheOtherHasCommitted) {
  ASSERT_TRUE(first_.Open().ok());
  Before(record_, [&] { EXPECT_TRUE(second_.WriteRound().ok()); });
  EXPECT_EQ(ReasonOf(first_.WriteRound()), "fenced");
  EXPECT_TRUE(slept_);
  EXPECT_EQ(first_.rounds()->next_round(), RoundId(0)) << "nobody learns of it";
  EXPECT_TRUE(second_.WriteRound().ok());
}

TEST_F(LateWriteTest, OfARoundThatTheOtherHasOpen) {
  ASSERT_TRUE(first_.Open().ok());
  Before(record_);
  EXPECT_EQ(ReasonOf(first_.WriteRound()), "fenced");
  EXPECT_EQ(first_.rounds()->next_round(), RoundId(0));
  const absl::Status status = second_.WriteRound();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(status.message(), HasSubstr("start again"));
  Machine third(store_);
  ASSERT_TRUE(third.Open().ok());
  EXPECT_EQ(third.rounds()->next_round(), RoundId(1));
  EXPECT_TRUE(third.WriteRound().ok());
}

TEST_F(LateWriteTest, OfADecisionIsReplacedByTheOther) {
  ASSERT_TRUE(first_.Open().ok());
  Before("admission.pb");
  EXPECT_EQ(ReasonOf(first_.Pause(true)), "fenced");
  EXPECT_TRUE(second_.Pause(false).ok());
  EXPECT_EQ(ReasonOf(first_.Pause(true)), "fenced");
  ExpectTheSameElsewhere(store_, &second_);
}

TEST_F(LateWriteTest, OfTheEpoch) {
  Before("epoch");
  EXPECT_EQ(ReasonOf(first_.Open()), "fenced");
  EXPECT_TRUE(second_.WriteRound().ok());
}

TEST(BucketDiskTest, GoesOnAfterAWriteWhoseAnswerWasLost) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(machine.Pause(false).ok());
  bool lost = false;
  store.SetFault([&](const std::string& method, const std::string& key, int) {
    if (lost) return StoreFault::kRefuse;
    lost = method == "PUT" && key == "admission.pb";
    return lost ? StoreFault::kLose : StoreFault::kNone;
  });
  EXPECT_EQ(ReasonOf(machine.Pause(true)), "disk");
  store.SetFault(nullptr);
  const absl::Status status = machine.Pause(false);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(BucketDiskTest, RefusedCredentialsAreFinalOnlyBeforeThereIsARun) {
  ObjectStore store;
  Machine machine(store);
  const auto forbid = [](const std::string&, const std::string&, int) {
    return StoreFault::kForbid;
  };
  store.SetFault(forbid);
  const absl::Status first = machine.Open();
  EXPECT_EQ(first.code(), absl::StatusCode::kInvalidArgument) << first;
  store.SetFault(nullptr);
  ASSERT_TRUE(machine.Open().ok());
  store.SetFault(forbid);
  const absl::Status later = machine.disk()->Restore().status();
  EXPECT_EQ(ReasonOf(later), "disk");
  EXPECT_THAT(later.message(), HasSubstr("403"));
}

TEST(BucketDiskTest, GoesOnWithACreationThatDidNotEnd) {
  ObjectStore store;
  store.Set("run.json", "of another configuration");
  store.Set("model_config.json", "of another model");
  Machine machine(store);
  const absl::Status opened = machine.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  ExpectTheSameElsewhere(store, &machine);
}

TEST(BucketDiskTest, FindsAHole) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(machine.WriteRound().ok());
  store.Set("rounds/" + RecordName(RoundId(1)), nullptr);
  Machine next(store);
  const absl::Status status = next.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("0000000001.record: is missing"));
}

TEST(BucketDiskTest, RefusesAFolderWhereTheRunWentOnOtherwise) {
  ObjectStore store;
  Machine machine(store), other(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(machine.WriteRound().ok());
  store.Set("rounds/" + RecordName(RoundId(0)), nullptr);
  ASSERT_TRUE(other.Open().ok());
  ASSERT_TRUE(other.WriteRound().ok());
  const absl::Status status = machine.disk()->Restore().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr("used without it"));
}

// The list of rounds is read page by page, and the leader packs rounds in between.
TEST(BucketDiskTest, CopiesWhileRoundsArePacked) {
  ObjectStore store;
  Machine leader(store);
  ASSERT_TRUE(leader.Open().ok());
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(leader.WriteRound().ok());
  for (int n = 0; n < 12; ++n) {
    SCOPED_TRACE(n);
    ObjectStore copied_store;
    Machine copier(store);
    ASSERT_TRUE(copier.disk()->CreateFolder(copier.Data()).ok());
    int seen = 0;
    store.SetFault([&](const std::string&, const std::string& key, int) {
      const bool rounds = key.empty() || key.starts_with("rounds/");
      if (rounds && seen++ == n) {
        store.SetFault(nullptr);
        EXPECT_TRUE(leader.WriteRound().ok());
        EXPECT_TRUE(
            leader.rounds()->Prune(RoundId(leader.rounds()->next_round().value() - 2)).ok());
      }
      return StoreFault::kNone;
    });
    Log log(LogLevel::kError);
    FolderCopy copy(copier.client(), copier.Data(), Disk::Real(), &log);
    const auto fetched = copy.Fetch();
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    store.SetFault(nullptr);
    const auto rounds =
        RoundLog::OpenReadOnly(copier.Path("rounds"), leader.store()->run()->layout.get(), 100);
    ASSERT_TRUE(rounds.ok()) << rounds.status();
    EXPECT_GE((*rounds)->next_round().value() + 1, leader.rounds()->next_round().value());
  }
}

TEST(BucketDiskTest, PrunesTheCopyAsTheLeaderDoes) {
  ObjectStore store;
  Machine leader(store), waiting(store);
  ASSERT_TRUE(leader.Open().ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(leader.WriteRound().ok());
  ASSERT_TRUE(waiting.disk()->CreateFolder(waiting.Data()).ok());
  Log log(LogLevel::kError);
  FolderCopy copy(waiting.client(), waiting.Data(), Disk::Real(), &log);
  ASSERT_TRUE(copy.Fetch().ok());
  ASSERT_TRUE(Work(&leader).ok());
  ASSERT_TRUE(copy.Fetch().ok());
  EXPECT_EQ(waiting.Files(), leader.Files());
  EXPECT_FALSE(copy.Fetch()->changed);
}

TEST(BucketDiskTest, RefusesAStoreThatDropsWhatItIsTold) {
  ObjectStore store;
  Machine machine(store);
  store.SetFault([&](const std::string& method, const std::string& key, int) {
    if (method == "HEAD") store.Set(key, "without a SHA-256");
    return StoreFault::kNone;
  });
  const absl::Status status = machine.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("x-amz-meta-"));
}

TEST(BucketDiskTest, OneOfTwoCreatesTheRun) {
  ObjectStore store;
  Machine first(store), second(store);
  bool meanwhile = false;
  store.SetFault([&](const std::string& method, const std::string& key, int) {
    if (!meanwhile && method == "PUT" && key == "run.pb") {
      meanwhile = true;
      EXPECT_TRUE(second.Open().ok());
    }
    return StoreFault::kNone;
  });
  EXPECT_EQ(ReasonOf(first.Open()), "fenced");
  EXPECT_TRUE(meanwhile);
  EXPECT_TRUE(second.WriteRound().ok());
}

TEST(BucketDiskTest, FetchesWhatALocalCopyLacks) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  Machine other(store);
  ASSERT_TRUE(other.Open().ok());
  ASSERT_TRUE(Work(&other).ok());
  // The first machine's process starts again with its old folder.
  ASSERT_EQ(ReasonOf(machine.WriteRound()), "fenced");
  ASSERT_TRUE(machine.disk()->Restore().ok());
  std::map<std::string, std::string> expected = other.Files();
  EXPECT_EQ(machine.Files(), expected);
}

TEST(BucketDiskTest, FetchesADamagedCopyAgain) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(machine.WriteRound().ok());
  const auto expected = machine.Files();
  for (const std::string name : {"rounds/start.record", "run.json", "snapshots/0.safetensors"}) {
    ASSERT_TRUE(WriteFileAtomically(machine.Path(name), "short").ok());
    ASSERT_TRUE(machine.disk()->Restore().ok()) << name;
    EXPECT_EQ(machine.Files(), expected) << name;
  }
}

TEST(BucketDiskTest, LeftBehindRecordsAreRemoved) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(Work(&machine).ok());
  for (uint64_t t : {3, 4}) store.Set("rounds/" + RecordName(RoundId(t)), "a packed record");
  store.Set("snapshots/9-00.safetensors", "an upload that may be listed yet");
  ASSERT_TRUE(machine.disk()->Restore().ok());
  EXPECT_THAT(store.objects(), Contains(Key("snapshots/9-00.safetensors")));
  EXPECT_THAT(store.objects(), ::testing::Not(Contains(Key("rounds/" + RecordName(RoundId(3))))));
  EXPECT_THAT(store.objects(), ::testing::Not(Contains(Key("rounds/" + RecordName(RoundId(4))))));
}

TEST(BucketDiskTest, RefusesAFolderThatIsAheadOfTheBucket) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(machine.WriteRound().ok());
  store.Set("rounds/" + RecordName(RoundId(0)), nullptr);
  const absl::Status status = machine.disk()->Restore().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(machine.Path("rounds/0000000000.record")));
}

// A folder that was used without the bucket has rounds that nobody else has: it stays as it is.
TEST(BucketDiskTest, ChangesNothingInAFolderThatItRefuses) {
  ObjectStore store;
  Machine machine(store), other(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(machine.WriteRound().ok());
  const std::string copy = machine.Data() + "-copy";
  std::filesystem::copy(machine.Data(), copy, std::filesystem::copy_options::recursive);
  ASSERT_TRUE(Work(&machine).ok());
  Log log(LogLevel::kError);
  {
    const auto rounds = RoundLog::Open(copy + "/rounds", machine.store()->run()->layout.get(), 0,
                                       Disk::Real(), &log);
    for (int i = 0; i < 9; ++i) {
      const testing::BuiltRound round =
          testing::BuildRound(*machine.store()->run()->layout, (*rounds)->next_round(),
                              (*rounds)->HashBefore((*rounds)->next_round()), EpochId(9));
      auto writer = (*rounds)->Begin((*rounds)->next_round());
      for (uint32_t s = 0; s < round.payloads.size(); ++s)
        ASSERT_TRUE(writer->AddSegment(SegmentId(s), round.payloads[s]).ok());
      ASSERT_TRUE((*rounds)->Commit(*std::move(writer), round.header_bytes()).ok());
      if (i == 4) {
        ASSERT_EQ((*rounds)->Prune(RoundId(4)), absl::OkStatus());
      }
    }
  }
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(copy)) {
      if (entry.is_regular_file()) all[entry.path().string()] = *ReadFile(entry.path().string());
    }
    return all;
  };
  const auto before = files();
  FolderCopy fetch(machine.client(), copy, Disk::Real(), &log);
  const absl::Status status = fetch.Fetch().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(files(), before);
}

TEST(BucketDiskTest, KeepsTheCopyOfAMissingObject) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  const std::string epoch = *ReadFile(machine.Path("epoch"));
  store.Set("epoch", nullptr);
  EXPECT_EQ(machine.disk()->Restore().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*ReadFile(machine.Path("epoch")), epoch);
}

TEST(BucketDiskTest, StoresASnapshotThatTheBucketLost) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  std::string key;
  for (const auto& [each, object] : store.objects()) {
    if (each.starts_with("snapshots/")) key = each;
  }
  store.Set(key, nullptr);
  ASSERT_TRUE(machine.disk()->Restore().ok());
  EXPECT_THAT(store.objects(), Contains(Key(key)));
}

TEST(BucketDiskTest, EndsTheHeartbeatWithTheDisk) {
  ObjectStore store;
  testing::ScratchFolder folder;
  const auto client = store.Client();
  Log log(LogLevel::kError);
  {
    BucketDisk disk(client.get(), Disk::Real(), folder.path(),
                    {.interval = absl::Milliseconds(1),
                     .on_fenced = [](absl::Status status) { FAIL() << status; }},
                    &log);
    ASSERT_TRUE(disk.Restore().ok());
    ASSERT_TRUE(WriteAtomically(&disk, folder.File("epoch"), "7\n").ok());
    EXPECT_FALSE(store.objects().contains("leader")) << "a start that fails keeps nobody waiting";
    ASSERT_TRUE(disk.Restore().ok());
    while (!store.objects().contains("leader")) {
    }
  }
  EXPECT_FALSE(store.objects().contains("leader"));
}

TEST(BucketDiskTest, LeavesTheHeartbeatOfAnother) {
  ObjectStore store;
  testing::ScratchFolder folder;
  const auto client = store.Client();
  Log log(LogLevel::kError);
  {
    BucketDisk disk(client.get(), Disk::Real(), folder.path(), {.interval = absl::Hours(1)}, &log);
    ASSERT_TRUE(WriteAtomically(&disk, folder.File("epoch"), "7\n").ok());
    ASSERT_TRUE(disk.Restore().ok());
    while (!store.objects().contains("leader")) {
    }
    store.Set("epoch", "8\n");
  }
  EXPECT_TRUE(store.objects().contains("leader"));
}

TEST_F(LateWriteTest, OfAPackIsReplacedByTheOther) {
  ASSERT_TRUE(first_.Open().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first_.WriteRound().ok());
  Before(record_);
  EXPECT_EQ(ReasonOf(first_.rounds()->Prune(RoundId(2))), "fenced");
  EXPECT_TRUE(slept_);
  ASSERT_TRUE(second_.WriteRound().ok());
  const absl::Status pruned = second_.rounds()->Prune(RoundId(3));
  EXPECT_TRUE(pruned.ok()) << pruned;
  ExpectTheSameElsewhere(store_, &second_);
}

TEST(BucketDiskTest, RefusesTheFolderOfAnotherRun) {
  ObjectStore store, other;
  Machine machine(store), stranger(other);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(stranger.Open().ok());
  Log log(LogLevel::kError);
  FolderCopy copy(machine.client(), stranger.Data(), Disk::Real(), &log);
  const absl::Status status = copy.Fetch().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("different runs"));
}

TEST(BucketDiskTest, SaysWhichObjectIsMissing) {
  ObjectStore store;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  const auto objects = store.objects();
  for (const auto& [key, object] : objects) {
    if (!key.starts_with("snapshots/")) continue;
    store.Set(key, nullptr);
    Machine next(store);
    const absl::Status status = next.Open();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(key));
  }
}

TEST(BucketDiskTest, StoresAFolderAndFetchesIt) {
  ObjectStore store, other;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(Work(&machine).ok());
  Log log(LogLevel::kError);
  const auto client = other.Client();
  const absl::Status stored = StoreFolder(client.get(), machine.Data(), &log);
  ASSERT_TRUE(stored.ok()) << stored;
  Machine copy(other);
  ASSERT_TRUE(copy.disk()->CreateFolder(copy.Data()).ok());
  ASSERT_TRUE(copy.disk()->Restore().ok());
  EXPECT_EQ(copy.Files(), machine.Files());
  EXPECT_EQ(StoreFolder(client.get(), machine.Data(), &log).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST(BucketDiskTest, StoringGoesOnAfterAnInterruption) {
  ObjectStore store, other;
  Machine machine(store);
  ASSERT_TRUE(machine.Open().ok());
  ASSERT_TRUE(Work(&machine).ok());
  Log log(LogLevel::kError);
  const auto client = other.Client();
  for (int stop = 3;; stop += 5) {
    const int begin = other.requests();
    other.SetFault([begin, stop](const std::string&, const std::string&, int n) {
      return n >= begin + stop ? StoreFault::kCut : StoreFault::kNone;
    });
    const absl::Status stored = StoreFolder(client.get(), machine.Data(), &log);
    if (stored.ok()) break;
    EXPECT_EQ(other.objects().count("run.pb"), 0);
  }
  other.SetFault(nullptr);
  Machine copy(other);
  ASSERT_TRUE(copy.disk()->CreateFolder(copy.Data()).ok());
  ASSERT_TRUE(copy.disk()->Restore().ok());
  EXPECT_EQ(copy.Files(), machine.Files());
}

}  // namespace
}  // namespace distro::server
