#include "worker/state/state_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::worker {

std::vector<StatePart> PartsOf(absl::Span<const TensorPieces> elements,
                               const Optimizer& optimizer) {
  std::vector<StatePart> parts;
  for (const TensorPieces& array : elements) {
    for (const auto& tensor : array) {
      StatePart& part = parts.emplace_back();
      for (const absl::Span<const float> piece : tensor) part.push_back(BytesOf(piece));
    }
  }
  if (!optimizer.pending().has_value()) return parts;
  for (uint32_t i = 0; i < optimizer.layout().segments(); ++i) {
    for (StatePart& array : optimizer.PendingPieces(SegmentId(i)))
      parts.push_back(std::move(array));
  }
  return parts;
}

std::vector<uint64_t> PartSizes(const Layout& layout, const UpdateRuleKind& rule, uint32_t k) {
  std::vector<uint64_t> sizes;
  for (int array = 0; array < rule.element_arrays; ++array) {
    for (const TensorLayout& tensor : layout.tensors())
      sizes.push_back(static_cast<uint64_t>(tensor.matrix.elements) * sizeof(float));
  }
  if (k == 0) return sizes;
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    for (const int64_t bytes : rule.block_bytes(static_cast<int>(k)))
      sizes.push_back(static_cast<uint64_t>(layout.SegmentBlocks(SegmentId(i)) * bytes));
  }
  return sizes;
}

absl::Status CheckParts(absl::string_view body, const std::vector<uint64_t>& sizes) {
  ByteReader reader(body);
  std::string computed;
  for (size_t i = 0; i < sizes.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(const absl::string_view part,
                            reader.ReadBytes(sizes[i], absl::StrCat("part ", i)));
    AppendLittleEndian(&computed, Xxh3(part));
  }
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view stored,
                          reader.ReadBytes(computed.size(), "checksums"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t of_checksums, reader.Read<uint64_t>("checksum"));
  if (reader.remaining() != 0) return absl::InvalidArgumentError("bytes after the end");
  if (stored != computed || of_checksums != Xxh3(computed))
    return absl::InvalidArgumentError("checksum");
  return absl::OkStatus();
}

ElementBytes TakeElements(const Layout& layout, const UpdateRuleKind& rule,
                          absl::string_view* body) {
  ElementBytes arrays(rule.element_arrays);
  for (auto& array : arrays) {
    for (const TensorLayout& tensor : layout.tensors()) {
      const size_t size = tensor.matrix.elements * sizeof(float);
      array.push_back(body->substr(0, size));
      body->remove_prefix(size);
    }
  }
  return arrays;
}

absl::Status TakePending(absl::string_view body, const Layout& layout, const UpdateRuleKind& rule,
                         PendingUpdate* pending) {
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    BlockBytes& segment = pending->segments.emplace_back();
    for (const int64_t bytes : rule.block_bytes(pending->k)) {
      const size_t size = layout.SegmentBlocks(SegmentId(i)) * bytes;
      segment.emplace_back(body.substr(0, size));
      body.remove_prefix(size);
    }
    DISTRO_RETURN_IF_ERROR(
        Annotate(rule.check(pending->k, Borrow(segment)), absl::StrCat("segment ", i)));
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
