#include "worker/state/state_parts.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

template <typename T>
absl::string_view BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Fills `out` from the front of `bytes` and returns the rest.
template <typename T>
absl::string_view Take(absl::string_view bytes, absl::Span<T> out) {
  const size_t size = out.size() * sizeof(T);
  if (size > 0) std::memcpy(out.data(), bytes.data(), size);
  return bytes.substr(size);
}

absl::Status CheckPositions(const std::vector<uint16_t>& positions, int k, uint32_t segment) {
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool follows = i % k == 0 || positions[i] > positions[i - 1];
    if (positions[i] < kBlockElements && follows) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("segment ", segment, ": position ", positions[i], " of what is pending"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<StatePart> PartsOf(const TensorPieces& momentum, const Optimizer& optimizer) {
  std::vector<StatePart> parts;
  for (const auto& tensor : momentum) {
    StatePart& part = parts.emplace_back();
    for (const absl::Span<const float> piece : tensor) part.push_back(BytesOf(piece));
  }
  if (!optimizer.pending().has_value()) return parts;
  for (uint32_t i = 0; i < optimizer.layout().segments(); ++i) {
    StatePart positions, values;
    for (const ShardPiece& piece : optimizer.SegmentPieces(SegmentId(i))) {
      positions.push_back(BytesOf(piece.positions()));
      values.push_back(BytesOf(piece.values()));
    }
    parts.push_back(std::move(positions));
    parts.push_back(std::move(values));
  }
  return parts;
}

std::vector<uint64_t> PartSizes(const Layout& layout, uint32_t k) {
  std::vector<uint64_t> sizes;
  for (const TensorLayout& tensor : layout.tensors())
    sizes.push_back(static_cast<uint64_t>(tensor.matrix.elements) * sizeof(float));
  if (k == 0) return sizes;
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const uint64_t entries = static_cast<uint64_t>(layout.SegmentBlocks(SegmentId(i))) * k;
    sizes.push_back(entries * sizeof(uint16_t));
    sizes.push_back(entries * sizeof(float));
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

std::vector<absl::string_view> TakeMomentum(const Layout& layout, absl::string_view* body) {
  std::vector<absl::string_view> tensors;
  for (const TensorLayout& tensor : layout.tensors()) {
    const size_t size = tensor.matrix.elements * sizeof(float);
    tensors.push_back(body->substr(0, size));
    body->remove_prefix(size);
  }
  return tensors;
}

absl::Status TakePending(absl::string_view body, const Layout& layout, PendingUpdate* pending) {
  pending->segments.resize(layout.segments());
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    PendingUpdate::Segment& segment = pending->segments[i];
    segment.positions.resize(layout.SegmentBlocks(SegmentId(i)) * pending->k);
    segment.values.resize(segment.positions.size());
    body = Take(body, absl::MakeSpan(segment.positions));
    body = Take(body, absl::MakeSpan(segment.values));
    DISTRO_RETURN_IF_ERROR(CheckPositions(segment.positions, pending->k, i));
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
