#include "common/method/signs/update_reader.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/record_codec.h"

namespace distro {
namespace {

// Entries in the buffer: 6 KB a worker.
constexpr int kBufferedEntries = 2048;

absl::Status CheckWeights(absl::Span<const WeightedSignPayload> payloads, int k) {
  int64_t sum = 0;
  for (const WeightedSignPayload& payload : payloads) {
    if (payload.weight < 0)
      return absl::InvalidArgumentError(absl::StrCat("weight ", payload.weight, " is negative"));
    sum += payload.weight;
  }
  if (sum * k > kMaxVotesPerBlock) {
    return absl::InvalidArgumentError(absl::StrCat("k ", k, " times the sum of weights ", sum,
                                                   " is ", sum * k, ", at most ",
                                                   kMaxVotesPerBlock));
  }
  return absl::OkStatus();
}

}  // namespace

SignUpdateReader::SignUpdateReader(const PayloadView& payload)
    : k_(payload.header.k),
      blocks_(payload.header.blocks),
      batch_(std::clamp<uint32_t>(blocks_, 1, std::max(1, kBufferedEntries / k_))),
      body_(payload.body),
      positions_(size_t{batch_} * k_),
      signs_(size_t{batch_} * k_) {}

absl::StatusOr<SignUpdateReader> SignUpdateReader::Create(absl::string_view payload,
                                                          const PayloadExpectation& expected) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView view, OpenSignUpdate(payload, expected));
  SignUpdateReader reader(view);
  if (view.header.kind == PayloadKind::kSignGaps) {
    DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const GapBody<VoteFormat>> body,
                            GapBody<VoteFormat>::Open(view.body, view.header.blocks));
    reader.gaps_ = std::make_unique<GapDecoder<VoteFormat>>(std::move(body), 0);
  }
  return reader;
}

void SignUpdateReader::SkipTo(uint32_t block) {
  assert(gaps_ == nullptr && next_block() <= block && block <= blocks_);
  // Records have a fixed size, so none has to be read.
  next_ = block;
  buffered_ = used_ = 0;
}

absl::Status SignUpdateReader::Fill() {
  const uint32_t count = std::min(batch_, blocks_ - next_);
  DISTRO_RETURN_IF_ERROR(
      gaps_ ? FillFromGaps(count)
            : DecodeRecords(body_, k_, next_, count, positions_.data(), signs_.data()));
  next_ += count;
  buffered_ = count;
  used_ = 0;
  return absl::OkStatus();
}

absl::Status SignUpdateReader::FillFromGaps(uint32_t count) {
  GapBlock<VoteFormat> block;
  for (uint32_t i = 0; i < count; ++i) {
    DISTRO_RETURN_IF_ERROR(gaps_->NextBlock(&block));
    uint16_t* const positions = positions_.data() + size_t{i} * k_;
    int8_t* const signs = signs_.data() + size_t{i} * k_;
    if (block.count == 0) {
      std::fill_n(positions, k_, 0);
      std::fill_n(signs, k_, 0);
      continue;
    }
    if (block.count != static_cast<uint32_t>(k_)) {
      return absl::InvalidArgumentError(absl::StrCat("block ", next_ + i, ": ", block.count,
                                                     " entries, an update has 0 or ", k_));
    }
    std::copy_n(block.positions.data(), k_, positions);
    for (int j = 0; j < k_; ++j) {
      if (block.values[j] != 1 && block.values[j] != -1) {
        return absl::InvalidArgumentError(absl::StrCat("block ", next_ + i, ": value ",
                                                       block.values[j], ", an update has 1 or -1"));
      }
      signs[j] = static_cast<int8_t>(block.values[j]);
    }
  }
  return next_ + count == blocks_ ? gaps_->body().CheckModel(gaps_->model()) : absl::OkStatus();
}

absl::StatusOr<Votes> CombineSignPayloads(absl::Span<const WeightedSignPayload> payloads,
                                          const PayloadExpectation& expected) {
  return CombineSignPayloads(payloads, expected, {.first = 0, .count = expected.blocks});
}

absl::StatusOr<Votes> CombineSignPayloads(absl::Span<const WeightedSignPayload> payloads,
                                          const PayloadExpectation& expected, SegmentRange range) {
  DISTRO_RETURN_IF_ERROR(CheckWeights(payloads, expected.k));
  std::vector<SignUpdateReader> readers;
  for (size_t i = 0; i < payloads.size(); ++i) {
    absl::StatusOr<SignUpdateReader> reader = SignUpdateReader::Create(payloads[i].bytes, expected);
    if (!reader.ok()) return Annotate(reader.status(), absl::StrCat("payload ", i));
    readers.push_back(*std::move(reader));
    if (range.first > 0) readers.back().SkipTo(range.first);
  }
  Votes votes;
  const size_t most = std::min<size_t>(payloads.size() * expected.k, kBlockElements) * range.count;
  votes.offsets.reserve(size_t{range.count} + 1);
  votes.positions.reserve(most);
  votes.values.reserve(most);
  VoteAccumulator accumulator;
  absl::Span<const uint16_t> positions;
  absl::Span<const int8_t> signs;
  for (uint32_t block = 0; block < range.count; ++block) {
    for (size_t i = 0; i < readers.size(); ++i) {
      absl::Status status = readers[i].NextBlock(&positions, &signs);
      if (!status.ok()) return Annotate(status, absl::StrCat("payload ", i));
      accumulator.Add(positions, signs, payloads[i].weight);
    }
    accumulator.EmitBlock(&votes);
  }
  return votes;
}

}  // namespace distro
