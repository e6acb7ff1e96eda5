// Writes bodies of the gap codec (gap_codec.h): what the formats share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/base/bytes.h"
#include "common/method/codec/bit_stream.h"
#include "common/method/codec/gap_model.h"

namespace distro {

template <typename Entries>
uint32_t BlockCount(const Entries& entries, int64_t block) {
  return entries.offsets[block + 1] - entries.offsets[block];
}

// The runs of plain entries of a group, each as long as possible.
template <typename Plain, typename Sink>
class PlainRuns {
 public:
  // Of entries begin .. end-1.
  PlainRuns(uint32_t begin, uint32_t end, Sink* sink) : next_(begin), end_(end), sink_(sink) {}

  // Before an entry: passes the run that begins there to the sink.
  template <typename IsPlain>
  void Before(uint32_t entry, IsPlain is_plain) {
    if (entry != next_) return;
    const uint32_t most = std::min(end_, entry + Plain::kLargest);
    uint32_t i = entry;
    while (i < most && is_plain(i)) ++i;
    const bool ended = i - entry < Plain::kLargest;
    sink_->template Number<Plain>(i - entry);
    other_ = ended ? i : UINT32_MAX;
    next_ = ended ? i + 1 : i;
  }
  bool Ends(uint32_t entry) const { return entry == other_; }

 private:
  uint32_t next_;  // where the next run starts
  const uint32_t end_;
  uint32_t other_ = UINT32_MAX;  // the entry that ends the current run
  Sink* const sink_;
};

namespace internal {

// Passes the numbers of a body to the sink, in the order of the stream.
template <template <typename> class Entries, typename Data, typename Sink>
void Walk(const Data& data, Sink* sink) {
  const auto blocks = static_cast<int64_t>(data.offsets.size()) - 1;
  for (int64_t first = 0; first < blocks; first += kGroupBlocks) {
    const int64_t last = std::min<int64_t>(first + kGroupBlocks, blocks);
    Entries<Sink> entries(data, first, last, sink);
    for (int64_t block = first, run_end = first; block < last; ++block) {
      if (block == run_end) {
        while (run_end < last && BlockCount(data, run_end) == BlockCount(data, block)) ++run_end;
        sink->template Number<Repeats>(static_cast<uint32_t>(run_end - block - 1));
        sink->template Number<Counts>(BlockCount(data, block));
      }
      entries.Block(block);
    }
    sink->EndGroup();
  }
}

// First pass: counts symbols. Gaps, one per entry, are counted by value.
template <typename Format>
class Counter {
 public:
  template <typename Kind>
  void Number(uint32_t number) {
    ++model_.template of<Kind>()[BucketFor<Kind>(number).symbol];
  }
  void Gap(uint32_t gap, bool /*negative*/) { ++gaps_[gap]; }
  void EndGroup() {}

  // Of all that was counted.
  GapModel<Format> Model() const {
    GapModel<Format> model = model_;
    for (uint32_t gap = 0; gap < gaps_.size(); ++gap)
      model.template of<Gaps>()[BucketFor<Gaps>(gap).symbol] += gaps_[gap];
    return model;
  }

 private:
  GapModel<Format> model_;
  std::array<uint32_t, kBlockElements> gaps_{};
};

// The bits of a gap, without the sign bit between code and raw bits: 16 KB for all gaps.
struct GapBits {
  uint32_t bits : 20;
  uint32_t sign_at : 6;
  uint32_t length : 6;
};
static_assert(sizeof(GapBits) == sizeof(uint32_t));
static_assert(kMaxCodeLength + 1 + kRawBits<Gaps> <= 20);

// Second pass: writes groups and their sizes.
template <typename Format>
class GroupWriter {
 public:
  // Appends to `body`; the sizes go to (*body)[sizes...], which exists.
  GroupWriter(const GapCodeLengths<Format>& lengths, size_t sizes, std::string* body)
      : lengths_(lengths), body_(body), sizes_(sizes), group_begin_(body->size()), writer_(body) {
    codes_.ForEach([&]<typename Kind>() {
      std::ranges::copy(PrefixCodes(lengths.template of<Kind>()),
                        codes_.template of<Kind>().begin());
    });
    for (uint32_t gap = 0; gap < gaps_.size(); ++gap) {
      const Bucket bucket = BucketFor<Gaps>(gap);
      const auto code_bits =
          static_cast<uint32_t>(CodeBits(lengths.template of<Gaps>()[bucket.symbol]));
      gaps_[gap] = {.bits = codes_.template of<Gaps>()[bucket.symbol] |
                            static_cast<uint32_t>(Low(gap, bucket.raw_bits) << (code_bits + 1)),
                    .sign_at = code_bits,
                    .length = code_bits + 1 + static_cast<uint32_t>(bucket.raw_bits)};
    }
  }

  template <typename Kind>
  void Number(uint32_t number) {
    const Bucket bucket = BucketFor<Kind>(number);
    writer_.Write(codes_.template of<Kind>()[bucket.symbol],
                  CodeBits(lengths_.template of<Kind>()[bucket.symbol]));
    writer_.Write(Low(number, bucket.raw_bits), bucket.raw_bits);
  }
  void Gap(uint32_t gap, bool negative) {
    const GapBits coded = gaps_[gap];
    writer_.Write(coded.bits | uint64_t{negative} << coded.sign_at, coded.length);
  }
  void EndGroup() {
    writer_.AlignToByte();
    const auto size = static_cast<uint32_t>(body_->size() - group_begin_);
    std::memcpy(body_->data() + sizes_, &size, sizeof(size));
    sizes_ += sizeof(size);
    group_begin_ = body_->size();
  }

 private:
  static uint64_t Low(uint32_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

  const GapCodeLengths<Format>& lengths_;
  typename Format::template Of<PerSymbol<uint16_t>::Member> codes_;
  std::array<GapBits, kBlockElements> gaps_;
  std::string* const body_;
  size_t sizes_;
  size_t group_begin_;
  BitWriter writer_;
};

}  // namespace internal

// Appends the body of a segment's data, sparse by block. Entries<Sink>(data, first, last, sink) has
// Block(block), which passes the numbers of a block of the group first .. last-1 to the sink.
template <typename Format, template <typename> class Entries, typename Data>
void EncodeGapBody(const Data& data, std::string* body) {
  internal::Counter<Format> counter;
  internal::Walk<Entries>(data, &counter);
  const GapCodeLengths<Format> lengths = LengthsOf<Format>(counter.Model());
  body->append(EncodeTables<Format>(lengths));
  const size_t sizes = body->size();
  body->append(4 * size_t{GroupsOf(data.offsets.size() - 1)}, '\0');
  internal::GroupWriter<Format> writer(lengths, sizes, body);
  internal::Walk<Entries>(data, &writer);
}

// The most bits of a number.
template <typename Kind>
inline constexpr uint64_t kNumberBits = kMaxCodeLength + kRawBits<Kind>;
inline constexpr uint64_t kRunBits = kNumberBits<Repeats> + kNumberBits<Counts>;
inline constexpr uint64_t kGapBits = kNumberBits<Gaps> + 1;

// Tables take at most 6 bits per symbol: for a length or for one unused symbol (12 for two). A
// group adds its size and at most a byte of padding.
template <typename Format>
uint64_t MaxBodyBytes(uint64_t groups, uint64_t bits) {
  constexpr uint64_t kTableBytes = sizeof(GapCodeLengths<Format>) * 6 / 8 + 8;
  return kTableBytes + groups * 5 + (bits + 7) / 8;
}

// The most bits of blocks with `entries` entries of which `others` are not plain, plus
// `block_bits`. A run of plain entries is written once per group, after every entry that is not
// plain, and after every kLargest entries.
template <typename Format>
uint64_t MaxEntriesBytes(uint64_t blocks, uint64_t entries, uint64_t others, uint64_t block_bits) {
  using Plain = typename Format::Plain;
  using Other = typename Format::Other;
  const uint64_t groups = GroupsOf(blocks);
  const uint64_t runs = blocks * others + blocks * entries / Plain::kLargest + groups;
  const uint64_t of_block =
      kRunBits + block_bits + entries * kGapBits + others * kNumberBits<Other>;
  return MaxBodyBytes<Format>(groups, blocks * of_block + runs * kNumberBits<Plain>);
}

}  // namespace distro
