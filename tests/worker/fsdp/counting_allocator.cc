#include "tests/worker/fsdp/counting_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace distro::worker::testing {
namespace {

struct Counter {
  std::atomic<int64_t> now = 0;
  std::atomic<int64_t> peak = 0;
};

// Shared with the memory that it counts, which may outlive its thread.
std::shared_ptr<Counter>& OfThread() {
  thread_local std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  return counter;
}

// In front of the memory that it counts.
struct alignas(64) Header {
  int64_t bytes = 0;
  std::shared_ptr<Counter> counter;
};

void Free(void* data) {
  if (data == nullptr) return;
  Header* const header = static_cast<Header*>(data) - 1;
  header->counter->now -= header->bytes;
  header->~Header();
  std::free(header);
}

class CountingAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, at::Device(at::kCPU)};
    const size_t rounded = (bytes + sizeof(Header) - 1) / sizeof(Header) * sizeof(Header);
    void* const memory = std::aligned_alloc(alignof(Header), sizeof(Header) + rounded);
    if (memory == nullptr) throw std::bad_alloc();
    Header* const header = new (memory) Header{static_cast<int64_t>(bytes), OfThread()};
    Counter& counter = *header->counter;
    counter.now += header->bytes;
    counter.peak = std::max<int64_t>(counter.peak, counter.now);
    return {header + 1, header + 1, &Free, at::Device(at::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &Free; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

void CountCpuMemory() {
  static CountingAllocator* const kAllocator = [] {
    auto* const allocator = new CountingAllocator;
    c10::SetCPUAllocator(allocator, /*priority=*/1);
    at::globalContext().setUserEnabledMkldnn(false);
    return allocator;
  }();
  static_cast<void>(kAllocator);
}

ThreadMemory CountedMemory() { return {.now = OfThread()->now, .peak = OfThread()->peak}; }

std::function<ThreadMemory()> CountedMemoryOfThisThread() {
  return
      [counter = OfThread()] { return ThreadMemory{.now = counter->now, .peak = counter->peak}; };
}

void ResetThreadPeak() { OfThread()->peak = OfThread()->now.load(); }

}  // namespace distro::worker::testing
