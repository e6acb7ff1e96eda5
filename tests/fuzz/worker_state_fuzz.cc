// Bytes as a worker's state file, for a small layout: read whole, or DataLoss, another layout, a
// newer version. The checksums are corrected first, so that the checks behind them are reached too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/model/layout/tensor_buffer.h"
#include "tests/testing/worker/sharded_optimizer.h"
#include "worker/state/state_file.h"
#include "worker/state/state_parts.h"

namespace {

using distro::Layout;
using distro::Manifest;
using distro::testing::ShardedOptimizer;
using distro::worker::StateReader;

constexpr size_t kFieldsBegin = 16;

// The checksum behind the header, if the bytes reach so far.
void MendHeader(std::string* bytes) {
  if (bytes->size() < kFieldsBegin) return;
  uint32_t fields = 0;
  std::memcpy(&fields, bytes->data() + 12, sizeof(fields));
  const size_t end = kFieldsBegin + fields;
  if (bytes->size() < end + sizeof(uint64_t)) return;
  const uint64_t checksum = distro::Xxh3(absl::string_view(*bytes).substr(0, end));
  std::memcpy(bytes->data() + end, &checksum, sizeof(checksum));
}

// Into an optimizer of two ranks, as a worker does.
void Restore(const Layout& layout, const std::vector<absl::string_view>& momentum,
             const std::optional<distro::worker::PendingUpdate>& pending) {
  distro::TensorBuffer buffer(layout);
  for (int i = 0; i < buffer.tensors(); ++i)
    std::memcpy(buffer.tensor(i).data(), momentum[i].data(), momentum[i].size());
  ShardedOptimizer optimizer(&layout, 2);
  optimizer.Restore(buffer, pending);
  if (pending.has_value()) optimizer.Encode();
}

void Try(const Layout& layout, absl::string_view bytes) {
  const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
  if (!reader.ok()) {
    const bool known = reader.status().code() == absl::StatusCode::kDataLoss ||
                       reader.status().code() == absl::StatusCode::kUnimplemented;
    if (!known) std::abort();
    return;
  }
  const absl::StatusOr<StateReader::Contents> contents =
      reader->Read(layout, distro::worker::kSignMomentum);
  if (!contents.ok()) {
    const bool known = contents.status().code() == absl::StatusCode::kDataLoss ||
                       contents.status().code() == absl::StatusCode::kFailedPrecondition;
    if (!known) std::abort();
    return;
  }
  Restore(layout, contents->elements[0], contents->pending);
}

// The parts behind any header, with checksums that are right: positions may be anything.
void TryParts(const Layout& layout, absl::string_view data) {
  const uint32_t k = data.empty() ? 1 : 1 + static_cast<uint8_t>(data[0]) % 4;
  const std::vector<uint64_t> sizes =
      distro::worker::PartSizes(layout, distro::worker::kSignMomentum, k);
  std::string body(data), checksums;
  uint64_t total = 0;
  for (const uint64_t size : sizes) total += size;
  body.resize(total);
  uint64_t offset = 0;
  for (const uint64_t size : sizes) {
    distro::AppendLittleEndian(&checksums,
                               distro::Xxh3(absl::string_view(body).substr(offset, size)));
    offset += size;
  }
  distro::AppendLittleEndian(&checksums, distro::Xxh3(checksums));
  body += checksums;
  if (!distro::worker::CheckParts(body, sizes).ok()) std::abort();
  absl::string_view rest = body;
  const auto elements = distro::worker::TakeElements(layout, distro::worker::kSignMomentum, &rest);
  distro::worker::PendingUpdate pending{
      .round = distro::RoundId(1), .k = static_cast<int>(k), .segments = {}};
  if (!distro::worker::TakePending(rest, layout, distro::worker::kSignMomentum, &pending).ok())
    return;
  Restore(layout, elements[0], pending);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Layout layout = *Layout::Create(*Manifest::Create({{"a", {3, 2}}, {"b", {5}}}), 1);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Try(layout, bytes);
  MendHeader(&bytes);
  Try(layout, bytes);
  TryParts(layout, bytes);
  return 0;
}
