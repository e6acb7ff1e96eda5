// GPUs of the emulated CUDA runtime (cuda_runtime_api.h). Their memory is host memory. Streams use
// every freedom that CUDA gives them, so that a caller that orders or waits too little fails:
// * nothing runs before the caller waits for it;
// * a copy to the device destroys the old content of its target as soon as it may start, and brings
//   the new one after all work that need not wait for it.
//
// A device exists as long as the process. One caller at a time for each, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/device.h"

namespace distro::testing {

class EmulatedGpu;

// How often it was recorded, and how many of these records are behind work that has run.
struct EmulatedEvent {
  int64_t recorded = 0;
  std::shared_ptr<int64_t> reached = std::make_shared<int64_t>(0);
};

}  // namespace distro::testing

// A queue of work. Not in a namespace: CUDA's is not either (cuda_runtime_api.h).
class EmulatedStream {
 public:
  explicit EmulatedStream(distro::testing::EmulatedGpu* gpu) : gpu_(gpu) {}

  distro::testing::EmulatedGpu* gpu() const { return gpu_; }
  void Enqueue(std::function<void()> run) { steps_.push_back({.run = std::move(run)}); }
  // Runs when nothing else can.
  void EnqueueLate(std::function<void()> run) {
    steps_.push_back({.run = std::move(run), .late = true});
  }
  void Record(distro::testing::EmulatedEvent* event);
  // Later work runs after what was in front of the event's last record.
  void Wait(const distro::testing::EmulatedEvent& event);

  bool empty() const { return steps_.empty(); }
  // Runs the next step. False if it may not run yet, or is not of this kind.
  bool RunStep(bool late);
  void Drop() { steps_.clear(); }

 private:
  struct Step {
    std::function<void()> run = nullptr;
    bool late = false;
    std::shared_ptr<const int64_t> reached = nullptr;  // with an event: runs once this is `record`
    int64_t record = 0;
  };

  distro::testing::EmulatedGpu* const gpu_;
  std::deque<Step> steps_;
};

namespace distro::testing {

class EmulatedGpu {
 public:
  static constexpr size_t kMemoryBytes = size_t{16} << 30;

  // A new one.
  static EmulatedGpu& Add(int multiprocessors);
  // nullptr if there is none of this number.
  static EmulatedGpu* Find(int number);
  static int Count();
  // Whose Allocate this memory is of; nullptr if of none: Torch's tensors on the CPU, which tests
  // of nodes give to an emulated GPU as its own.
  static EmulatedGpu* OwnerOf(const void* memory);

  EmulatedGpu(int number, int multiprocessors)
      : number_(number), multiprocessors_(multiprocessors) {
    AddStream();
  }

  int number() const { return number_; }
  int multiprocessors() const { return multiprocessors_; }
  EmulatedStream* default_stream() { return streams_.front().get(); }

  EmulatedStream* AddStream();
  // After its work.
  void RemoveStream(EmulatedStream* stream);
  // Runs work until the stream is empty.
  void Await(EmulatedStream* stream);

  void* Allocate(size_t bytes);  // nullptr: not enough memory
  // Runs all work first. False if it is not Allocate's memory.
  bool Free(void* memory);
  // Work that nobody has waited for never runs; memory is freed.
  void Reset();

 private:
  bool RunStep(bool late);

  const int number_;
  const int multiprocessors_;
  const std::unique_ptr<Device> host_ = MakeHostDevice();
  std::vector<std::unique_ptr<EmulatedStream>> streams_;  // the default stream first
};

}  // namespace distro::testing
