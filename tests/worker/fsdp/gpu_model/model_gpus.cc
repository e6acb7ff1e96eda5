#include "tests/worker/fsdp/gpu_model/model_gpus.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tests/worker/fsdp/gpu_model/model_memory.h"

namespace distro::worker::testing {
namespace {

constexpr int kOthers = 3;  // operations of other streams that run at a query, at most

// Whether a rank's part of a collective is missing that may still come.
bool IsPartial(const ModelGpus::Operation& operation) {
  return std::any_of(operation.parts.begin(), operation.parts.end(), [](const auto& part) {
    const ModelGpus::Collective& collective = *part.collective;
    return !collective.aborted && collective.parts.size() < collective.ranks.size();
  });
}

bool HasPeers(const ModelGpus::Operation& operation) {
  return std::none_of(operation.parts.begin(), operation.parts.end(), [](const auto& part) {
    return part.collective->aborted ||
           part.collective->parts.size() < part.collective->ranks.size();
  });
}

}  // namespace

ModelGpus& ModelGpus::Get() {
  static auto* const gpus = new ModelGpus;
  return *gpus;
}

void ModelGpus::Reset(uint64_t seed) {
  ModelMemory::Get().Empty();
  absl::MutexLock lock(&mu_);
  random_.seed(seed);
  queues_.clear();
  waiting_.clear();
  hosts_.clear();
  log_ = AccessLog();
  failures_.clear();
  hanging_.clear();
  broken_.clear();
  loaded_.clear();
}

std::vector<std::string> ModelGpus::failures() const {
  absl::MutexLock lock(&mu_);
  return failures_;
}

void ModelGpus::Fail(std::string failure) {
  absl::MutexLock lock(&mu_);
  failures_.push_back(std::move(failure));
}

void ModelGpus::Hang(int device) {
  absl::MutexLock lock(&mu_);
  hanging_.insert(device);
}

void ModelGpus::Break(int device) {
  absl::MutexLock lock(&mu_);
  broken_.insert(device);
  changed_.SignalAll();
}

void ModelGpus::CheckDevice(int device) const {
  TORCH_CHECK(broken_.count(device) == 0, "GPU ", device, " has an error");
}

int ModelGpus::Random(int limit) {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(random_() % static_cast<uint64_t>(limit));
}

c10::Stream ModelGpus::NewStream(c10::Device device) {
  absl::MutexLock lock(&mu_);
  return c10::Stream(c10::Stream::UNSAFE, device, ++streams_);
}

ModelGpus::Queue& ModelGpus::Of(const c10::Stream& stream) {
  const auto [queue, is_new] = queues_.try_emplace({stream.device_index(), stream.id()});
  if (is_new) queue->second.number = queues_.size();
  return queue->second;
}

std::shared_ptr<ModelGpus::Operation> ModelGpus::Enqueue(const c10::Stream& stream,
                                                         const std::string& name,
                                                         const std::vector<Access>& accesses,
                                                         std::function<void()> run,
                                                         std::vector<Part> parts) {
  absl::MutexLock lock(&mu_);
  return Add(stream, name, accesses, std::move(run), std::move(parts));
}

std::shared_ptr<ModelGpus::Operation> ModelGpus::Add(const c10::Stream& stream,
                                                     const std::string& name,
                                                     const std::vector<Access>& accesses,
                                                     std::function<void()> run,
                                                     std::vector<Part> parts) {
  Queue& queue = Of(stream);
  auto operation = std::make_shared<Operation>();
  operation->name = absl::StrCat("GPU ", stream.device_index(), ": ", name);
  operation->device = stream.device_index();
  if (queue.last != nullptr) operation->before = {queue.last};
  operation->run = std::move(run);
  operation->parts = std::move(parts);
  for (const Part& part : operation->parts) {
    part.collective->buffers[part.rank] = part.buffers;
    part.collective->parts[part.rank] = operation.get();
  }
  queue.clock.Join(hosts_[std::this_thread::get_id()]);
  const uint64_t number = queue.clock.Tick(queue.number);
  for (std::string& conflict :
       log_.Add(operation->name, queue.number, number, queue.clock, accesses)) {
    failures_.push_back(std::move(conflict));
  }
  queue.last = operation;
  waiting_.push_back(operation);
  changed_.SignalAll();
  return operation;
}

ModelGpus::Event ModelGpus::Record(const c10::Stream& stream) {
  absl::MutexLock lock(&mu_);
  CheckDevice(stream.device_index());
  const Queue& queue = Of(stream);
  return {.last = queue.last, .clock = queue.clock, .device = stream.device_index()};
}

void ModelGpus::Block(const Event& event, const c10::Stream& stream) {
  absl::MutexLock lock(&mu_);
  const auto wait = Add(stream, "wait", {}, [] {}, {});
  if (event.last != nullptr) wait->before.push_back(event.last);
  Of(stream).clock.Join(event.clock);
}

bool ModelGpus::Query(const Event& event) {
  absl::MutexLock lock(&mu_);
  CheckDevice(event.device);
  RunOthers();
  const bool runs = random_() % 2 == 0;
  const bool done = event.last == nullptr || (runs ? Run(*event.last) : event.last->done);
  if (done) hosts_[std::this_thread::get_id()].Join(event.clock);
  return done;
}

void ModelGpus::Synchronize(const c10::Stream& stream) {
  absl::MutexLock lock(&mu_);
  WaitFor(stream.device_index(), Of(stream));
}

void ModelGpus::SynchronizeDevice(int device) {
  absl::MutexLock lock(&mu_);
  for (const auto& [stream, queue] : queues_) {
    if (stream.first == device) WaitFor(device, queue);
  }
}

// For what is in the queue now.
void ModelGpus::WaitFor(int device, const Queue& queue) {
  RunOthers();
  const std::shared_ptr<Operation> last = queue.last;
  const VectorClock clock = queue.clock;
  while (last != nullptr && !Run(*last)) {
    CheckDevice(device);
    changed_.Wait(&mu_);
  }
  hosts_[std::this_thread::get_id()].Join(clock);
}

void ModelGpus::Abort(const std::shared_ptr<Operation>& operation) {
  absl::MutexLock lock(&mu_);
  if (operation->done) return;
  operation->aborted = true;
  for (const Part& part : operation->parts) part.collective->aborted = true;
  changed_.SignalAll();
}

void ModelGpus::CheckBlockingCall(const std::string& call) {
  absl::MutexLock lock(&mu_);
  for (const auto& operation : waiting_) {
    if (operation->aborted || !IsPartial(*operation)) continue;
    const std::string failure =
        absl::StrCat(call, " may wait for ", operation->name, ", which waits for a peer");
    failures_.push_back(failure);
    TORCH_CHECK(false, failure);
  }
}

bool ModelGpus::Loads(int device, const std::string& kernel) {
  absl::MutexLock lock(&mu_);
  return loaded_.insert({device, kernel}).second;
}

// Runs the operation and what has to run before it. False: not now.
bool ModelGpus::Run(Operation& operation) {
  if (operation.done) return true;
  if (operation.visited) return false;  // it waits for itself
  std::vector<Operation*> together = {&operation};
  const auto leave = absl::MakeCleanup([&] {
    for (Operation* one : together) one->visited = false;
  });
  operation.visited = true;
  for (size_t i = 0; i < together.size(); ++i) {
    Operation& one = *together[i];
    for (const auto& before : one.before) {
      if (!Run(*before)) return false;
    }
    if (one.aborted) continue;
    if (!one.parts.empty() && (hanging_.count(one.device) > 0 || !HasPeers(one))) return false;
    for (const Part& part : one.parts) {
      for (const auto& [rank, peer] : part.collective->parts) {
        if (peer->done || std::count(together.begin(), together.end(), peer) > 0) continue;
        if (peer->visited) return false;
        peer->visited = true;
        together.push_back(peer);
      }
    }
  }
  std::set<Collective*> ran;
  for (Operation* one : together) {
    for (const Part& part : one->parts) {
      if (!one->aborted && ran.insert(part.collective.get()).second)
        part.collective->run(part.collective->buffers);
    }
    if (!one->aborted && one->run) one->run();
    one->done = true;
    one->end = ++done_;
    one->before.clear();
    one->parts.clear();
    one->run = nullptr;
  }
  changed_.SignalAll();
  return true;
}

void ModelGpus::RunOthers() {
  waiting_.remove_if([](const auto& operation) { return operation->done; });
  for (uint64_t left = random_() % (kOthers + 1); left > 0 && !waiting_.empty(); --left) {
    auto other = waiting_.begin();
    std::advance(other, random_() % waiting_.size());
    Run(**other);
  }
}

}  // namespace distro::worker::testing
