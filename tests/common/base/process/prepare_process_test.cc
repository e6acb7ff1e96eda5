// What is prepared is of the whole process, so each case runs in a child.
#include "common/base/process/prepare_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/file.h"
#include "common/base/mapped_file.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

class PrepareProcessDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(PrepareProcessDeathTest, SignalsWithoutAReasonToEndDoNot) {
  const auto run = [] {
    PrepareProcess();
    for (const int number : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,
                             SIGPWR, SIGSTKFLT, SIGRTMIN, SIGRTMAX})
      raise(number);
    std::exit(7);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(PrepareProcessDeathTest, NamesTruncatedMappedFile) {
  const testing::ScratchFolder folder;
  const std::string path = folder.File("model.safetensors");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(1 << 16, 'x')).ok());
  const auto run = [&path] {
    std::signal(SIGBUS, SIG_DFL);  // sanitizers have a handler of their own
    PrepareProcess();
    MappedFile closed = *MappedFile::Open(path);
    MappedFile file = *MappedFile::Open(path);
    closed = std::move(file);
    if (closed.bytes().back() != 'x' || truncate(path.c_str(), 0) != 0) std::exit(1);
    const volatile char gone = closed.bytes().back();
    std::exit(gone);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(2),
              "prepare_process_test: .*/model.safetensors: became shorter while it was read");
}

TEST_F(PrepareProcessDeathTest, CrashesOnOtherSigbus) {
  const auto run = [] {
    std::signal(SIGBUS, SIG_DFL);  // as above
    PrepareProcess();
    raise(SIGBUS);
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(PrepareProcessDeathTest, KeepsInstalledHandler) {
  const auto run = [] {
    std::signal(SIGPROF, [](int) { _exit(8); });
    PrepareProcess();
    raise(SIGPROF);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(8), "");
}

TEST_F(PrepareProcessDeathTest, UnblocksSignals) {
  const auto run = [] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    PrepareProcess();
    raise(SIGTERM);
  };
  EXPECT_EXIT(run(), ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(PrepareProcessDeathTest, ChildrenCanBeWaitedForThoughTheParentIgnoredThem) {
  const auto run = [] {
    std::signal(SIGCHLD, SIG_IGN);
    PrepareProcess();
    const pid_t child = fork();
    if (child == 0) _exit(9);
    int status = 0;
    waitpid(child, &status, 0);
    std::exit(WEXITSTATUS(status));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(9), "");
}

TEST_F(PrepareProcessDeathTest, ReservesClosedStreams) {
  const auto run = [] {
    for (const int fd : {0, 1, 2}) close(fd);
    PrepareProcess();
    _exit(open("/dev/null", O_RDONLY));
  };
  EXPECT_EXIT(
      run(), [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) > 2; }, "");
}

TEST_F(PrepareProcessDeathTest, FailsWritesAboveFileSizeLimit) {
  const auto run = [] {
    PrepareProcess();
    const testing::ScratchFolder folder;
    const rlimit few = {.rlim_cur = 10, .rlim_max = 10};
    setrlimit(RLIMIT_FSIZE, &few);
    const int fd = open(folder.File("file").c_str(), O_WRONLY | O_CREAT, 0600);
    (void)!write(fd, "0123456789", 10);
    std::exit(write(fd, "0", 1) < 0 && errno == EFBIG ? 7 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(PrepareProcessDeathTest, ThreadsHaveAStackWhateverTheLimit) {
  const auto run = [] {
    const rlimit small = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    setrlimit(RLIMIT_STACK, &small);
    PrepareProcess();
    std::thread([] {
      volatile char deep[4 << 20];
      for (size_t i = 0; i < sizeof(deep); i += 4096) deep[i] = 1;
    }).join();
    std::exit(7);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(PrepareProcessDeathTest, LetsOwnerAccessFiles) {
  const auto run = [] {
    umask(0777);
    PrepareProcess();
    std::exit(umask(0) == 0077 ? 7 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(PrepareProcessDeathTest, TooFewThreadsAreNamedBeforeAnythingWaitsForThem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more addresses";
#endif
  const auto run = [] {
    PrepareProcess();
    if (!CheckThreadsCanStart().ok()) std::exit(1);
    const rlimit little = {.rlim_cur = 100 << 20, .rlim_max = 100 << 20};  // stacks of 8 MiB
    setrlimit(RLIMIT_AS, &little);
    std::exit(absl::IsResourceExhausted(CheckThreadsCanStart()) ? 7 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

template <typename Exception>
void ThrowInAThread(const Exception& exception) {
  PrepareProcess();
  std::thread([&] { throw exception; }).join();
}

TEST_F(PrepareProcessDeathTest, ExitsWhenThreadHasNoMemory) {
  EXPECT_EXIT(ThrowInAThread(std::bad_alloc()), ::testing::ExitedWithCode(1),
              "prepare_process_test: a thread ended: out of memory: ");
}

TEST_F(PrepareProcessDeathTest, ExitsWhenNoThreadStarts) {
  EXPECT_EXIT(ThrowInAThread(std::system_error(EAGAIN, std::generic_category())),
              ::testing::ExitedWithCode(1), "a thread ended: no thread could be started: ");
}

TEST_F(PrepareProcessDeathTest, AbortsOnOtherException) {
  EXPECT_EXIT(ThrowInAThread(std::logic_error("this way")), ::testing::KilledBySignal(SIGABRT),
              "a thread ended: this way");
}

}  // namespace
}  // namespace distro
