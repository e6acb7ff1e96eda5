#include "tests/kernels/emulation/device.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "kernels/block_site.h"

void EmulatedStream::Record(distro::testing::EmulatedEvent* event) {
  Enqueue([reached = event->reached, record = ++event->recorded] { *reached = record; });
}

void EmulatedStream::Wait(const distro::testing::EmulatedEvent& event) {
  steps_.push_back({.run = [] {}, .reached = event.reached, .record = event.recorded});
}

bool EmulatedStream::RunStep(bool late) {
  if (steps_.empty()) return false;
  const Step& next = steps_.front();
  if (next.late != late || (next.reached != nullptr && *next.reached < next.record)) return false;
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  step.run();
  return true;
}

namespace distro::testing {
namespace {

struct Machine {
  absl::Mutex mutex;
  std::vector<std::unique_ptr<EmulatedGpu>> gpus;
  struct Piece {
    size_t bytes = 0;
    EmulatedGpu* owner = nullptr;
  };
  std::map<const char*, Piece> memory;  // by address
};
Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}

}  // namespace

EmulatedGpu& EmulatedGpu::Add(int multiprocessors) {
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  const int number = static_cast<int>(machine.gpus.size());
  return *machine.gpus.emplace_back(std::make_unique<EmulatedGpu>(number, multiprocessors));
}

EmulatedGpu* EmulatedGpu::Find(int number) {
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  if (number < 0 || number >= static_cast<int>(machine.gpus.size())) return nullptr;
  return machine.gpus[number].get();
}

int EmulatedGpu::Count() {
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  return static_cast<int>(machine.gpus.size());
}

EmulatedStream* EmulatedGpu::AddStream() {
  return streams_.emplace_back(std::make_unique<EmulatedStream>(this)).get();
}

void EmulatedGpu::RemoveStream(EmulatedStream* stream) {
  Await(stream);
  std::erase_if(streams_, [stream](const auto& s) { return s.get() == stream; });
}

void EmulatedGpu::Await(EmulatedStream* stream) {
  while (!stream->empty())
    CheckShape(RunStep(/*late=*/false) || RunStep(/*late=*/true), "streams wait for each other");
}

// A copy of a stream that was made starts before further work of the default stream, and ends after
// a copy of the default stream.
bool EmulatedGpu::RunStep(bool late) {
  const auto run = [late](const auto& stream) { return stream->RunStep(late); };
  return late ? std::any_of(streams_.begin(), streams_.end(), run)
              : std::any_of(streams_.rbegin(), streams_.rend(), run);
}

void* EmulatedGpu::Allocate(size_t bytes) {
  const absl::StatusOr<void*> memory =
      bytes > kMemoryBytes ? absl::ResourceExhaustedError("") : host_->Allocate(bytes);
  if (!memory.ok()) return nullptr;
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  machine.memory[static_cast<const char*>(*memory)] = {.bytes = bytes, .owner = this};
  return *memory;
}

bool EmulatedGpu::Free(void* memory) {
  for (const auto& stream : streams_) Await(stream.get());
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  const auto piece = machine.memory.find(static_cast<const char*>(memory));
  if (piece == machine.memory.end() || piece->second.owner != this) return false;
  machine.memory.erase(piece);
  host_->Free(memory);
  return true;
}

void EmulatedGpu::Reset() {
  for (const auto& stream : streams_) stream->Drop();
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  std::erase_if(machine.memory, [this](const auto& entry) {
    if (entry.second.owner != this) return false;
    host_->Free(const_cast<char*>(entry.first));
    return true;
  });
}

EmulatedGpu* EmulatedGpu::OwnerOf(const void* memory) {
  Machine& machine = TheMachine();
  const absl::MutexLock lock(&machine.mutex);
  const char* const address = static_cast<const char*>(memory);
  auto piece = machine.memory.upper_bound(address);
  if (piece == machine.memory.begin()) return nullptr;
  --piece;
  return address < piece->first + piece->second.bytes ? piece->second.owner : nullptr;
}

}  // namespace distro::testing
