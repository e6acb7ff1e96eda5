#include "common/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace distro {

int Cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void RunParallel(int threads, int64_t items, const std::function<void(int, int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto take = [&](int thread) {
    while (true) {
      const int64_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= items) return;
      work(thread, item);
    }
  };
  const int useful = static_cast<int>(std::min<int64_t>(threads, items));
  std::vector<std::jthread> others;  // joined also if `work` throws
  others.reserve(std::max(useful, 1));
  try {
    for (int i = 1; i < useful; ++i) others.emplace_back(take, i);
  } catch (const std::system_error&) {  // no more threads: continue with fewer
  }
  take(0);
  for (std::jthread& thread : others) thread.join();
}

}  // namespace distro
