// Runs a loop on several threads, for the duration of one call.
#pragma once

#include <cstdint>
#include <functional>

namespace distro {

// Cores that threads of this process may run on; at least 1.
int Cores();

// Calls work(thread, item) once for each item 0 .. items - 1, on at most `threads` threads,
// numbered 0 .. threads - 1; the caller is thread 0. Each free thread takes the next item. Returns
// when all are done. If the system refuses to start threads, those that exist do all the work.
// Requires threads >= 1.
void RunParallel(int threads, int64_t items, const std::function<void(int, int64_t)>& work);

}  // namespace distro
