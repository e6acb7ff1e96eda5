// Work that several threads share, for the time of one call.
#pragma once

#include <cstdint>
#include <functional>

namespace distro {

// Cores that threads of this process may run on; at least 1.
int Cores();

// Calls work(thread, item) once for each item 0 .. items - 1, on `threads` threads at most, thread
// 0 .. threads - 1; the caller is thread 0. Items are taken in ascending order, each by the next
// thread that is free. Returns when all are done. The system may refuse threads: those that there
// are do all the work. Requires threads >= 1.
void RunParallel(int threads, int64_t items, const std::function<void(int, int64_t)>& work);

}  // namespace distro
