#include "common/run/sample_pool.h"

#include <algorithm>
#include <iterator>

namespace distro {
namespace {

using Ranges = google::protobuf::RepeatedPtrField<v1::SampleRange>;

void AddRange(uint64_t first, uint64_t samples, Ranges* ranges) {
  v1::SampleRange* const range = ranges->Add();
  range->set_first_sample(first);
  range->set_samples(samples);
}

// Appends samples to a slot.
void Append(uint64_t first, uint64_t samples, v1::Slot* slot) {
  if (slot->samples() == 0) {
    slot->set_first_sample(first);
    slot->set_samples(static_cast<uint32_t>(samples));
    return;
  }
  AddRange(first, samples, slot->mutable_more());
}

// Like ForEachRange, without the first `skip` samples.
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

Ranges RangesOf(const v1::Slot& slot) {
  Ranges ranges;
  ForEachRange(slot, [&](uint64_t first, uint64_t samples) { AddRange(first, samples, &ranges); });
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

SamplePool::SamplePool(const Ranges& unread, uint64_t next_sample) : next_sample_(next_sample) {
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

Ranges SamplePool::Unread() const {
  Ranges ranges;
  for (const auto& [first, samples] : unread_) AddRange(first, samples, &ranges);
  return ranges;
}

}  // namespace distro
