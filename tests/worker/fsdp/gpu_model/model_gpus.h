// GPUs as far as streams matter: queues of operations that run late, events, and kernels that spin
// until those of their peers run. They are Torch's device type "privateuseone" (torch_device.cc);
// model_nccl.h has their collectives. Every mistake is a sentence in failures(). Thread-safe.
//
// A stream runs when somebody waits for it or queries an event, and not further than needed; other
// streams run then too, or not, as the seed says.
//
// What counts as a mistake:
// * Two operations access one range of memory, one of them writes, and no stream or event, and no
//   host that has waited, orders them.
// * A call that may wait for devices (an allocation that the caching allocator cannot serve, a copy
//   between host and device, a kernel that is loaded at its first use) while a collective is
//   enqueued by some ranks and not by all: on GPUs both may wait for ever. Such a call throws.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/fsdp/gpu_model/access_log.h"
#include "worker/torch/device_streams.h"

namespace distro::worker::testing {

class ModelGpus {
 public:
  static constexpr int kDevices = 4;

  // What a rank gives to a collective.
  struct Buffers {
    const void* from = nullptr;
    void* to = nullptr;
  };
  struct Operation;
  // A collective of `ranks`, which runs once each has enqueued its part.
  struct Collective {
    std::string name;
    std::set<int> ranks;
    std::function<void(const std::map<int, Buffers>& buffers)> run;

    // Of ModelGpus, behind its lock.
    std::map<int, Buffers> buffers;
    std::map<int, Operation*> parts;
    bool aborted = false;  // by one of the ranks
  };
  struct Part {
    std::shared_ptr<Collective> collective;
    int rank = 0;
    Buffers buffers;
  };
  struct Operation {
    std::string name;
    int device = 0;
    std::vector<std::shared_ptr<Operation>> before;
    std::function<void()> run;
    std::vector<Part> parts;  // of a kernel of collectives
    bool aborted = false, visited = false, done = false;
    int64_t end = 0;  // when it was done
  };
  struct Event {
    std::shared_ptr<Operation> last;  // nullptr: nothing was before it
    VectorClock clock;
    int device = 0;
  };

  static ModelGpus& Get();  // a device type exists once

  // Begins again, with empty streams. Requires that no tensor of the GPUs is left.
  void Reset(uint64_t seed);
  std::vector<std::string> failures() const;
  void Fail(std::string failure);

  // A kernel of collectives that runs on the device does not end, until it is aborted.
  void Hang(int device);
  // From now on events and streams of the device have an error.
  void Break(int device);

  c10::Stream NewStream(c10::Device device);
  std::shared_ptr<Operation> Enqueue(const c10::Stream& stream, const std::string& name,
                                     const std::vector<Access>& accesses, std::function<void()> run,
                                     std::vector<Part> parts = {});
  Event Record(const c10::Stream& stream);
  void Block(const Event& event, const c10::Stream& stream);
  bool Query(const Event& event);
  void Synchronize(const c10::Stream& stream);
  void SynchronizeDevice(int device);
  // The operation ends without a result.
  void Abort(const std::shared_ptr<Operation>& operation);
  // Throws if `call` might not return.
  void CheckBlockingCall(const std::string& call);
  // Whether this is the first use of a kernel on the device, which loads it.
  bool Loads(int device, const std::string& kernel);
  // A number below `limit`, by the seed.
  int Random(int limit);

 private:
  struct Queue {
    size_t number = 0;
    std::shared_ptr<Operation> last;
    VectorClock clock;
  };
  std::shared_ptr<Operation> Add(const c10::Stream& stream, const std::string& name,
                                 const std::vector<Access>& accesses, std::function<void()> run,
                                 std::vector<Part> parts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Queue& Of(const c10::Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Run(Operation& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WaitFor(int device, const Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckDevice(int device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<int, int64_t>, Queue> queues_ ABSL_GUARDED_BY(mu_);
  int64_t streams_ ABSL_GUARDED_BY(mu_) = 0;  // that were made
  std::list<std::shared_ptr<Operation>> waiting_ ABSL_GUARDED_BY(mu_);
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;  // operations
  // What a thread of the host has seen done.
  std::map<std::thread::id, VectorClock> hosts_ ABSL_GUARDED_BY(mu_);
  AccessLog log_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mu_);
  std::set<int> hanging_ ABSL_GUARDED_BY(mu_), broken_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int, std::string>> loaded_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker::testing
