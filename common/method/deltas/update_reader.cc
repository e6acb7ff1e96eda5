#include "common/method/deltas/update_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/codec/plain_groups.h"
#include "common/method/deltas/payload.h"

namespace distro {
namespace {

absl::Status CheckBlock(uint32_t number, const GapBlock<DeltaFormat>& block, uint32_t k) {
  if (block.count != 0 && block.count != k) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", number, ": ", block.count, " entries, an update has 0 or ", k));
  }
  if (block.level_zero) return absl::OkStatus();
  const auto* const above = std::find_if(block.levels.begin(), block.levels.begin() + block.count,
                                         [](uint8_t level) { return level != 0; });
  return absl::InvalidArgumentError(
      absl::StrCat("block ", number, ": level ", *above, ", an update has 0"));
}

}  // namespace

DeltaUpdateReader::DeltaUpdateReader(std::shared_ptr<const GapBody<DeltaFormat>> body, int k,
                                     uint32_t first_group)
    : k_(static_cast<uint32_t>(k)),
      whole_(first_group == 0),
      body_(std::move(body)),
      next_(first_group) {}

absl::StatusOr<DeltaUpdateReader> DeltaUpdateReader::Create(absl::string_view payload,
                                                            const PayloadExpectation& expected,
                                                            uint32_t first_group) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView view,
                          OpenDeltaUpdate(payload, expected, PayloadKind::kDeltaUpdate));
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const GapBody<DeltaFormat>> body,
                          GapBody<DeltaFormat>::Open(view.body, view.header.blocks));
  return DeltaUpdateReader(std::move(body), expected.k, first_group);
}

absl::Status DeltaUpdateReader::NextGroups(absl::Span<SentGroup> groups) {
  while (!groups.empty()) {
    size_t read = 1;
    if (groups.size() >= kGroupsAtOnce && Decode<kGroupsAtOnce>(groups))
      read = kGroupsAtOnce;
    else if (!Decode<1>(groups))
      return FaultOf(groups.front().blocks);
    next_ += static_cast<uint32_t>(read);
    groups.remove_prefix(read);
  }
  // Only a reader that began with the first group has counted every symbol.
  if (whole_ && next_ == body_->groups()) return body_->CheckModel(model_);
  return absl::OkStatus();
}

template <size_t number>
bool DeltaUpdateReader::Decode(absl::Span<SentGroup> groups) {
  std::array<std::array<uint32_t, kGroupBlocks>, number> differences;
  std::array<PlainGroup, number> plain;
  for (size_t g = 0; g < number; ++g) {
    SentGroup& group = groups[g];
    const uint32_t first = (next_ + static_cast<uint32_t>(g)) * kGroupBlocks;
    group.blocks = std::min(body_->blocks() - first, kGroupBlocks);
    group.entries.resize(uint64_t{group.blocks} * k_);
    plain[g] = {.entries = group.entries.data(),
                .of_blocks = differences[g].data(),
                .empty = group.empty.data()};
  }
  GapModel<DeltaFormat> model;
  if (!DecodePlainGroups(*body_, next_, k_, plain, &model)) return false;
  for (size_t g = 0; g < number; ++g) {
    int code = 0;
    for (uint32_t block = 0; block < groups[g].blocks; ++block) {
      code += UnZigZag(differences[g][block]);
      if (code < 0 || code >= kScaleCodes) return false;
      groups[g].codes[block] = groups[g].empty[block] ? uint8_t{0} : static_cast<uint8_t>(code);
    }
  }
  AddModel<DeltaFormat>(model, &model_);
  return true;
}

absl::Status DeltaUpdateReader::FaultOf(uint32_t blocks) const {
  const auto block = std::make_unique<GapBlock<DeltaFormat>>();
  GapDecoder<DeltaFormat> decoder(body_, next_);
  const uint32_t first = next_ * kGroupBlocks;
  for (uint32_t i = 0; i < blocks; ++i) {
    DISTRO_RETURN_IF_ERROR(decoder.NextBlock(block.get()));
    DISTRO_RETURN_IF_ERROR(CheckBlock(first + i, *block, k_));
  }
  return absl::InternalError(absl::StrCat("group ", next_, " was refused without a fault"));
}

}  // namespace distro
