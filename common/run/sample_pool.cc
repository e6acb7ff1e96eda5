#include "common/run/sample_pool.h"

#include <algorithm>
#include <iterator>

namespace distro {
namespace {

// Appends samples to a slot.
void Append(uint64_t first, uint64_t samples, v1::Slot* slot) {
  if (slot->samples() == 0) {
    slot->set_first_sample(first);
    slot->set_samples(static_cast<uint32_t>(samples));
    return;
  }
  v1::SampleRange* const range = slot->add_more();
  range->set_first_sample(first);
  range->set_samples(samples);
}

// As ForEachRange, of what is left behind the first `skip` samples.
template <typename Function>
void ForEachRangeAfter(const v1::Slot& slot, uint64_t skip, const Function& range) {
  ForEachRange(slot, [&](uint64_t first, uint64_t samples) {
    const uint64_t skipped = std::min(skip, samples);
    skip -= skipped;
    if (samples > skipped) range(first + skipped, samples - skipped);
  });
}

}  // namespace

uint64_t SamplesOf(const v1::Slot& slot) {
  uint64_t all = 0;
  ForEachRange(slot, [&](uint64_t /*first*/, uint64_t samples) { all += samples; });
  return all;
}

v1::Slot ConsecutiveSamples(uint64_t first, uint32_t samples) {
  v1::Slot slot;
  slot.set_first_sample(first);
  slot.set_samples(samples);
  return slot;
}

google::protobuf::RepeatedPtrField<v1::SampleRange> RangesOf(const v1::Slot& slot) {
  google::protobuf::RepeatedPtrField<v1::SampleRange> ranges;
  ForEachRange(slot, [&](uint64_t first, uint64_t samples) {
    v1::SampleRange* const range = ranges.Add();
    range->set_first_sample(first);
    range->set_samples(samples);
  });
  return ranges;
}

v1::Slot PartOf(const v1::Slot& slot, uint64_t skip, uint32_t count) {
  v1::Slot part;
  part.set_worker(slot.worker());
  uint64_t left = count;
  ForEachRangeAfter(slot, skip, [&](uint64_t first, uint64_t samples) {
    const uint64_t taken = std::min(left, samples);
    if (taken > 0) Append(first, taken, &part);
    left -= taken;
  });
  return part;
}

SamplePool::SamplePool(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
                       uint64_t next_sample)
    : next_sample_(next_sample) {
  for (const v1::SampleRange& range : unread) Add(range.first_sample(), range.samples());
}

v1::Slot SamplePool::Take(absl::string_view worker, uint32_t samples) {
  v1::Slot slot;
  slot.set_worker(std::string(worker));
  uint64_t left = samples;
  while (left > 0 && !unread_.empty()) {
    const auto [first, count] = *unread_.begin();
    const uint64_t taken = std::min(left, count);
    unread_.erase(unread_.begin());
    if (taken < count) unread_.emplace(first + taken, count - taken);
    Append(first, taken, &slot);
    left -= taken;
  }
  if (left > 0) Append(next_sample_, left, &slot);
  next_sample_ += left;
  return slot;
}

void SamplePool::GiveBack(const v1::Slot& slot, uint64_t read) {
  ForEachRangeAfter(slot, read, [&](uint64_t first, uint64_t samples) { Add(first, samples); });
}

void SamplePool::Add(uint64_t first, uint64_t samples) {
  auto after = unread_.lower_bound(first);
  if (after != unread_.end() && after->first == first + samples) {
    samples += after->second;
    after = unread_.erase(after);
  }
  if (after != unread_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += samples;
      return;
    }
  }
  unread_.emplace_hint(after, first, samples);
}

google::protobuf::RepeatedPtrField<v1::SampleRange> SamplePool::Unread() const {
  google::protobuf::RepeatedPtrField<v1::SampleRange> ranges;
  for (const auto& [first, samples] : unread_) {
    v1::SampleRange* const range = ranges.Add();
    range->set_first_sample(first);
    range->set_samples(samples);
  }
  return ranges;
}

}  // namespace distro
