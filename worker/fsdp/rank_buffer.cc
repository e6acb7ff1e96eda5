#include "worker/fsdp/rank_buffer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {

absl::StatusOr<RankBuffer> RankBuffer::Create(MemoryCategory category, int64_t elements,
                                              at::Device device, MemoryCounter* counter) {
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  return CatchTorch(
      absl::StrCat(bytes, " bytes of ", Name(category)), [&]() -> absl::StatusOr<RankBuffer> {
        return RankBuffer(
            category, at::zeros({elements}, at::TensorOptions(at::kFloat).device(device)), counter);
      });
}

RankBuffer RankBuffer::Of(MemoryCategory category, absl::Span<float> floats,
                          std::shared_ptr<const void> owner, MemoryCounter* counter) {
  std::fill(floats.begin(), floats.end(), 0.0f);
  return RankBuffer(category, FloatTensor(floats, at::kCPU, std::move(owner)), counter);
}

RankBuffer::RankBuffer(MemoryCategory category, at::Tensor tensor, MemoryCounter* counter)
    : tensor_(std::move(tensor)), category_(category), counter_(counter) {
  counter_->Add(category_, elements() * static_cast<int64_t>(sizeof(float)));
}

RankBuffer::~RankBuffer() {
  if (counter_ != nullptr) counter_->Remove(category_, elements() * sizeof(float));
}

RankBuffer& RankBuffer::operator=(RankBuffer&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(category_, other.category_);
  std::swap(counter_, other.counter_);
  return *this;
}

absl::Span<float> RankBuffer::floats() {
  if (elements() == 0) return {};
  return {tensor_.mutable_data_ptr<float>(), static_cast<size_t>(elements())};
}

absl::Span<const float> RankBuffer::floats() const {
  if (elements() == 0) return {};
  return {tensor_.const_data_ptr<float>(), static_cast<size_t>(elements())};
}

}  // namespace distro::worker
