// The aggregator, but its process is killed at a chosen operation on its data folder. For the tests
// of kill points.
//
//   kill_point_aggregator POINT FLAGS...
//
// FLAGS are those of distro-aggregator. POINT is one operation that changes the folder: the N-th of
// all, counted from 0 ("17"), or the N-th of a kind on files of a name, from 1
// ("rename/admission.pb/1"). Instead of it the process gets a SIGKILL, a write when half of its
// bytes are there. "none" is none of them, "list" too, and each is said. Lines of standard error:
// "operation KIND/NAME/N", "listening HOST:PORT", "killed at N: KIND PATH".
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "server/aggregator_server.h"
#include "server/log/disk.h"
#include "server/options/flags.h"

namespace distro::server {
namespace {

// One write, so that lines of several threads do not mix.
void Say(const std::string& line) { std::cerr << line + "\n" << std::flush; }

class KillingDisk final : public Disk {
 public:
  explicit KillingDisk(std::string point) : point_(std::move(point)) {}

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

 private:
  void Count(DiskOperation operation, const std::string& path, auto&& before) {
    absl::MutexLock lock(&mu_);
    const std::string kind = absl::StrCat(DiskOperationName(operation), "/",
                                          std::filesystem::path(path).filename().string(), "/");
    const std::string named = absl::StrCat(kind, ++counts_[kind]);
    const std::string numbered = absl::StrCat(next_++);
    if (point_ == "list") Say("operation " + named);
    if (point_ != named && point_ != numbered) return;
    before();
    Say(absl::StrCat("killed at ", numbered, ": ", DiskOperationName(operation), " ", path));
    raise(SIGKILL);
  }
  void Count(DiskOperation operation, const std::string& path) {
    Count(operation, path, [] {});
  }

  Disk* const below_ = Disk::Real();
  const std::string point_;
  absl::Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<int> Run(const std::string& point, const AggregatorOptions& options) {
  sigset_t ends;  // blocked in every thread: waited for below
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  KillingDisk disk(point);
  Log log(options.log_level);
  DISTRO_ASSIGN_OR_RETURN(const auto server,
                          AggregatorServer::Start(
                              options, Clock::Real(), &log,
                              [](absl::Status status) {
                                Say("kill_point_aggregator: " + status.ToString());
                                std::_Exit(1);
                              },
                              &disk));
  Say("listening " + server->grpc_address());
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

int Main(int argc, char** argv) {
  std::string point;
  AggregatorOptions options;
  Program program = AggregatorProgram(&options, [&] { return Run(point, options); });
  program.name = "kill_point_aggregator";
  program.commands[0].arguments = {{.name = "POINT", .value = &point}};
  program.exit_code = [](const absl::Status&) { return 1; };
  return RunProgram(program, argc, argv);
}

}  // namespace
}  // namespace distro::server

int main(int argc, char** argv) { return distro::server::Main(argc, argv); }
