#include "common/net/telemetry/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/net/telemetry/metric_families.h"

namespace distro {
namespace {

double Seconds(const struct timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void AddProcessorTime(FamilyBuilder& families) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  families.AddCounter("process_cpu_seconds_total", "User and system processor time in seconds.", {},
                      Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
}

void AddMemory(FamilyBuilder& families) {
  const auto statm = ReadFile("/proc/self/statm", 4096);
  if (!statm.ok()) return;
  const std::vector<std::string> pages = absl::StrSplit(*statm, ' ');
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  double total = 0;
  double resident = 0;
  if (pages.size() < 2 || !absl::SimpleAtod(pages[0], &total) ||
      !absl::SimpleAtod(pages[1], &resident)) {
    return;
  }
  families.AddGauge("process_virtual_memory_bytes", "Address space in use, in bytes.", {},
                    total * page_bytes);
  families.AddGauge("process_resident_memory_bytes", "Memory in use, in bytes.", {},
                    resident * page_bytes);
}

void AddFiles(FamilyBuilder& families) {
  std::error_code error;
  double open = 0;
  for (std::filesystem::directory_iterator i("/proc/self/fd", error), end; !error && i != end;
       i.increment(error)) {
    ++open;
  }
  if (!error) families.AddGauge("process_open_fds", "Open file descriptors.", {}, open);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  families.AddGauge("process_max_fds", "Maximum number of open file descriptors.", {},
                    static_cast<double>(limit.rlim_cur));
}

// Field 22 of /proc/self/stat counts from the boot time, which is "btime" in /proc/stat.
void AddStartTime(FamilyBuilder& families) {
  const auto own = ReadFile("/proc/self/stat", 1 << 16);
  const auto machine = ReadFile("/proc/stat", 1 << 20);
  if (!own.ok() || !machine.ok()) return;
  const size_t name_end = own->rfind(')');  // the name may hold spaces
  const size_t boot = machine->find("\nbtime ");
  if (name_end == std::string::npos || boot == std::string::npos) return;
  const std::vector<std::string> fields = absl::StrSplit(own->substr(name_end + 2), ' ');
  const std::vector<std::string> boot_words = absl::StrSplit(machine->substr(boot + 7, 32), '\n');
  double ticks = 0;
  double boot_seconds = 0;
  if (fields.size() < 20 || !absl::SimpleAtod(fields[19], &ticks) ||
      !absl::SimpleAtod(boot_words[0], &boot_seconds)) {
    return;
  }
  families.AddGauge("process_start_time_seconds",
                    "When the process started, in seconds since 1970.", {},
                    boot_seconds + ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  FamilyBuilder families;
  AddProcessorTime(families);
  AddMemory(families);
  AddFiles(families);
  AddStartTime(families);
  return families.Take();
}

}  // namespace distro
