// Tells the thread sanitizer about Abseil's locks. Linked into every program of the tsan preset.
//
// Debian's libraries are not instrumented. Without this file every value that an absl::Mutex guards
// would be reported as a race, in our code and where gRPC hands work between threads, since gRPC's
// locks are absl::Mutex too. The definitions below replace those of libabsl_synchronization in the
// whole process. Each calls the library's own and announces the order that it establishes: what
// came before an unlock happens before what follows the next lock. The last ones replace functions
// of libabsl_status, whose statuses share a reference count.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/base/options.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

#define DISTRO_TEXT_OF(x) #x
#define DISTRO_TEXT(x) DISTRO_TEXT_OF(x)

// The library's function: "_ZN" or "_ZNK", then the mangled name behind the namespaces.
template <typename Function>
Function* Library(const char* prefix, const char* name) {
  const std::string space = DISTRO_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string symbol =
      std::string(prefix) + "4absl" + std::to_string(space.size()) + space + name;
  void* found = dlsym(RTLD_NEXT, symbol.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_abseil: no symbol %s\n", symbol.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// The mutex whose waiters' conditions this thread may be evaluating.
thread_local const void* current = nullptr;

// Wraps a call that releases the mutex, or may evaluate the conditions of its waiters.
class Giving {
 public:
  explicit Giving(const void* mutex) : outer_(current) {
    current = mutex;
    __tsan_release(const_cast<void*>(mutex));
  }
  ~Giving() { current = outer_; }

 private:
  const void* const outer_;
};

// At the end of a scope that returns holding the mutex.
class Taking {
 public:
  explicit Taking(const void* mutex) : mutex_(mutex), outer_(current) { current = mutex; }
  ~Taking() {
    __tsan_acquire(const_cast<void*>(mutex_));
    current = outer_;
  }

 private:
  const void* const mutex_;
  const void* const outer_;
};

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

// Runs in the thread that releases the mutex, while it still holds it.
bool Condition::Eval() const {
  static auto* const library = Library<bool(const Condition*)>("_ZNK", "9Condition4EvalEv");
  if (current == nullptr) return library(this);
  __tsan_acquire(const_cast<void*>(current));
  const bool result = library(this);
  __tsan_release(const_cast<void*>(current));
  return result;
}

void Mutex::Lock() {
  static auto* const library = Library<void(Mutex*)>("_ZN", "5Mutex4LockEv");
  const Taking taking(this);
  return library(this);
}

void Mutex::ReaderLock() {
  static auto* const library = Library<void(Mutex*)>("_ZN", "5Mutex10ReaderLockEv");
  const Taking taking(this);
  return library(this);
}

bool Mutex::TryLock() {
  static auto* const library = Library<bool(Mutex*)>("_ZN", "5Mutex7TryLockEv");
  const bool taken = library(this);
  if (taken) __tsan_acquire(this);
  return taken;
}

bool Mutex::ReaderTryLock() {
  static auto* const library = Library<bool(Mutex*)>("_ZN", "5Mutex13ReaderTryLockEv");
  const bool taken = library(this);
  if (taken) __tsan_acquire(this);
  return taken;
}

void Mutex::Unlock() {
  static auto* const library = Library<void(Mutex*)>("_ZN", "5Mutex6UnlockEv");
  const Giving giving(this);
  return library(this);
}

void Mutex::ReaderUnlock() {
  static auto* const library = Library<void(Mutex*)>("_ZN", "5Mutex12ReaderUnlockEv");
  const Giving giving(this);
  return library(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN", "5Mutex8LockWhenERKNS0_9ConditionE");
  const Taking taking(this);
  return library(this, condition);
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN", "5Mutex14ReaderLockWhenERKNS0_9ConditionE");
  const Taking taking(this);
  return library(this, condition);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Duration)>(
      "_ZN", "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  const Taking taking(this);
  return library(this, condition, timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Time)>(
      "_ZN", "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  const Taking taking(this);
  return library(this, condition, deadline);
}

void Mutex::Await(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN", "5Mutex5AwaitERKNS0_9ConditionE");
  const Giving giving(this);
  const Taking taking(this);
  return library(this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Duration)>(
      "_ZN", "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  const Giving giving(this);
  const Taking taking(this);
  return library(this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Time)>(
      "_ZN", "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  const Giving giving(this);
  const Taking taking(this);
  return library(this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const library = Library<void(CondVar*, Mutex*)>("_ZN", "7CondVar4WaitEPNS0_5MutexE");
  const Giving giving(mutex);
  const Taking taking(mutex);
  return library(this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Duration)>(
      "_ZN", "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  const Giving giving(mutex);
  const Taking taking(mutex);
  return library(this, mutex, timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Time)>(
      "_ZN", "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  const Giving giving(mutex);
  const Taking taking(mutex);
  return library(this, mutex, deadline);
}

void Notification::Notify() {
  static auto* const library = Library<void(Notification*)>("_ZN", "12Notification6NotifyEv");
  __tsan_release(this);
  library(this);
}

void Notification::WaitForNotification() const {
  static auto* const library =
      Library<void(const Notification*)>("_ZNK", "12Notification19WaitForNotificationEv");
  const Taking taking(this);
  return library(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const library = Library<bool(const Notification*, Duration)>(
      "_ZNK", "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const Taking taking(this);
  return library(this, timeout);
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const library = Library<bool(const Notification*, Time)>(
      "_ZNK", "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  const Taking taking(this);
  return library(this, deadline);
}

bool BlockingCounter::DecrementCount() {
  static auto* const library =
      Library<bool(BlockingCounter*)>("_ZN", "15BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return library(this);
}

void BlockingCounter::Wait() {
  static auto* const library = Library<void(BlockingCounter*)>("_ZN", "15BlockingCounter4WaitEv");
  const Taking taking(this);
  return library(this);
}

// Creation and changes of a status happen before its destruction, in any thread.
Status::Status(StatusCode code, string_view message) {
  static auto* const library = Library<void(Status*, StatusCode, string_view)>(
      "_ZN", "6StatusC1ENS0_10StatusCodeENS0_11string_viewE");
  library(this, code, message);
  if (!IsInlined(rep_)) __tsan_release(RepToPointer(rep_));
}

void Status::SetPayload(string_view type_url, Cord payload) {
  static auto* const library = Library<void(Status*, string_view, Cord)>(
      "_ZN", "6Status10SetPayloadENS0_11string_viewENS0_4CordE");
  library(this, type_url, std::move(payload));
  if (!IsInlined(rep_)) __tsan_release(RepToPointer(rep_));
}

// Does the same as the library's, but instrumented, so that the sanitizer sees the count.
void Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* const status = RepToPointer(rep);
  if (status->ref.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  __tsan_acquire(status);
  delete status;
}

ABSL_NAMESPACE_END
}  // namespace absl
