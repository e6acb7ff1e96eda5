#include "tests/kernels/emulated_device.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "kernels/block_site.h"

namespace distro::testing {

EmulatedDevice::~EmulatedDevice() {
  for (const std::vector<Block>* const blocks : {&used_, &free_}) {
    for (const Block& block : *blocks) host_->Free(block.memory);
  }
}

absl::StatusOr<void*> EmulatedDevice::Allocate(size_t bytes) {
  Block block{.memory = nullptr, .bytes = bytes};
  const auto fits = std::ranges::find_if(free_, [&](const Block& b) { return b.bytes >= bytes; });
  if (fits != free_.end()) {
    block = *fits;
    free_.erase(fits);
  } else {
    DISTRO_ASSIGN_OR_RETURN(block.memory, host_->Allocate(bytes));
  }
  used_.push_back(block);
  Fill(block.memory, 0xFF, bytes);
  return block.memory;
}

void EmulatedDevice::Free(void* memory) {
  if (memory == nullptr) return;
  const auto block = std::ranges::find(used_, memory, &Block::memory);
  CheckShape(block != used_.end(), "memory that is not in use is freed");
  if (order_ == EmulatedOrder::kAtFinish) {
    free_.push_back(*block);
  } else {
    host_->Free(memory);
  }
  used_.erase(block);
}

void EmulatedDevice::CopyIn(const void* host, size_t bytes, void* device) {
  Do([=, this] { host_->CopyIn(host, bytes, device); });
}
void EmulatedDevice::CopyOut(const void* device, size_t bytes, void* host) {
  Do([=, this] { host_->CopyOut(device, bytes, host); });
}
void EmulatedDevice::Fill(void* device, unsigned char byte, size_t bytes) {
  Do([=, this] { host_->Fill(device, byte, bytes); });
}

void EmulatedDevice::CopyInBeside(const void* host, size_t bytes, void* device) {
  Fill(device, 0xFF, bytes);
  beside_.push_back([=, this] { host_->CopyIn(host, bytes, device); });
}

void EmulatedDevice::AwaitCopies() {
  for (auto& copy : std::exchange(beside_, {})) Do(std::move(copy));
}

absl::Status EmulatedDevice::Finish() {
  AwaitCopies();
  for (const auto& work : std::exchange(enqueued_, {})) work();
  return absl::OkStatus();
}

void EmulatedDevice::Do(std::function<void()> work) {
  order_ == EmulatedOrder::kAtOnce ? work() : enqueued_.push_back(std::move(work));
}

}  // namespace distro::testing
