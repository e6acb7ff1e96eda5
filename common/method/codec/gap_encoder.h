// Writes bodies of the gap codec (gap_codec.h): what the formats share.
//
//   GapEncoder<Format> encoder(blocks);               // of one thread
//   for (...) encoder.AddBlock(...);                  // in order
//   EncodeGapBody<Format>({&encoder}, /*threads=*/1, &body);
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/method/codec/bit_stream.h"
#include "common/method/codec/gap_model.h"

namespace distro {

// The most bits of a number.
template <typename Kind>
inline constexpr uint64_t kNumberBits = kMaxCodeLength + kRawBits<Kind>;
inline constexpr uint64_t kRunBits = kNumberBits<Repeats> + kNumberBits<Counts>;
inline constexpr uint64_t kGapBits = kNumberBits<Gaps> + 1;

namespace internal {

// The bits of a number.
struct CodedNumber {
  uint32_t bits : 22;
  uint32_t length : 10;
};
static_assert(sizeof(CodedNumber) == sizeof(uint32_t));

// Calls work(gap, symbol, range of the symbol) for every gap.
template <typename Work>
void ForEachGap(Work work) {
  for (uint32_t symbol = 0; symbol < kSymbols<Gaps>; ++symbol) {
    const BucketRange range = RangeOf<Gaps::kMantissa>(symbol);
    for (uint32_t raw = 0; raw < 1u << range.raw_bits; ++raw)
      work(range.first + raw, symbol, range);
  }
}
static_assert(RangeOf<Gaps::kMantissa>(kSymbols<Gaps> - 1).first +
                  (1u << RangeOf<Gaps::kMantissa>(kSymbols<Gaps> - 1).raw_bits) ==
              kBlockElements);

// Codes of a body: immutable. A loop over entries finds each number in a table.
template <typename Format>
class GapCodes {
 public:
  using Plain = typename Format::Plain;
  using Other = typename Format::Other;
  // Numbers of entries that are not plain, plus 1, that the table has.
  static constexpr uint32_t kOthers = std::min(Other::kLargest + 2, 64u);

  explicit GapCodes(const GapCodeLengths<Format>& lengths) : lengths_(lengths) {
    codes_.ForEach([&]<typename Kind>() {
      std::ranges::copy(PrefixCodes(lengths.template of<Kind>()),
                        codes_.template of<Kind>().begin());
    });
    ForEachGap([&](uint32_t gap, uint32_t symbol, BucketRange range) {
      const auto code_bits = static_cast<uint32_t>(CodeBits(lengths.template of<Gaps>()[symbol]));
      const uint32_t bits = codes_.template of<Gaps>()[symbol] | (gap - range.first)
                                                                     << (code_bits + 1);
      const uint32_t length = code_bits + 1 + static_cast<uint32_t>(range.raw_bits);
      gaps_[gap] = {.bits = bits, .length = length};
      gaps_[gap + kBlockElements] = {.bits = bits | 1u << code_bits, .length = length};
    });
    for (uint32_t i = 0; i < runs_.size(); ++i) runs_[i] = Coded<Plain>(i);
    others_[0] = {};
    for (uint32_t i = 1; i < others_.size(); ++i) others_[i] = Coded<Other>(i - 1);
  }

  template <typename Kind>
  CodedNumber Coded(uint32_t number) const {
    static_assert(kNumberBits<Kind> <= 22 && kGapBits <= 22);
    const Bucket bucket = BucketFor<Kind>(number);
    const auto raw_bits = static_cast<uint32_t>(bucket.raw_bits);
    const auto code_bits =
        static_cast<uint32_t>(CodeBits(lengths_.template of<Kind>()[bucket.symbol]));
    const uint32_t raw = number & ((1u << raw_bits) - 1);
    return {.bits = codes_.template of<Kind>()[bucket.symbol] | raw << code_bits,
            .length = code_bits + raw_bits};
  }
  // Of a gap, plus kBlockElements if the entry is negative: the sign follows the code.
  CodedNumber Gap(uint32_t gap_and_sign) const { return gaps_[gap_and_sign]; }
  CodedNumber Run(uint32_t entries) const { return runs_[entries]; }
  // Of an entry whose number plus 1 is `other`; no bits for 0, a plain entry.
  CodedNumber Number(uint32_t other) const {
    if (kOthers <= Other::kLargest + 1 && other >= kOthers) return Coded<Other>(other - 1);
    return others_[other];
  }

 private:
  const GapCodeLengths<Format>& lengths_;
  typename Format::template Of<PerSymbol<uint16_t>::Member> codes_;
  std::array<CodedNumber, 2 * kBlockElements> gaps_;
  std::array<CodedNumber, Plain::kLargest + 1> runs_;
  std::array<CodedNumber, kOthers> others_;
};

}  // namespace internal

// The blocks of some groups, as numbers: counts their symbols as they are added, so that a body
// needs one more pass over its entries. Not thread-safe.
template <typename Format>
class GapEncoder {
 public:
  // `blocks`: about how many will be added; memory for all is reserved after a group of them.
  explicit GapEncoder(uint64_t blocks) : blocks_(blocks) {}

  // Adds a block with `count` entries at ascending positions [count]. negative(i): 1 if entry i is,
  // else 0. number(i): 0 for a plain entry, else its number plus 1. `of_block`: the number before
  // the entries, in a format that has one; unused without entries. The first block begins a group.
  template <typename Negative, typename NumberOf>
  void AddBlock(uint32_t count, const uint16_t* positions, Negative negative, NumberOf number,
                uint32_t of_block = 0) {
    if (counts_.size() % kGroupBlocks == 0) StartGroup();
    counts_.push_back(count);
    if (count == 0) return;
    if constexpr (kHasOfBlock) of_blocks_.push_back(of_block);
    AddEntries(count, positions, negative, number);
  }

  uint64_t blocks() const { return counts_.size(); }
  // How often each symbol occurs. Nothing is added afterwards.
  GapModel<Format> Finish();
  // Appends the groups to `groups`, and the bytes of each, u32, to `sizes`. Requires Finish().
  void Write(const internal::GapCodes<Format>& codes, std::string* sizes,
             std::string* groups) const;

 private:
  using Plain = typename Format::Plain;
  using Other = typename Format::Other;
  static constexpr bool kHasOfBlock = !std::same_as<typename Format::OfBlock, void>;
  static constexpr uint32_t kOthers = internal::GapCodes<Format>::kOthers;
  // Where the bits of an entry begin: its gap, its sign, number(i).
  static constexpr uint32_t kSign = 12, kNumber = 13;
  using Entry = std::conditional_t<(Other::kLargest + 1 < 1 << (16 - kNumber)), uint16_t, uint32_t>;
  static_assert(kBlockElements == 1 << kSign && Other::kLargest + 1 < 1 << (32 - kNumber));

  template <typename Negative, typename NumberOf>
  void AddEntries(uint32_t count, const uint16_t* positions, Negative negative, NumberOf number);
  void StartGroup() {
    EndRun();
    if (counts_.size() == kGroupBlocks)
      entries_.reserve(entries_.size() * GroupsOf(blocks_) * 9 / 8);
  }
  void EndRun() {
    if (run_ > 0) runs_[runs_ended_++] = static_cast<uint16_t>(run_);
    run_ = 0;
  }
  // The bits of entry after entry of a group, or of two if both are plain and within a run.
  struct EntryBits {
    const internal::GapCodes<Format>* codes;
    const Entry* entry;
    const uint16_t* run;   // the first that has not begun
    uint32_t begins = 1;   // 1: it begins with the next entry
    uint32_t plain = 0;    // entries left of the run before
    uint32_t partial = 0;  // 1: an entry that is not plain follows them

    size_t operator()(size_t most, uint64_t* bits, uint32_t* length);
  };
  // Calls run(first, end) for each run of blocks of the group that begins with block `first`.
  template <typename Run>
  void ForEachRun(size_t first, Run run) const;

  uint64_t blocks_;
  std::vector<uint32_t> counts_;     // [blocks]
  std::vector<uint32_t> of_blocks_;  // of blocks with entries
  std::vector<Entry> entries_;
  std::vector<uint16_t> runs_;  // plain entries of each that has ended; longer than these
  size_t runs_ended_ = 0;
  uint32_t run_ = 0;  // plain entries so far of the current run
  // How often each gap and number(i) occurs. Entries in turn: to add to one number several times in
  // succession takes longer.
  std::array<std::array<uint32_t, kBlockElements>, 2> gaps_{};
  std::array<std::array<uint32_t, kOthers>, 4> others_{};
  GapModel<Format> model_;  // of larger ones
};

template <typename Format>
template <typename Negative, typename NumberOf>
void GapEncoder<Format>::AddEntries(uint32_t count, const uint16_t* positions, Negative negative,
                                    NumberOf number) {
  const size_t first = entries_.size();
  entries_.resize(first + count);
  // Each entry can end a run, EndRun() too, and Write() reads one more.
  if (runs_.size() < runs_ended_ + count + 2) runs_.resize(2 * (runs_ended_ + count + 2));
  Entry* const entries = entries_.data() + first;
  uint16_t* run_end = runs_.data() + runs_ended_;
  uint32_t next = 0, run = run_;
  // Without branches: which entries are plain is not foreseeable.
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t gap = positions[i] - next, other = number(i);
    entries[i] =
        static_cast<Entry>(gap | static_cast<uint32_t>(negative(i)) << kSign | other << kNumber);
    next = uint32_t{positions[i]} + 1;
    ++gaps_[i % 2][gap];
    if (kOthers <= Other::kLargest + 1 && other >= kOthers)
      ++model_.template of<Other>()[BucketFor<Other>(other - 1).symbol];
    else
      ++others_[i % 4][other];
    run += other == 0 ? 1 : 0;
    const uint32_t ends =
        static_cast<uint32_t>(other != 0) | static_cast<uint32_t>(run == Plain::kLargest);
    *run_end = static_cast<uint16_t>(run);
    run_end += ends;
    run &= ends - 1;
  }
  runs_ended_ = static_cast<size_t>(run_end - runs_.data());
  run_ = run;
}

template <typename Format>
GapModel<Format> GapEncoder<Format>::Finish() {
  EndRun();
  GapModel<Format> model = model_;
  const auto count = [&model]<typename Kind>(uint32_t number, uint64_t times) {
    model.template of<Kind>()[BucketFor<Kind>(number).symbol] += times;
  };
  internal::ForEachGap([&](uint32_t gap, uint32_t symbol, BucketRange /*range*/) {
    model.template of<Gaps>()[symbol] += gaps_[0][gap] + gaps_[1][gap];
  });
  for (const auto& others : others_) {
    for (uint32_t i = 1; i < others.size(); ++i) count.template operator()<Other>(i - 1, others[i]);
  }
  for (size_t i = 0; i < runs_ended_; ++i) count.template operator()<Plain>(runs_[i], 1);
  if constexpr (kHasOfBlock) {
    for (const uint32_t number : of_blocks_)
      count.template operator()<typename Format::OfBlock>(number, 1);
  }
  for (size_t first = 0; first < counts_.size(); first += kGroupBlocks) {
    ForEachRun(first, [&](size_t begin, size_t end) {
      count.template operator()<Repeats>(static_cast<uint32_t>(end - begin - 1), 1);
      count.template operator()<Counts>(counts_[begin], 1);
    });
  }
  return model;
}

template <typename Format>
template <typename Run>
void GapEncoder<Format>::ForEachRun(size_t first, Run run) const {
  const size_t last = std::min<size_t>(first + kGroupBlocks, counts_.size());
  for (size_t begin = first, end = first; begin < last; begin = end) {
    while (end < last && counts_[end] == counts_[begin]) ++end;
    run(begin, end);
  }
}

template <typename Format>
inline size_t GapEncoder<Format>::EntryBits::operator()(size_t most, uint64_t* bits,
                                                        uint32_t* length) {
  static_assert(kNumberBits<Plain> + kGapBits + kNumberBits<Other> <= BitWriter::kMostBits);
  static_assert(2 * kGapBits <= BitWriter::kMostBits);
  if (most >= 2 && plain >= 2) [[likely]] {
    const internal::CodedNumber first = codes->Gap(entry[0]), second = codes->Gap(entry[1]);
    *bits = first.bits | uint64_t{second.bits} << first.length;
    *length = first.length + second.length;
    entry += 2;
    plain -= 2;
    if ((plain | partial) == 0) [[unlikely]]
      begins = 1;
    return 2;
  }
  // Without branches that are not foreseeable: of what begins, and of what is plain.
  const uint32_t of = *entry++, number = of >> kNumber, entries = *run;
  const internal::CodedNumber of_run = codes->Run(entries),
                              gap = codes->Gap(of % (2 * kBlockElements)),
                              other = codes->Number(number);
  const uint32_t begun = 0 - begins;
  *bits = of_run.bits & begun;
  *length = of_run.length & begun;
  *bits |= uint64_t{gap.bits} << *length;
  *length += gap.length;
  *bits |= uint64_t{other.bits} << *length;
  *length += other.length;
  run += begins;
  plain = (entries & begun) | (plain & ~begun);
  partial = (static_cast<uint32_t>(entries < Plain::kLargest) & begun) | (partial & ~begun);
  begins = static_cast<uint32_t>(number != 0);
  plain -= 1 - begins;
  if ((plain | partial) == 0) [[unlikely]]
    begins = 1;
  return 1;
}

template <typename Format>
void GapEncoder<Format>::Write(const internal::GapCodes<Format>& codes, std::string* sizes,
                               std::string* groups) const {
  BitWriter writer(groups);
  const auto write = [&]<typename Kind>(uint32_t number) {
    const internal::CodedNumber coded = codes.template Coded<Kind>(number);
    writer.Write(coded.bits, coded.length);
  };
  const uint32_t* of_block = of_blocks_.data();
  EntryBits next = {.codes = &codes, .entry = entries_.data(), .run = runs_.data()};
  for (size_t first = 0; first < counts_.size(); first += kGroupBlocks) {
    const size_t begin = groups->size();
    next = {.codes = &codes, .entry = next.entry, .run = next.run};  // a run begins
    ForEachRun(first, [&](size_t block, size_t end) {
      const uint32_t count = counts_[block];
      write.template operator()<Repeats>(static_cast<uint32_t>(end - block - 1));
      write.template operator()<Counts>(count);
      for (; count > 0 && block < end; ++block) {
        if constexpr (kHasOfBlock) write.template operator()<typename Format::OfBlock>(*of_block++);
        next = writer.WriteEach(count, next);
      }
    });
    writer.AlignToByte();
    const auto size = static_cast<uint32_t>(groups->size() - begin);
    sizes->append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
}

// Appends the body of the blocks of all encoders, in order, with a thread an encoder, at most
// `threads`. Requires that every encoder but the last has whole groups, and threads >= 1.
template <typename Format>
void EncodeGapBody(absl::Span<GapEncoder<Format>* const> encoders, int threads, std::string* body) {
  const auto each = [&](auto work) {
    RunParallel(threads, static_cast<int64_t>(encoders.size()),
                [&](int /*thread*/, int64_t i) { work(i); });
  };
  std::vector<GapModel<Format>> models(encoders.size());
  each([&](int64_t i) { models[i] = encoders[i]->Finish(); });
  GapModel<Format> model;
  for (const GapModel<Format>& of : models) AddModel<Format>(of, &model);
  const GapCodeLengths<Format> lengths = LengthsOf<Format>(model);
  const internal::GapCodes<Format> codes(lengths);
  std::vector<std::string> sizes(encoders.size()), groups(encoders.size());
  each([&](int64_t i) { encoders[i]->Write(codes, &sizes[i], &groups[i]); });
  body->append(EncodeTables<Format>(lengths));
  for (const std::string& of : sizes) body->append(of);
  for (std::string& of : groups) {
    body->append(of);
    of = std::string();  // frees it
  }
}

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
