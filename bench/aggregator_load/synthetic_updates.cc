#include "bench/aggregator_load/synthetic_updates.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/wire/plain_votes.h"
#include "bench/wire/random_deltas.h"
#include "bench/wire/random_updates.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/step.h"
#include "common/method/signs/payload.h"

namespace distro::bench {
namespace {

// Offsets in a payload (docs/payload_format.md, "Grammar"); all numbers are little-endian.
constexpr size_t kRoundOffset = 16;
constexpr size_t kSegmentOffset = 24;
constexpr size_t kChecksumBytes = 8;

// Offset, in blocks, between the updates of a recorded worker and of the further worker that reuses
// them; prime, so that few coincide.
constexpr int64_t kOtherBlocks = 37;

SignUpdate Repeat(absl::Span<const SignUpdate> recorded, int64_t blocks, int worker) {
  const auto count = static_cast<int>(recorded.size());
  const SignUpdate& source = recorded[worker % count];
  const int k = source.k;
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t from = (block + worker / count * kOtherBlocks) % source.blocks() * k;
    update.positions.insert(update.positions.end(), source.positions.begin() + from,
                            source.positions.begin() + from + k);
    update.signs.insert(update.signs.end(), source.signs.begin() + from,
                        source.signs.begin() + from + k);
  }
  return update;
}

absl::StatusOr<SignUpdate> ReadUpdate(const std::string& path, int k) {
  DISTRO_ASSIGN_OR_RETURN(const std::string plain, ReadFile(path));
  absl::StatusOr<Votes> votes = ParsePlain(plain);
  if (!votes.ok()) return Annotate(votes.status(), path);
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (int64_t block = 0; block < votes->blocks(); ++block) {
    const uint32_t begin = votes->offsets[block];
    const uint32_t count = votes->offsets[block + 1] - begin;
    if (count != 0 && count != static_cast<uint32_t>(k)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": block ", block, " has ", count, " votes, the run's K is ", k));
    }
    for (uint32_t i = 0; i < static_cast<uint32_t>(k); ++i) {
      update.positions.push_back(count == 0 ? uint16_t{0} : votes->positions[begin + i]);
      update.signs.push_back(count == 0 ? int8_t{0}
                                        : static_cast<int8_t>(votes->values[begin + i]));
    }
  }
  return update;
}

}  // namespace

absl::StatusOr<std::vector<SignUpdate>> ReadRecordedUpdates(const std::string& folder, int k) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  std::vector<SignUpdate> updates;
  for (const std::string& path : paths) {
    DISTRO_ASSIGN_OR_RETURN(updates.emplace_back(), ReadUpdate(path, k));
    if (updates.back().blocks() == 0 || updates.back().blocks() != updates.front().blocks())
      return absl::InvalidArgumentError(absl::StrCat(path, ": of another model than the others"));
  }
  if (updates.empty()) return absl::InvalidArgumentError(absl::StrCat(folder, ": no updates"));
  return updates;
}

UpdateMaker SignUpdates(const Layout* layout, int k, absl::Span<const SignUpdate> recorded) {
  return [=](SegmentId segment, int worker) {
    const int64_t blocks = layout->SegmentBlocks(segment);
    return EncodeSignUpdate(
        IdentifyPayload(*layout, RoundId(0), segment),
        recorded.empty() ? RandomUpdate(k, blocks, worker) : Repeat(recorded, blocks, worker));
  };
}

UpdateMaker DeltaUpdates(const Layout* layout, int k, uint8_t cap) {
  return [=](SegmentId segment, int worker) {
    DeltaUpdate update = RandomDelta(k, layout->SegmentBlocks(segment), worker);
    for (uint8_t& code : update.codes) code = std::min(code, cap);
    return EncodeDeltaUpdate(IdentifyPayload(*layout, RoundId(0), segment), update);
  };
}

uint8_t LeastCap(const v1::RunConfig& config) {
  uint8_t least = kScaleCodes - 1;
  for (RoundId round(0); round.value() < config.rounds(); round = round.Next())
    least = std::min(least, DeltaCap(LocalRates(config, round), /*median=*/uint8_t{0}));
  return least;
}

SyntheticUpdates::SyntheticUpdates(const Layout* layout, int first, int workers,
                                   const UpdateMaker& make)
    : layout_(layout) {
  const auto segments = static_cast<int>(layout->segments());
  for (int i = 0; i < workers + segments; ++i) full_.push_back(make(SegmentId(0), first + i));
  for (int i = 0; i < workers; ++i) last_.push_back(make(SegmentId(segments - 1), first + i));
}

std::string SyntheticUpdates::Payload(int worker, RoundId round, SegmentId segment) const {
  const bool last = segment.value() + 1 == layout_->segments();
  std::string payload = last ? last_[worker] : full_[worker + segment.value()];
  const uint64_t round_number = round.value();
  const uint32_t segment_number = segment.value();
  std::memcpy(payload.data() + kRoundOffset, &round_number, sizeof(round_number));
  std::memcpy(payload.data() + kSegmentOffset, &segment_number, sizeof(segment_number));
  const size_t checked = payload.size() - kChecksumBytes;
  const uint64_t checksum = Xxh3(absl::string_view(payload).substr(0, checked));
  std::memcpy(payload.data() + checked, &checksum, sizeof(checksum));
  return payload;
}

}  // namespace distro::bench
