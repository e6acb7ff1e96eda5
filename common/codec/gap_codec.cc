#include "common/codec/gap_codec.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/codec/gap_decoder.h"

namespace distro {
namespace {

// Groups that a thread takes at a time: 4096 blocks, a few hundred KB of votes.
constexpr uint32_t kPartGroups = 16;

void Append(const GapBlock<VoteFormat>& block, Votes* votes) {
  votes->positions.insert(votes->positions.end(), block.positions.begin(),
                          block.positions.begin() + block.count);
  votes->values.insert(votes->values.end(), block.values.begin(),
                       block.values.begin() + block.count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

void Append(const GapBlock<DeltaFormat>& block, DeltaResult* deltas) {
  deltas->positions.insert(deltas->positions.end(), block.positions.begin(),
                           block.positions.begin() + block.count);
  deltas->signs.insert(deltas->signs.end(), block.signs.begin(), block.signs.begin() + block.count);
  deltas->levels.insert(deltas->levels.end(), block.levels.begin(),
                        block.levels.begin() + block.count);
  deltas->codes.push_back(block.code);
  deltas->offsets.push_back(static_cast<uint32_t>(deltas->positions.size()));
}

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

template <typename Format>
void AddModel(const GapModel<Format>& model, GapModel<Format>* sum) {
  model.ForEach([&]<typename Kind>() {
    auto& total = sum->template of<Kind>();
    for (size_t symbol = 0; symbol < total.size(); ++symbol)
      total[symbol] += model.template of<Kind>()[symbol];
  });
}

template <typename Format, typename Decoded>
absl::StatusOr<Decoded> Decode(absl::string_view bytes, uint32_t blocks, int threads) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const GapBody<Format>> body,
                          GapBody<Format>::Open(bytes, blocks));
  const uint32_t part_groups = threads == 1 ? std::max(body->groups(), 1u) : kPartGroups;
  std::vector<DecodedGroups<Format, Decoded>> parts((body->groups() + part_groups - 1) /
                                                    part_groups);
  RunParallel(threads, static_cast<int64_t>(parts.size()), [&](int /*thread*/, int64_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * part_groups;
    parts[i] = DecodeGroupRange<Format, Decoded>(body, first,
                                                 std::min(body->groups(), first + part_groups));
  });
  GapModel<Format> model;
  uint64_t entries = 0;
  std::vector<Decoded> decoded;
  for (DecodedGroups<Format, Decoded>& groups : parts) {
    DISTRO_RETURN_IF_ERROR(groups.status);
    AddModel<Format>(groups.model, &model);
    entries += groups.decoded.positions.size();
    decoded.push_back(std::move(groups.decoded));
  }
  DISTRO_RETURN_IF_ERROR(body->CheckModel(model));
  if (entries > UINT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(entries, " entries, at most 2^32 - 1"));
  return Concatenate(std::move(decoded));
}

}  // namespace

absl::StatusOr<Votes> DecodeGaps(absl::string_view body, uint32_t blocks, int threads) {
  return Decode<VoteFormat, Votes>(body, blocks, threads);
}

absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads) {
  return Decode<DeltaFormat, DeltaResult>(body, blocks, threads);
}

}  // namespace distro
