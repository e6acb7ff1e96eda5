// A run of the small layout whose snapshots a test uploads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "common/model/checkpoint/snapshot.h"
#include "gtest/gtest.h"
#include "server/log/run_store.h"
#include "server/log/snapshot_check.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {

// A snapshot in the form that an archiver uploads.
struct Uploaded {
  std::string bytes;
  v1::SnapshotInfo info;
};

class SnapshotFixture : public LogFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteCheckpointFolder(folder_.File("model"), "{}", layout_, TensorBuffer(layout_)).ok());
    store_ = *RunStore::Open(Data(), &disk_, &clock_, &log_);
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(1000);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
    ASSERT_TRUE(store_->CreateRunFromFolder(config, folder_.File("model")).ok());
    snapshots_ = store_->snapshots();
  }

  std::string Data(const std::string& name = "") const {
    return name.empty() ? folder_.File("data") : folder_.File("data/" + name);
  }

  // A snapshot before `round` in which all parameters are `value`.
  Uploaded Make(uint64_t round, float value) {
    TensorBuffer parameters(layout_);
    for (int t = 0; t < parameters.tensors(); ++t) {
      for (float& p : parameters.tensor(t)) p = value;
    }
    const std::string path = folder_.File("made");
    EXPECT_TRUE(WriteSnapshot(path, layout_, parameters, {}).ok());
    Uploaded made{*ReadFile(path), {}};
    made.info.set_round(round);
    made.info.set_size_bytes(made.bytes.size());
    made.info.set_sha256(DigestBytes(*Sha256OfFile(path)));
    made.info.set_log_hash(round * 3);
    const auto hash = CheckedStateHash(path, layout_);
    made.info.set_state_hash(hash.ok() ? *hash : 0);
    return made;
  }
  Uploaded Make(uint64_t round) { return Make(round, static_cast<float>(round)); }

  absl::Status Send(const Uploaded& upload, size_t piece = 5000) {
    auto at = snapshots_->IncomingBytes(upload.info);
    while (at.ok() && *at < upload.bytes.size()) {
      const absl::Status status = snapshots_->AppendIncoming(
          upload.info, *at, absl::string_view(upload.bytes).substr(*at, piece));
      if (!status.ok()) return status;
      at = snapshots_->IncomingBytes(upload.info);
    }
    return at.status();
  }

  void Store(uint64_t round) {
    const Uploaded upload = Make(round);
    ASSERT_TRUE(Send(upload).ok());
    const absl::Status status = snapshots_->Adopt(upload.info);
    ASSERT_TRUE(status.ok()) << status;
  }

  static std::vector<uint64_t> RoundsOf(const SnapshotStore& store) {
    std::vector<uint64_t> rounds;
    for (const v1::SnapshotInfo& info : store.List()) rounds.push_back(info.round());
    return rounds;
  }
  std::vector<uint64_t> Rounds() const { return RoundsOf(*snapshots_); }

  // Opens the store as a start of the aggregator does.
  std::unique_ptr<SnapshotStore> OpenAgain(const std::string& data_dir) {
    return *SnapshotStore::Open(data_dir, store_->run(), Disk::Real(), &log_);
  }

  void ExpectListedFilesAreWhole(const SnapshotStore& store) {
    for (const v1::SnapshotInfo& info : store.List()) {
      const auto path = store.PathOf(info.sha256());
      ASSERT_TRUE(path.ok()) << path.status();
      ASSERT_TRUE(std::filesystem::exists(*path)) << *path;
      EXPECT_EQ(DigestBytes(*Sha256OfFile(*path)), info.sha256());
    }
  }

  int FilesIn(const std::string& name) const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(Data(name)))
      ++count;
    return count;
  }

  std::unique_ptr<RunStore> store_;
  SnapshotStore* snapshots_ = nullptr;
};

}  // namespace distro::server
