// The samples that nobody has been given: those that came back unread, then all from a first one
// on. Every record lists them, so that whoever goes on from it gives out the same ones
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

// Calls range(first, samples) for each range of a slot, in the order in which they are read.
template <typename Function>
void ForEachRange(const v1::Slot& slot, const Function& range) {
  range(slot.first_sample(), uint64_t{slot.samples()});
  for (const v1::SampleRange& more : slot.more()) range(more.first_sample(), more.samples());
}

// Of all its ranges.
uint64_t SamplesOf(const v1::Slot& slot);

// A slot of nobody.
v1::Slot ConsecutiveSamples(uint64_t first, uint32_t samples);

// The ranges of a slot, in the order in which they are read.
google::protobuf::RepeatedPtrField<v1::SampleRange> RangesOf(const v1::Slot& slot);

// The slot's samples skip .. skip + count - 1, in the order in which they are read. Requires
// skip + count <= SamplesOf(slot), count >= 1.
v1::Slot PartOf(const v1::Slot& slot, uint64_t skip, uint32_t count);

class SamplePool {
 public:
  SamplePool() = default;
  // `unread` as Unread() lists it.
  SamplePool(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
             uint64_t next_sample);

  // `samples` indices, the lowest that came back first. Requires samples >= 1.
  v1::Slot Take(absl::string_view worker, uint32_t samples);
  // What the worker has not read: all but the first `read` samples. Requires a slot whose samples
  // nobody else has been given since.
  void GiveBack(const v1::Slot& slot, uint64_t read);

  // The first index that nobody was given ever.
  uint64_t next_sample() const { return next_sample_; }
  bool has_unread() const { return !unread_.empty(); }
  // What came back and nobody has, ascending, neighbours joined.
  google::protobuf::RepeatedPtrField<v1::SampleRange> Unread() const;

 private:
  void Add(uint64_t first, uint64_t samples);

  std::map<uint64_t, uint64_t> unread_;  // first index -> number of indices; neighbours joined
  uint64_t next_sample_ = 0;
};

}  // namespace distro
