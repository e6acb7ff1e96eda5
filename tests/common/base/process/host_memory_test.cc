#include "common/base/process/host_memory.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

class ControlGroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = folder_.File("root") + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  int64_t Limit() { return ControlGroupMemoryLimit(folder_.File("root")); }

  distro::testing::ScratchFolder folder_;
};

TEST_F(ControlGroupTest, LimitsByFilesOnly) { EXPECT_EQ(Limit(), kUnlimited); }

TEST_F(ControlGroupTest, LimitsInVersion2) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(Limit(), 536870912);
}

TEST_F(ControlGroupTest, MaxIsNoLimit) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Limit(), kUnlimited);
}

TEST_F(ControlGroupTest, TakesLeastOfGroupAndParents) {
  Write("/proc/self/cgroup", "0::/pods/one/two\n");
  Write("/sys/fs/cgroup/pods/memory.max", "4000\n");
  Write("/sys/fs/cgroup/pods/one/memory.max", "1000\n");
  Write("/sys/fs/cgroup/pods/one/two/memory.max", "max\n");
  EXPECT_EQ(Limit(), 1000);
}

// The group's path is the host's; the container sees its own group at the top.
TEST_F(ControlGroupTest, LimitsInVersion1) {
  Write("/proc/self/cgroup", "12:cpu,cpuacct:/a\n4:memory:/docker/0123\n0::/system\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(Limit(), 2147483648);
}

TEST_F(ControlGroupTest, DamagedFilesLimitNothing) {
  Write("/proc/self/cgroup", "nonsense\n::\n0::\n");
  Write("/sys/fs/cgroup/memory.max", "-5\n");
  EXPECT_EQ(Limit(), kUnlimited);
}

TEST(HostMemoryTest, IsPositive) { EXPECT_GT(HostMemoryBytes(), 0); }

// Under sanitizers, which have an allocator of their own, there is nothing to see.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(FreedMemoryTest, StaysForTheNextStepUntilAnotherReserve) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const auto use = [] {
    const std::vector<char> memory(kBytes, 1);
    EXPECT_EQ(memory[kBytes - 1], 1);
  };
  KeepFreedMemory();
  ReserveHugePages(2 * kBytes);
  const int64_t before = ResidentBytes();
  use();
  EXPECT_GE(ResidentBytes() - before, kBytes);
  rusage first = {}, second = {};
  getrusage(RUSAGE_SELF, &first);
  use();
  getrusage(RUSAGE_SELF, &second);
  EXPECT_LT(second.ru_minflt - first.ru_minflt, 16);  // of 32, or of 16384 small pages
  ReserveHugePages(kBytes);
  EXPECT_LT(ResidentBytes() - before, kBytes / 4);
}
#endif

}  // namespace
}  // namespace distro
