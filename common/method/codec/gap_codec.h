// The gap codec: encodes the votes or deltas of one segment near their entropy, and updates of
// signs with K > 8 (docs/payload_format.md has the grammar). deltas/gap_format.h and
// signs/gap_format.h are its two formats.
//
//   body   = tables sizes group*
//   tables   the code lengths of the segment (gap_model.h), whole bytes
//   sizes    u32 [ceil(blocks / 256)]: the bytes of each group, so that groups decode in parallel
//   group    256 blocks (the last fewer) as bits: run*, then zero bits up to a whole byte
//   run      blocks - 1, count: as many blocks as possible with this number of entries; then their
//            entries, those of deltas after their block's scale
//   entry    of votes: [ones], gap, sign (1 = negative), [|V| - 2]
//            of deltas: [zeros], gap, sign, [level - 1]
//   scale    zigzag difference of the code to that of the block with entries before, 0 at the
//            start of a group
//
// Every number is the prefix code of its bucket, then the bucket's raw bits (a gap's sign is
// between the two). `ones` precedes an entry when no run is pending: this many entries of the
// group, at most 1023, have |V| = 1. The entry after them has |V| >= 2 and includes its magnitude,
// unless ones is 1023 or the group ends. `zeros` is the same for entries of level 0. In training
// nine of ten are, so that one bit per entry for them would be an eighth of a result
// (docs/decisions/0019).
//
// This is a generalised Golomb-Rice code: raw low bits with an optimal prefix code instead of a
// unary quotient, because the unary one is 3 to 4 % above the entropy of geometric gaps.
//
// The encoder's only choice is the tables. The decoder counts the symbols that it reads, derives
// the tables from the counts as the encoder does, and refuses others. Hence encode(decode(b)) == b.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/method/codec/gap_decoder_impl.h"
#include "common/method/codec/gap_encoder.h"

namespace distro {
namespace internal {

// Groups that a thread takes at a time: 4096 blocks, a few hundred KB of votes.
inline constexpr uint32_t kPartGroups = 16;

// Some groups of a body, decoded.
template <typename Format, typename Decoded>
struct DecodedGroups {
  absl::Status status;
  Decoded decoded;
  GapModel<Format> model;
};

template <typename Format, typename Decoded>
DecodedGroups<Format, Decoded> DecodeGroupRange(const std::shared_ptr<const GapBody<Format>>& body,
                                                uint32_t first_group, uint32_t end_group) {
  DecodedGroups<Format, Decoded> groups;
  GapDecoder<Format> decoder(body, first_group);
  GapBlock<Format> block;
  const uint64_t end = std::min<uint64_t>(body->blocks(), uint64_t{end_group} * kGroupBlocks);
  for (uint64_t i = uint64_t{first_group} * kGroupBlocks; i < end; ++i) {
    groups.status = decoder.NextBlock(&block);
    if (!groups.status.ok()) return groups;
    Append(block, &groups.decoded);
  }
  groups.model = decoder.model();
  return groups;
}

}  // namespace internal

// Decodes all blocks of a body on `threads` threads; the result does not depend on their number.
// Append(block, &decoded) adds a block, Concatenate joins parts. InvalidArgument as GapBody::Open,
// NextBlock and CheckModel, for the first invalid block. Requires threads >= 1.
template <typename Format, typename Decoded>
absl::StatusOr<Decoded> DecodeGapBody(absl::string_view bytes, uint32_t blocks, int threads) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const GapBody<Format>> body,
                          GapBody<Format>::Open(bytes, blocks));
  const uint32_t part_groups = threads == 1 ? std::max(body->groups(), 1u) : internal::kPartGroups;
  std::vector<internal::DecodedGroups<Format, Decoded>> parts((body->groups() + part_groups - 1) /
                                                              part_groups);
  RunParallel(threads, static_cast<int64_t>(parts.size()), [&](int /*thread*/, int64_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * part_groups;
    parts[i] = internal::DecodeGroupRange<Format, Decoded>(
        body, first, std::min(body->groups(), first + part_groups));
  });
  GapModel<Format> model;
  uint64_t entries = 0;
  std::vector<Decoded> decoded;
  for (internal::DecodedGroups<Format, Decoded>& groups : parts) {
    // In the order of the blocks: which fault is reported does not depend on the threads.
    DISTRO_RETURN_IF_ERROR(groups.status);
    AddModel<Format>(groups.model, &model);
    entries += groups.decoded.positions.size();
    decoded.push_back(std::move(groups.decoded));
  }
  DISTRO_RETURN_IF_ERROR(body->CheckModel(model));
  // Offsets into the entries have 32 bits.
  if (entries > UINT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(entries, " entries, at most 2^32 - 1"));
  return Concatenate(std::move(decoded));
}

}  // namespace distro
