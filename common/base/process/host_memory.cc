#include "common/base/process/host_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace distro {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

int64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t bytes = 0;
  return std::getline(file, text) && absl::SimpleAtoi(text, &bytes) && bytes >= 0 ? bytes
                                                                                  : kUnlimited;
}

// The lowest limit of the group and its ancestors up to `hierarchy`. A container may see paths of
// the host that do not exist in it: its own group is then at the top.
int64_t LimitOf(const std::string& hierarchy, std::string group, const std::string& file) {
  int64_t limit = kUnlimited;
  for (;;) {
    limit = std::min(limit, LimitIn(absl::StrCat(hierarchy, group, "/", file)));
    const size_t parent = group.rfind('/');
    if (parent == std::string::npos) return limit;
    group.resize(parent);
  }
}

// A line "Name:   123 kB" of /proc/self/status in bytes.
int64_t StatusBytes(absl::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() == 3 && words[0] == name && absl::SimpleAtoi(words[1], &kilobytes))
      return 1024 * kilobytes;
  }
  return 0;
}

}  // namespace

int64_t ResidentBytes() { return StatusBytes("RssAnon"); }

int64_t PeakResidentBytes() {
  return StatusBytes("VmHWM") - StatusBytes("RssFile") - StatusBytes("RssShmem");
}

void ForgetPeakResidentBytes() {
  std::ofstream forget("/proc/self/clear_refs");
  forget << "5";
}

void KeepFreedMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);  // memory that is mapped is unmapped when it is freed
  mallopt(M_TRIM_THRESHOLD, -1);
}

// The end of the heap grows by `bytes`, gets the kernel's advice, and is free again.
void ReserveHugePages(int64_t bytes) {
  malloc_trim(0);
  void* const end = std::malloc(static_cast<size_t>(bytes));
  if (end == nullptr) return;
  const auto begin = reinterpret_cast<uintptr_t>(end);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = (begin + static_cast<uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  std::free(end);
}

int64_t ControlGroupMemoryLimit(const std::string& root) {
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  const std::string mounts = absl::StrCat(root, "/sys/fs/cgroup");
  int64_t limit = kUnlimited;
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));  // hierarchy:controllers:group
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (fields[0] == "0") limit = std::min(limit, LimitOf(mounts, fields[2], "memory.max"));
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      limit = std::min(
          limit, LimitOf(absl::StrCat(mounts, "/memory"), fields[2], "memory.limit_in_bytes"));
    }
  }
  return limit;
}

int64_t HostMemoryBytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return std::min(machine, ControlGroupMemoryLimit(""));
}

}  // namespace distro
