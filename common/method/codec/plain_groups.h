// Decodes several groups of a body at a time, if each block of theirs has no entries or one number
// of them, all plain: those of an update. The bits of a group depend on each other; a loop that
// alternates between groups does not wait for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/method/codec/gap_decoder_impl.h"

namespace distro {

// What is decoded of a group; borrowed.
struct PlainGroup {
  // [blocks that are not empty, count] position + kBlockElements * negative; with room for all.
  uint16_t* entries;
  uint32_t* of_blocks;  // [blocks]; 0 of an empty block
  bool* empty;          // [blocks]
};

namespace internal {

// A group that is being decoded. Functions return false at what is not as above; then nothing of
// it is of use.
template <typename Format>
class PlainGroupDecoder {
 public:
  using Plain = typename Format::Plain;
  using OfBlock = typename Format::OfBlock;

  PlainGroupDecoder(const GapBody<Format>& body, uint32_t group, uint32_t count, PlainGroup to)
      : body_(body),
        bytes_(body.bytes()),
        group_(group),
        count_(count),
        blocks_(std::min(body.blocks() - group * kGroupBlocks, kGroupBlocks)),
        at_{.bit = body.GroupBit(group), .next = 0, .entries = to.entries},
        to_(to) {}

  // Reads on to the next block that is not empty. Without one, ended() is true afterwards.
  bool NextBlock(GapModel<Format>* model) {
    while (true) {
      if (block_ == run_end_) {
        ended_ = block_ == blocks_;
        if (ended_) return plain_ == 0 && body_.EndsAt(group_, at_.bit);
        if (!ReadRun(model)) return false;
      }
      const uint32_t block = block_++;
      to_.empty[block] = run_empty_;
      to_.of_blocks[block] = 0;
      if (run_empty_) continue;
      at_.next = 0;
      return Take<OfBlock>(model, &to_.of_blocks[block]);
    }
  }
  bool ended() const { return ended_; }

  // The entries, at most `most`, before the next run of plain ones.
  bool PlainEntries(uint32_t most, GapModel<Format>* model, uint32_t* entries) {
    if (plain_ == 0) {
      // An entry that is not plain follows a run that is not full, or the group's end.
      if (last_plain_ || !Take<Plain>(model, &plain_) || plain_ == 0 || plain_ > Plain::kLargest)
        return false;
      last_plain_ = plain_ < Plain::kLargest;
    }
    *entries = std::min(most, plain_);
    return true;
  }
  // Where the next plain entry is read from and goes to.
  struct Cursor {
    uint64_t bit;
    uint32_t next;      // position behind the last entry
    uint16_t* entries;  // where the next one goes
  };
  const Cursor& cursor() const { return at_; }
  // After that of `taken` plain entries.
  void Continue(const Cursor& cursor, uint32_t taken) {
    at_ = cursor;
    plain_ -= taken;
  }
  // Whether the block's positions were below its end.
  bool InBlock() const { return at_.next <= kBlockElements; }

 private:
  template <typename Kind>
  bool Take(GapModel<Format>* model, uint32_t* number) {
    if (body_.template table<Kind>().empty()) return false;
    at_.bit += TakeNumber<Kind>(body_.template table<Kind>(), BitReader::PeekAt(bytes_, at_.bit),
                                model->template of<Kind>().data(), number);
    return true;
  }
  bool ReadRun(GapModel<Format>* model) {
    uint32_t more, count;
    if (!Take<Repeats>(model, &more) || !Take<Counts>(model, &count)) return false;
    const bool empty = count == 0;
    // Of two runs in sequence one is empty: the encoder makes one of others.
    if (more >= blocks_ - block_ || (!empty && count != count_)) return false;
    if (block_ != 0 && empty == run_empty_) return false;
    run_empty_ = empty;
    run_end_ = block_ + more + 1;
    return true;
  }

  const GapBody<Format>& body_;
  const absl::string_view bytes_;
  const uint32_t group_, count_, blocks_;
  Cursor at_;
  const PlainGroup to_;
  uint32_t block_ = 0, run_end_ = 0;
  bool run_empty_ = false, ended_ = false, last_plain_ = false;
  uint32_t plain_ = 0;  // entries left of the run
};

// Takes `number` plain entries of each group in turn.
template <size_t groups, typename Cursor>
void TakePlainEntries(absl::string_view bytes, const GapEntry* gaps, uint32_t number,
                      uint64_t* symbols, std::array<Cursor, groups>* cursors) {
  std::array<Cursor, groups> at = *cursors;  // a copy, which stays in registers
  const auto take = [&](Cursor& of, uint32_t some) {
    uint64_t window = BitReader::PeekAt(bytes, of.bit);
    for (uint32_t i = 0; i < some; ++i) {
      uint32_t gap;
      const uint32_t bits = TakeGap(gaps, window, symbols, &gap);
      window >>= bits;
      of.bit += bits;
      *of.entries++ = static_cast<uint16_t>(of.next + gap);
      of.next += gap % kBlockElements + 1;
    }
  };
  for (; number >= kGapsOfPeek; number -= kGapsOfPeek) {
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; ++g) take(at[g], kGapsOfPeek);
  }
  for (; number > 0; --number) {
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; ++g) take(at[g], 1);
  }
  *cursors = at;
}

// Takes blocks of all groups in turn until one has ended.
template <typename Format, size_t groups>
bool TakePlainBlocks(const GapBody<Format>& body, uint32_t count,
                     PlainGroupDecoder<Format>* decoders, GapModel<Format>* model) {
  std::array<typename PlainGroupDecoder<Format>::Cursor, groups> cursors;
  while (true) {
    for (size_t g = 0; g < groups; ++g) {
      if (decoders[g].ended()) return true;
    }
    for (uint32_t left = count; left > 0;) {
      uint32_t some = left;
      for (size_t g = 0; g < groups; ++g) {
        if (!decoders[g].PlainEntries(some, model, &some)) return false;
      }
      for (size_t g = 0; g < groups; ++g) cursors[g] = decoders[g].cursor();
      TakePlainEntries(body.bytes(), body.template table<Gaps>().data(), some,
                       model->template of<Gaps>().data(), &cursors);
      for (size_t g = 0; g < groups; ++g) decoders[g].Continue(cursors[g], some);
      left -= some;
    }
    for (size_t g = 0; g < groups; ++g) {
      if (!decoders[g].InBlock() || !decoders[g].NextBlock(model)) return false;
    }
  }
}

}  // namespace internal

// Decodes groups first, first + 1, ... and adds their symbols to `model`. False if a block has
// other entries, or a group is not what an encoder makes: GapDecoder says what is wrong; then
// `model` and what was decoded are of no use. Requires groups of the body, and
// 1 <= count <= kBlockElements.
template <typename Format, size_t kGroups>
bool DecodePlainGroups(const GapBody<Format>& body, uint32_t first, uint32_t count,
                       const std::array<PlainGroup, kGroups>& to, GapModel<Format>* model) {
  using Decoder = internal::PlainGroupDecoder<Format>;
  std::vector<Decoder> decoders;
  decoders.reserve(kGroups);
  for (size_t g = 0; g < kGroups; ++g)
    decoders.emplace_back(body, first + static_cast<uint32_t>(g), count, to[g]);
  bool any = false;
  for (Decoder& decoder : decoders) {
    if (!decoder.NextBlock(model)) return false;
    any |= !decoder.ended();
  }
  if (any && body.template table<Gaps>().empty()) return false;
  if (!internal::TakePlainBlocks<Format, kGroups>(body, count, decoders.data(), model))
    return false;
  // Groups with more blocks that are not empty than another.
  for (Decoder& decoder : decoders) {
    if (!internal::TakePlainBlocks<Format, 1>(body, count, &decoder, model)) return false;
  }
  return true;
}

}  // namespace distro
