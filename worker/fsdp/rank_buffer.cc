#include "worker/fsdp/rank_buffer.h"

#include "absl/strings/str_cat.h"

namespace distro::worker {

absl::StatusOr<RankBuffer> RankBuffer::Create(MemoryCategory category, int64_t elements,
                                              at::Device device, MemoryCounter* counter,
                                              bool pinned) {
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  return CatchTorch(
      absl::StrCat(bytes, " bytes of ", Name(category)), [&]() -> absl::StatusOr<RankBuffer> {
        RankBuffer buffer;
        buffer.tensor_ = at::zeros(
            {elements}, at::TensorOptions(at::kFloat).device(device).pinned_memory(pinned));
        buffer.category_ = category;
        buffer.counter_ = counter;
        counter->Add(category, bytes);
        return buffer;
      });
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
