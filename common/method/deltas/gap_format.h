// The format of the gap codec (common/method/codec/gap_codec.h) for results of deltas, and for
// updates, whose levels are all 0.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/codec/gap_decoder.h"
#include "common/method/codec/gap_model.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"

namespace distro {

struct Scales {  // a block's scale code less that before, zigzag; exact
  static constexpr absl::string_view kName = "scales";
  static constexpr int kMantissa = 8;
  static constexpr uint32_t kLargest = 2 * (kScaleCodes - 1);
};
struct Zeros {  // entries of level 0 in a run
  static constexpr absl::string_view kName = "zeros";
  static constexpr int kMantissa = 5;
  static constexpr uint32_t kLargest = 1023;
};
struct Levels {  // level - 1; exact
  static constexpr absl::string_view kName = "levels";
  static constexpr int kMantissa = 2;
  static constexpr uint32_t kLargest = kLevels - 2;
};

// An entry is plain if its level is 0.
struct DeltaFormat {
  using Plain = Zeros;
  using Other = Levels;
  using OfBlock = Scales;
  template <template <typename> class Member>
  using Of = OfKinds<Member, Repeats, Counts, Gaps, Scales, Zeros, Levels>;

  struct Block : DeltaBlock {
    bool level_zero = true;  // whether all levels are 0
  };
  struct GroupState {
    int code = 0;  // of the last block that has entries
  };
};

template <>
absl::Status GapDecoder<DeltaFormat>::ReadEntries(GapBlock<DeltaFormat>* block);
extern template class GapBody<DeltaFormat>;
extern template class GapDecoder<DeltaFormat>;

// Appends the body. An update is a result whose levels are 0 (ResultOf). Requires codes and levels
// in their ranges, and a code of 0 in blocks without entries.
void EncodeDeltaGaps(const DeltaResult& deltas, std::string* body);

// The most bytes that the body of blocks with at most `max_entries` entries takes.
uint64_t MaxDeltaBodyBytes(uint64_t blocks, uint64_t max_entries);

// As DecodeGapBody.
absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
