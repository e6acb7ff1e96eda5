#include "common/method/signs/payload.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/method/signs/gap_format.h"
#include "common/method/signs/record_codec.h"
#include "common/method/signs/update_reader.h"

namespace distro {
namespace {

Votes VotesOfUpdate(const SignUpdate& update) {
  Votes votes;
  for (int64_t block = 0; block < update.blocks(); ++block) {
    const int64_t begin = block * update.k;
    if (update.signs[begin] != 0) {
      votes.positions.insert(votes.positions.end(), update.positions.begin() + begin,
                             update.positions.begin() + begin + update.k);
      votes.values.insert(votes.values.end(), update.signs.begin() + begin,
                          update.signs.begin() + begin + update.k);
    }
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  return votes;
}

}  // namespace

std::string EncodeSignUpdate(const PayloadIdentity& identity, const SignUpdate& update) {
  assert(1 <= update.k && update.k <= kBlockElements &&
         update.positions.size() == update.signs.size());
  const bool records = update.k <= kMaxRecordK;
  std::string bytes =
      StartPayload(identity, records ? PayloadKind::kSignRecords : PayloadKind::kSignGaps, update.k,
                   update.blocks());
  if (records) {
    EncodeRecords(update, &bytes);
  } else {
    EncodeVoteGaps(VotesOfUpdate(update), &bytes);
  }
  return FinishPayload(std::move(bytes));
}

absl::Status ValidateSignUpdate(absl::string_view bytes, const PayloadExpectation& expected) {
  if (expected.k <= kMaxRecordK) {
    DISTRO_ASSIGN_OR_RETURN(const PayloadView payload, OpenSignUpdate(bytes, expected));
    return ValidateRecords(payload.body, expected.k, expected.blocks);
  }
  DISTRO_ASSIGN_OR_RETURN(SignUpdateReader reader, SignUpdateReader::Create(bytes, expected));
  absl::Span<const uint16_t> positions;
  absl::Span<const int8_t> signs;
  for (uint32_t block = 0; block < reader.blocks(); ++block) {
    DISTRO_RETURN_IF_ERROR(reader.NextBlock(&positions, &signs));
  }
  return absl::OkStatus();
}

std::string EncodeVotes(const PayloadIdentity& identity, const Votes& votes) {
  std::string bytes = StartPayload(identity, PayloadKind::kVotes, 0, votes.blocks());
  EncodeVoteGaps(votes, &bytes);
  return FinishPayload(std::move(bytes));
}

absl::StatusOr<Votes> DecodeVotes(absl::string_view bytes, const PayloadExpectation& expected,
                                  int threads) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView payload, OpenVotes(bytes, expected));
  return DecodeVoteGaps(payload.body, expected.blocks, threads);
}

absl::StatusOr<PayloadView> OpenSignUpdate(absl::string_view bytes,
                                           const PayloadExpectation& expected) {
  DISTRO_RETURN_IF_ERROR(CheckExpectedK(expected.k));
  const bool records = expected.k <= kMaxRecordK;
  DISTRO_ASSIGN_OR_RETURN(
      const PayloadView payload,
      OpenPayload(bytes, expected, records ? PayloadKind::kSignRecords : PayloadKind::kSignGaps,
                  expected.k, MaxSignUpdateBytes(expected.blocks, expected.k)));
  if (records) DISTRO_RETURN_IF_ERROR(CheckRecordBody(payload.body, expected.blocks, expected.k));
  return payload;
}

absl::StatusOr<PayloadView> OpenVotes(absl::string_view bytes, const PayloadExpectation& expected) {
  return OpenPayload(bytes, expected, PayloadKind::kVotes, 0, MaxVotesBytes(expected.blocks));
}

uint64_t SignRecordUpdateBytes(uint64_t blocks, int k) {
  return kPayloadFramingBytes + RecordBodyBytes(blocks, k);
}

uint64_t MaxSignUpdateBytes(uint64_t blocks, int k) {
  if (k <= kMaxRecordK) return SignRecordUpdateBytes(blocks, k);
  return kPayloadFramingBytes + MaxVoteBodyBytes(blocks, k, 0);
}

uint64_t MaxVotesBytes(uint64_t blocks, int max_sum) {
  return kPayloadFramingBytes +
         MaxVoteBodyBytes(blocks, std::min(max_sum, kBlockElements), max_sum);
}

}  // namespace distro
