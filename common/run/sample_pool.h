// The samples that no worker has been assigned: those returned unread, and all from next_sample on.
// Every record lists them, so that any aggregator that continues from it assigns the same ones
// (docs/protocol.md, "Samples").
//
//   SamplePool pool(header.unread(), header.next_sample());
//   pool.GiveBack(slot, 64);               // all of the slot's samples but its first 64
//   v1::Slot next = pool.Take("w2", 128);  // what came back first
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "distro/v1/run.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro {

// Calls range(first, samples) for each range of a slot, in reading order.
template <typename Function>
void ForEachRange(const v1::Slot& slot, const Function& range) {
  range(slot.first_sample(), uint64_t{slot.samples()});
  for (const v1::SampleRange& more : slot.more()) range(more.first_sample(), more.samples());
}

// The number of samples in all ranges of the slot.
uint64_t SamplesOf(const v1::Slot& slot);

// A slot without a worker.
v1::Slot ConsecutiveSamples(uint64_t first, uint32_t samples);

// The ranges of a slot, in reading order.
google::protobuf::RepeatedPtrField<v1::SampleRange> RangesOf(const v1::Slot& slot);

// The slot's samples skip .. skip + count - 1, in reading order. Requires skip + count <=
// SamplesOf(slot), count >= 1.
v1::Slot PartOf(const v1::Slot& slot, uint64_t skip, uint32_t count);

class SamplePool {
 public:
  SamplePool() = default;
  // `unread` as Unread() lists it.
  SamplePool(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
             uint64_t next_sample);

  // Takes `samples` indices, returned ones first, in ascending order. Requires samples >= 1.
  v1::Slot Take(absl::string_view worker, uint32_t samples);
  // Returns the samples that the worker has not read: all but the first `read`. Requires that no
  // other slot contains them.
  void GiveBack(const v1::Slot& slot, uint64_t read);

  // The first index that was never assigned.
  uint64_t next_sample() const { return next_sample_; }
  bool has_unread() const { return !unread_.empty(); }
  // The returned samples, ascending, adjacent ranges joined.
  google::protobuf::RepeatedPtrField<v1::SampleRange> Unread() const;

 private:
  void Add(uint64_t first, uint64_t samples);

  std::map<uint64_t, uint64_t> unread_;  // first index -> number of indices; adjacent ranges joined
  uint64_t next_sample_ = 0;
};

}  // namespace distro
