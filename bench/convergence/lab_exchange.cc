#include "bench/convergence/lab_exchange.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/convergence/hostile_worker.h"
#include "bench/wire/plain_votes.h"
#include "common/base/file.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/method/signs/payload.h"
#include "common/method/signs/update_reader.h"

namespace distro::worker {
namespace {

uint64_t Bytes(const std::vector<SharedBytes>& payloads) {
  uint64_t bytes = 0;
  for (const SharedBytes& payload : payloads) bytes += payload->size();
  return bytes;
}

// The record as if every segment had included `worker`.
void Include(const std::string& worker, uint64_t incarnation, v1::RoundHeader* header) {
  for (int i = 0; i < header->members_size(); ++i) {
    if (header->members(i).name() != worker) continue;
    header->mutable_members(i)->set_incarnation(incarnation);
    for (v1::CommittedSegment& segment : *header->mutable_segments()) {
      char& bits = (*segment.mutable_included())[i / 8];
      bits = static_cast<char>(bits | 1 << i % 8);
    }
  }
}

absl::StatusOr<Votes> Decode(const Layout& layout, RoundId round, SegmentId segment,
                             const std::string& payload) {
  return DecodeVotes(payload, ExpectPayload(layout, round, segment));
}

// The payload was encoded here, so it decodes.
SignUpdate OwnUpdate(const std::string& payload, const PayloadExpectation& expected) {
  SignUpdate update = {.k = expected.k, .positions = {}, .signs = {}};
  SignUpdateReader reader = SignUpdateReader::Create(payload, expected).value();
  absl::Span<const uint16_t> positions;
  absl::Span<const int8_t> signs;
  while (reader.next_block() < reader.blocks() && reader.NextBlock(&positions, &signs).ok()) {
    update.positions.insert(update.positions.end(), positions.begin(), positions.end());
    update.signs.insert(update.signs.end(), signs.begin(), signs.end());
  }
  return update;
}

absl::StatusOr<SharedBytes> Signs(const Layout& layout, RoundId round, SegmentId segment,
                                  const std::string& payload) {
  DISTRO_ASSIGN_OR_RETURN(Votes votes, Decode(layout, round, segment, payload));
  for (int16_t& value : votes.values) value = value > 0 ? 1 : -1;
  return std::make_shared<const std::string>(
      EncodeVotes(IdentifyPayload(layout, round, segment), votes));
}

}  // namespace

absl::StatusOr<v1::JoinResponse> LabExchange::Join(const v1::JoinRequest& request) {
  worker_ = request.worker().name();
  incarnation_ = request.worker().incarnation();
  DISTRO_ASSIGN_OR_RETURN(v1::JoinResponse response, exchange_->Join(request));
  kept_ = static_cast<int>(response.config().kept_per_block());
  if (!link_.evaluates) {
    response.mutable_config()->set_evaluation_interval_rounds(0);
    response.mutable_config()->set_evaluation_samples(1);
  }
  return response;
}

absl::Status LabExchange::DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                           const std::string& path) {
  return exchange_->DownloadSnapshot(snapshot, path);
}

absl::Status LabExchange::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  layout_ = layout;
  return exchange_->Follow(layout, next_round, log_hash);
}

absl::StatusOr<RoundEvent> LabExchange::Next() {
  absl::SleepFor(arrival_ - absl::Now());
  DISTRO_ASSIGN_OR_RETURN(RoundEvent event, exchange_->Next());
  if (auto* const round = std::get_if<CommittedRound>(&event)) {
    DISTRO_RETURN_IF_ERROR(Vary(round));
    if (round->round() == RoundId(link_.record_round)) {
      if (!link_.record_votes.empty()) DISTRO_RETURN_IF_ERROR(RecordVotes(*round));
      if (!link_.record_updates.empty()) DISTRO_RETURN_IF_ERROR(RecordUpdate(round->round()));
    }
    received_bytes_ += Bytes(round->payloads);
  }
  return event;
}

bool LabExchange::Ready() { return absl::Now() >= arrival_ && exchange_->Ready(); }

void LabExchange::Upload(RoundUpdate update) {
  arrival_ = absl::Now() + link_.delay;
  if (Misses(update.round)) {
    update.abstain = true;
    update.payloads.clear();
  }
  if (!link_.attack.empty()) Attack(&update);
  sent_bytes_ += Bytes(update.payloads);
  if (update.round == RoundId(link_.record_round)) to_record_ = update.payloads;
  exchange_->Upload(std::move(update));
}

void LabExchange::Report(RoundId next_round, uint64_t log_hash) {
  exchange_->Report(next_round, log_hash);
}

bool LabExchange::Misses(RoundId round) const {
  if (round.value() < link_.first_round) return true;
  const uint64_t bits = SplitMix64(Mix(link_.seed) + incarnation_, round.value());
  return static_cast<double>(bits >> 11) * 0x1p-53 < link_.miss;
}

void LabExchange::Attack(RoundUpdate* update) const {
  for (uint32_t s = 0; s < update->payloads.size(); ++s) {
    SharedBytes& payload = update->payloads[s];
    SignUpdate sent =
        OwnUpdate(*payload, ExpectPayload(*layout_, update->round, SegmentId(s), kept_));
    const uint64_t seed = Mix(link_.seed) + (update->round.value() << 32) + s;
    AttackSigns(link_.attack, seed, absl::MakeSpan(sent.signs));
    payload = std::make_shared<const std::string>(
        EncodeSignUpdate(IdentifyPayload(*layout_, update->round, SegmentId(s)), sent));
  }
}

absl::Status LabExchange::Vary(CommittedRound* round) const {
  if (link_.feedback_of_missed) {
    v1::RoundHeader header = *round->header;
    Include(worker_, incarnation_, &header);
    round->header = std::make_shared<const v1::RoundHeader>(std::move(header));
  }
  if (!link_.one_vote) return absl::OkStatus();
  for (uint32_t i = 0; i < round->payloads.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(round->payloads[i],
                            Signs(*layout_, round->round(), SegmentId(i), *round->payloads[i]));
  }
  return absl::OkStatus();
}

absl::Status LabExchange::RecordVotes(const CommittedRound& round) const {
  std::string plain;
  for (uint32_t i = 0; i < round.payloads.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(const Votes votes,
                            Decode(*layout_, round.round(), SegmentId(i), *round.payloads[i]));
    AppendPlain(votes, &plain);
  }
  return WriteFileAtomically(link_.record_votes, plain);
}

absl::Status LabExchange::RecordUpdate(RoundId round) const {
  std::string plain;
  for (uint32_t i = 0; i < to_record_.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(
        const Votes votes,
        CombineSignPayloads({{.bytes = *to_record_[i], .weight = 1}},
                            ExpectPayload(*layout_, round, SegmentId(i), kept_)));
    AppendPlain(votes, &plain);
  }
  return WriteFileAtomically(absl::StrCat(link_.record_updates, "/", worker_), plain);
}

}  // namespace distro::worker
