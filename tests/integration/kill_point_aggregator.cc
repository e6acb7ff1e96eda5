// The aggregator, but its process is killed at a chosen operation on its data folder. For kill_points_test.
//
//   kill_point_aggregator N FLAGS...
//
// FLAGS are those of distro-aggregator. Operations that change the folder are counted from 0; instead of operation N the
// process gets a SIGKILL, a write when half of its bytes are there. Standard output gets the address once it listens,
// standard error says where it was killed.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "server/aggregator_server.h"
#include "server/flags.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

class KillingDisk final : public Disk {
 public:
  explicit KillingDisk(uint64_t kill_at) : kill_at_(kill_at) {}

  absl::Status CreateFolder(const std::string& path) override {
    Count(DiskOperation::kCreateFolder, path);
    return below_->CreateFolder(path);
  }
  absl::StatusOr<int> Create(const std::string& path) override {
    Count(DiskOperation::kCreate, path);
    return below_->Create(path);
  }
  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override {
    Count(DiskOperation::kWrite, path,
          [&] { (void)below_->Write(fd, path, offset, bytes.substr(0, bytes.size() / 2)); });
    return below_->Write(fd, path, offset, bytes);
  }
  absl::Status Fsync(int fd, const std::string& path) override {
    Count(DiskOperation::kFsync, path);
    return below_->Fsync(fd, path);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    Count(DiskOperation::kLink, to);
    return below_->Link(from, to);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    Count(DiskOperation::kRename, to);
    return below_->Rename(from, to);
  }
  absl::Status Unlink(const std::string& path) override {
    Count(DiskOperation::kUnlink, path);
    return below_->Unlink(path);
  }
  absl::Status FsyncFolder(const std::string& path) override {
    Count(DiskOperation::kFsyncFolder, path);
    return below_->FsyncFolder(path);
  }
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override {
    return below_->FreeBytes(path);
  }

 private:
  void Count(DiskOperation operation, const std::string& path, auto&& before) {
    if (next_.fetch_add(1) != kill_at_) return;
    before();
    std::cerr << "killed at " << kill_at_ << ": " << DiskOperationName(operation) << " " << path
              << std::endl;
    raise(SIGKILL);
  }
  void Count(DiskOperation operation, const std::string& path) {
    Count(operation, path, [] {});
  }

  Disk* const below_ = Disk::Real();
  const uint64_t kill_at_;
  std::atomic<uint64_t> next_{0};
};

int Fail(const absl::Status& status) {
  std::cerr << "kill_point_aggregator: " << status << std::endl;
  return 1;
}

int Main(int argc, char** argv) {
  uint64_t kill_at = 0;
  if (argc < 2 || !absl::SimpleAtoi(argv[1], &kill_at)) {
    return Fail(absl::InvalidArgumentError("the first argument is the number of an operation"));
  }
  argv[1] = argv[0];
  if (absl::Status status = ParseCommandLine(argc - 1, argv + 1); !status.ok()) return Fail(status);
  const absl::StatusOr<AggregatorOptions> options = OptionsFromFlags();
  if (!options.ok()) return Fail(options.status());

  sigset_t ends;  // blocked in every thread: waited for below
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  KillingDisk disk(kill_at);
  Log log(options->log_level);
  const auto server = AggregatorServer::Start(
      *options, Clock::Real(), &log, [](absl::Status status) { std::_Exit(Fail(status)); }, &disk);
  if (!server.ok()) return Fail(server.status());
  std::cout << (*server)->grpc_address() << std::endl;
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

}  // namespace
}  // namespace distro::server

int main(int argc, char** argv) { return distro::server::Main(argc, argv); }
