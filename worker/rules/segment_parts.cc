#include "worker/rules/segment_parts.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace distro::worker {

std::vector<SegmentPart> SegmentParts(const Layout& layout, absl::Span<const ShardRun> runs) {
  std::vector<SegmentPart> parts;
  int64_t pending = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const int64_t blocks = runs[i].matrix.Blocks();
    const int64_t first = layout.tensors()[runs[i].tensor].first_block + runs[i].first_block;
    for (int64_t done = 0; done < blocks;) {
      const int64_t in_segment = (first + done) % layout.segment_blocks();
      const int64_t count = std::min(blocks - done, layout.segment_blocks() - in_segment);
      parts.push_back(
          {.run = i,
           .blocks = {.first = done, .count = count},
           .first_pending = pending + done,
           .segment = SegmentId(static_cast<uint32_t>((first + done) / layout.segment_blocks())),
           .first_in_segment = in_segment});
      done += count;
    }
    pending += blocks;
  }
  return parts;
}

BlockPieces PendingOfParts(absl::Span<const SegmentPart> parts, const PendingUpdate& pending,
                           absl::Span<const int64_t> block_bytes) {
  BlockPieces pieces(block_bytes.size());
  for (const SegmentPart& part : parts) {
    const BlockBytes& segment = pending.segments[part.segment.value()];
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].push_back(
          absl::string_view(segment[i])
              .substr(part.first_in_segment * block_bytes[i], part.blocks.count * block_bytes[i]));
    }
  }
  return pieces;
}

}  // namespace distro::worker
