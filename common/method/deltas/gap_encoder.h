// Encodes results of deltas while their blocks are made.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "common/method/codec/gap_encoder.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/update.h"

namespace distro {

// Encodes a range of blocks, of which the first begins a group. Not thread-safe.
class DeltaGapEncoder {
 public:
  // `blocks`: as GapEncoder.
  explicit DeltaGapEncoder(uint64_t blocks) : gaps_(blocks) {}

  void AddBlock(const DeltaBlock& block) {
    AddBlock(block.count, block.code, block.positions.data(), block.signs.data(),
             block.levels.data());
  }
  // The same of arrays [count].
  void AddBlock(uint32_t count, uint8_t code, const uint16_t* positions, const int8_t* signs,
                const uint8_t* levels);
  uint64_t blocks() const { return gaps_.blocks(); }

 private:
  friend void EncodeDeltaGaps(absl::Span<DeltaGapEncoder> encoders, int threads, std::string* body);

  int code_ = 0;  // of the group's last block that has entries
  GapEncoder<DeltaFormat> gaps_;
};

// Appends the body of the blocks of all encoders (gap_format.h), as EncodeGapBody.
void EncodeDeltaGaps(absl::Span<DeltaGapEncoder> encoders, int threads, std::string* body);

}  // namespace distro
