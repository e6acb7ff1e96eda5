// Compiled without the thread sanitizer, which would take what the threads of a group leave to each
// other here for races; therefore lists are plain pointers, without calls into instrumented code.
#include "tests/kernels/emulation/group.h"

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>
#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "kernels/block_site.h"
#include "kernels/cpu/exact.h"

// Null without the sanitizer.
#pragma weak __sanitizer_start_switch_fiber
#pragma weak __sanitizer_finish_switch_fiber
#pragma weak __tsan_acquire
#pragma weak __tsan_create_fiber
#pragma weak __tsan_get_current_fiber
#pragma weak __tsan_release
#pragma weak __tsan_switch_to_fiber

// The linker sets them to the ends of the section.
extern uint64_t __start_emulated_shared_memory[], __stop_emulated_shared_memory[];

namespace distro::testing {

KernelIndex threadIdx, blockIdx, gridDim;
thread_local int64_t atomic_additions = 0;

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kStackBytes = 256 << 10;

// What was done before a Release is known to who Acquires after it.
void Release(void* at) {
  if (__tsan_release != nullptr) __tsan_release(at);
}
void Acquire(void* at) {
  if (__tsan_acquire != nullptr) __tsan_acquire(at);
}

// A stack and what runs on it.
struct Fiber {
  ucontext_t context;  // where it goes on with a sanitizer, and where it starts
  jmp_buf place;       // where it goes on without
  bool has_run = false;
  std::unique_ptr<char[]> memory;  // none for the thread that launches
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake_stack = nullptr;  // the address sanitizer's
  void* tsan = nullptr;
  unsigned thread = 0;
  Fiber* next = nullptr;  // in a list
};

// Returns when another one switches to `from`. A jump needs no call of the system, which
// swapcontext makes for the mask of signals. The sanitizers do not know such jumps.
[[gnu::noinline]] void Switch(Fiber* from, Fiber* to) {
  if (__sanitizer_start_switch_fiber != nullptr || __tsan_switch_to_fiber != nullptr) {
    swapcontext(&from->context, &to->context);
  } else if (_setjmp(from->place) == 0) {
    if (std::exchange(to->has_run, true)) _longjmp(to->place, 1);
    setcontext(&to->context);
  }
}

// Runs one group at a time.
class Multiprocessor {
 public:
  static Multiprocessor& TheOne() {
    static Multiprocessor* const one = new Multiprocessor;
    return *one;
  }

  void Run(unsigned threads, const std::function<void()>& kernel) {
    CheckShape(threads > 0 && threads % kWarp == 0 && threads <= kMaxThreads,
               "a group is no whole warps");
    kernel_ = &kernel;
    threads_ = not_started_ = threads;
    group_.ended = 0;
    for (Barrier& warp : warps_) warp.ended = 0;
    launching_.has_run = true;
    if (__tsan_get_current_fiber != nullptr) launching_.tsan = __tsan_get_current_fiber();
    Release(&before_);
    SwitchTo(Next());
    Acquire(&after_);
    while (ended_ != nullptr) {
      Fiber* const fiber = Take(ended_);
      fiber->next = std::exchange(unused_, fiber);
    }
  }

  void AwaitGroup() { Await(group_, threads_); }
  uint64_t ValueOfLaneAbove(uint64_t value, unsigned lanes) {
    const unsigned thread = threadIdx.x;
    Barrier& warp = warps_[thread / kWarp];
    uint64_t* const values = values_[warp.passed % 2];  // some may still read the last ones
    values[thread] = value;
    Await(warp, kWarp);
    return thread % kWarp + lanes < kWarp ? values[thread + lanes] : value;
  }

 private:
  struct Barrier {
    unsigned arrived = 0, ended = 0;
    unsigned passed = 0;
    char known[2];  // what was done before an even and an odd time: some are on their way to the
                    // next time while others still leave this one
  };

  void Await(Barrier& barrier, unsigned count) {
    CheckShape(barrier.ended == 0, "a thread waits for one that has ended");
    const unsigned time = barrier.passed;
    Release(&barrier.known[time % 2]);
    if (++barrier.arrived == count) {
      barrier.arrived = 0;
      ++barrier.passed;
    }
    while (barrier.passed == time) {
      current_->next = nullptr;
      (first_waiting_ == nullptr ? first_waiting_ : last_waiting_->next) = current_;
      last_waiting_ = current_;
      SwitchTo(Next());
    }
    Acquire(&barrier.known[time % 2]);
  }

  static void End(Barrier& barrier) {
    CheckShape(barrier.arrived == 0, "a thread ends that others wait for");
    ++barrier.ended;
  }

  // Whose turn it is: a thread that has not started, then who has waited longest.
  Fiber* Next() {
    if (not_started_ > 0) return unused_ == nullptr ? Add() : Take(unused_);
    return first_waiting_ == nullptr ? &launching_ : Take(first_waiting_);
  }

  static Fiber* Take(Fiber*& list) { return std::exchange(list, list->next); }

  Fiber* Add() {
    Fiber* const fiber = new Fiber;  // for the process
    fiber->memory = std::make_unique_for_overwrite<char[]>(kStackBytes);
    fiber->bottom = fiber->memory.get();
    // Ends of stacks a power of two apart would share few lines of the CPU's cache.
    fiber->bytes = kStackBytes - added_++ % 64 * 64;
    if (__tsan_create_fiber != nullptr) fiber->tsan = __tsan_create_fiber(0);
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->memory.get();
    fiber->context.uc_stack.ss_size = fiber->bytes;
    makecontext(
        &fiber->context, [] { TheOne().RunThreads(); }, 0);
    // Of a stack that it is told of here, the address sanitizer forgets at every switch what it
    // watches, which takes longer than the kernels. Only makecontext needs to know it.
    fiber->context.uc_stack.ss_size = 0;
    return fiber;
  }

  // On a stack: threads one after another while none of them waits, but for the thread sanitizer,
  // which knows threads by their stacks.
  [[noreturn]] void RunThreads() {
    Arrived();
    for (;;) {
      do {
        threadIdx.x = current_->thread = --not_started_;
        Acquire(&before_);
        (*kernel_)();
        End(group_);
        End(warps_[current_->thread / kWarp]);
        Release(&after_);
      } while (not_started_ > 0 && __tsan_create_fiber == nullptr);
      current_->next = std::exchange(ended_, current_);
      SwitchTo(Next());
    }
  }

  void SwitchTo(Fiber* to) {
    Fiber* const from = previous_ = std::exchange(current_, to);
    if (__sanitizer_start_switch_fiber != nullptr)
      __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
    if (__tsan_switch_to_fiber != nullptr)
      __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
    Switch(from, to);
    Arrived();
    threadIdx.x = current_->thread;
  }
  // The address sanitizer says where the stack is that was left, which is how that of the launching
  // thread is known.
  void Arrived() {
    if (__sanitizer_finish_switch_fiber != nullptr)
      __sanitizer_finish_switch_fiber(current_->fake_stack, &previous_->bottom, &previous_->bytes);
  }

  const std::function<void()>* kernel_ = nullptr;
  unsigned threads_ = 0, not_started_ = 0, added_ = 0;
  char before_, after_;  // what was done before and in the group
  Barrier group_, warps_[kMaxThreads / kWarp];
  uint64_t values_[2][kMaxThreads];
  Fiber launching_;
  Fiber* current_ = &launching_;
  Fiber* previous_ = nullptr;
  Fiber *unused_ = nullptr, *ended_ = nullptr;
  Fiber *first_waiting_ = nullptr, *last_waiting_ = nullptr;
};

// The address sanitizer's zones between objects are written too.
__attribute__((no_sanitize("address"))) void ClearSharedMemory() {
  for (volatile uint64_t* at = __start_emulated_shared_memory; at < __stop_emulated_shared_memory;
       ++at)
    *at = ~uint64_t{0};
}

}  // namespace

void RunKernel(unsigned groups, unsigned threads, const std::function<void()>& kernel) {
  static absl::Mutex one_at_a_time(absl::kConstInit);
  const absl::MutexLock lock(&one_at_a_time);
  const DefaultFloatEnvironment environment;
  CheckShape(groups > 0, "a launch of no groups");
  ClearSharedMemory();
  gridDim.x = groups;
  for (blockIdx.x = groups; blockIdx.x > 0;) {
    --blockIdx.x;
    Multiprocessor::TheOne().Run(threads, kernel);
  }
}

void AwaitGroup() { Multiprocessor::TheOne().AwaitGroup(); }
uint64_t ValueOfLaneAbove(uint64_t value, unsigned lanes) {
  return Multiprocessor::TheOne().ValueOfLaneAbove(value, lanes);
}

}  // namespace distro::testing
