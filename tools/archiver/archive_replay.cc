#include "tools/archiver/archive_replay.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checksum.h"
#include "common/base/epoch.h"
#include "common/base/status_macros.h"
#include "common/client/follow/head_watch.h"
#include "common/client/follow/round_feed.h"
#include "common/run/record/log_reference.h"
#include "tools/archiver/archive_log.h"
#include "tools/archiver/published_folders.h"

namespace distro::tools {
namespace {

// Replaying a round overlaps with receiving the next; more rounds would only cost memory.
constexpr size_t kRoundsAhead = 2;
constexpr size_t kReportsWaiting = 64;  // as many rounds as the aggregator compares

}  // namespace

ArchiveReplay::ArchiveReplay(v1::GetRunResponse run, Archive archive, Context context)
    : run_(std::move(run)),
      context_(context),
      parameter_bytes_(4 * static_cast<uint64_t>(archive.layout->elements())),
      archive_(std::move(archive)),
      reconnects_(Reconnects()),
      next_round_(archive_.replica->next_round().value()),
      rounds_(run_.config().rounds()),
      reports_(kReportsWaiting, [this](const v1::ReportStateRequest& r) { SendReport(r); }),
      uploader_(&run_,
                {.client = context_.client, .metrics = context_.metrics, .log = context_.log}),
      publisher_(&run_, {.options = &context_.options->publish,
                         .state = client_state(),
                         .metrics = context_.metrics,
                         .log = context_.log,
                         .clock = context_.clock,
                         .command = context_.publish_command}) {
  context_.metrics->round->Set(static_cast<double>(next_round_));
  context_.metrics->snapshot_round->Set(static_cast<double>(archive_.state.snapshot.round()));
}

absl::Status ArchiveReplay::Run() {
  const Follower& follower = context_.client->follower();
  EventQueue queue(kRoundsAhead, UINT64_MAX);
  const RoundFeed feed(follower, context_.client->rounds(), archive_.layout.get(),
                       {.run_id = run_.run_id(),
                        .next_round = archive_.replica->next_round(),
                        .log_hash = archive_.replica->log_hash(),
                        .rounds = RoundId(rounds_),
                        .mirrors = context_.mirrors},
                       &queue);
  const HeadWatch watch(follower, context_.client->control(), context_.options->poll_interval,
                        [this](const v1::GetRunResponse& run) { ObserveHead(run); });
  context_.metrics->ready = true;
  // Publishes a folder that an earlier process did not finish.
  const ArchiveState& state = archive_.state;
  const RoundId round(state.snapshot.round());
  const bool ended = round > RoundId(0) && state.published_round == round.value();
  if (ended && !IsPublished(context_.options->publish, round)) Publish();
  // At the end of a run no record confirms the last parameters, so the round before was offered.
  upload_due_ = state.published_round > uploader_.stored_round() + 1;
  QueueReport();
  const absl::Status status = ReplayRounds(&queue);
  archive_.state.epoch = Epoch();
  if (!status.ok() && !stopped()) return status;
  return Finished() && !stopped() ? Finish() : Save();
}

uint64_t ArchiveReplay::Epoch() const {
  const EpochId seen = KeptEpoch(client_state()->view().epoch, context_.clock->WallNow());
  return std::max(archive_.state.epoch, seen.value());
}

uint64_t ArchiveReplay::End() const {
  return context_.options->once ? run_.round() : rounds_.load();
}

// Saves the final copy only after the uploads: an interrupted upload resumes from the copy before
// it, even in the next process.
absl::Status ArchiveReplay::Finish() {
  if (archive_.state.published_round != next_round_) Publish();
  reports_.AwaitIdle();
  uploader_.AwaitIdle();
  publisher_.AwaitIdle();
  if (stopped()) return absl::OkStatus();
  const absl::Status published = publisher_.LastStatus();
  archive_.state.published_round = published.ok() ? next_round_.load() : 0;  // 0: publish it again
  archive_.state.result_bytes = 0;
  DISTRO_RETURN_IF_ERROR(Save());
  return published;
}

absl::Status ArchiveReplay::ReplayRounds(EventQueue* queue) {
  while (!Finished()) {
    absl::StatusOr<RoundEvent> event = absl::UnknownError("");
    {
      const ArchiverPhaseScope phase(context_.metrics, context_.clock, ArchiverPhase::kWait);
      event = queue->Pop();
    }
    DISTRO_RETURN_IF_ERROR(event.status());
    if (stopped()) return client_state()->end_status();
    const CommittedRound& round = std::get<CommittedRound>(*event);
    rounds_ = std::max(rounds_.load(), round.header->extension().rounds());
    OfferSnapshot(round);
    DISTRO_RETURN_IF_ERROR(Apply(round));
    archive_.state.epoch = Epoch();
    if (!Finished() && IntervalEnds()) EndInterval();
    WriteLine(round);
  }
  return absl::OkStatus();
}

absl::Status ArchiveReplay::Apply(const CommittedRound& round) {
  Replica* const replica = archive_.replica.get();
  CompareHashes(round);
  {
    const ArchiverPhaseScope phase(context_.metrics, context_.clock, ArchiverPhase::kApply);
    DISTRO_RETURN_IF_ERROR(replica->Apply(round));
  }
  AddHeader(round, &archive_.log);
  ++replayed_;
  const uint64_t bytes = ResultBytes(*round.header);
  archive_.state.result_bytes += bytes;
  next_round_ = replica->next_round().value();
  context_.metrics->replayed_rounds->Increment();
  context_.metrics->received_bytes->Increment(static_cast<double>(bytes));
  context_.metrics->round->Set(static_cast<double>(next_round_));
  context_.log->Debug("round replayed", {{"round", round.round().value()},
                                         {"bytes", bytes},
                                         {"state_hash", ToHex(replica->StateHash())}});
  QueueReport();
  return absl::OkStatus();
}

void ArchiveReplay::WriteLine(const CommittedRound& round) {
  if (context_.lines == nullptr) return;
  const uint64_t head = client_state()->view().head.value();
  RoundReading reading{.run_id = run_.run_id(),
                       .rounds = rounds_,
                       .lag_rounds = head - std::min<uint64_t>(head, next_round_),
                       .state_hash = archive_.replica->StateHash()};
  for (int i = 0; i < kArchiverPhases; ++i)
    reading.seconds[i] = context_.metrics->phases[i]->value();
  context_.lines->Add(*round.header, std::move(reading));
}

void ArchiveReplay::CompareHashes(const CommittedRound& round) {
  const Replica& replica = *archive_.replica;
  if (round.round() != replica.next_round()) return;  // Apply will say what is wrong
  std::vector<std::string> others;
  for (const v1::Member& member : round.header->members()) {
    if (member.has_state_hash() && member.state_hash() != replica.StateHash()) {
      others.push_back(member.name());
    }
  }
  if (others.empty()) return;
  context_.metrics->state_hash_mismatches->Increment(static_cast<double>(others.size()));
  context_.log->Error("workers report other state hashes than this replica's",
                      {{"round", round.round().value()},
                       {"state_hash", ToHex(replica.StateHash())},
                       {"workers", absl::StrJoin(others, " ")}});
}

v1::ReportStateRequest ArchiveReplay::StateNow() const {
  const Replica& replica = *archive_.replica;
  v1::ReportStateRequest request;
  request.set_run_id(run_.run_id());
  request.set_round(replica.next_round().value());
  request.set_log_hash(replica.log_hash());
  request.mutable_tensor_hashes()->Add(replica.tensor_hashes().begin(),
                                       replica.tensor_hashes().end());
  return request;
}

void ArchiveReplay::QueueReport() { reports_.Add(StateNow()); }

void ArchiveReplay::SendReport(const v1::ReportStateRequest& request) {
  const absl::Status status = context_.client->ReportState(request);
  if (status.ok() || stopped()) return;
  context_.log->Warning("the aggregator refused the report of the state hash",
                        {{"round", request.round()}, {"status", status}});
}

bool ArchiveReplay::IntervalEnds() const {
  const uint64_t round = archive_.replica->next_round().value();
  const uint64_t interval = context_.options->snapshot_interval_rounds;
  if (interval > 0) return round % interval == 0;
  return archive_.state.result_bytes >= parameter_bytes_;
}

void ArchiveReplay::EndInterval() {
  const uint64_t round = archive_.replica->next_round().value();
  ArchiveState before = archive_.state;
  archive_.state.published_round = round;
  archive_.state.result_bytes = 0;
  if (const absl::Status status = Save(); !status.ok()) {
    archive_.state = std::move(before);
    archive_.state.result_bytes = 0;  // the next try is an interval later
    return;
  }
  Publish();
  upload_due_ = true;
}

void ArchiveReplay::LearnFingerprint() {
  if (!archive_.log.data_fingerprint().empty()) return;
  const absl::StatusOr<v1::GetRunResponse> run =
      GetRun(context_.client->follower(), context_.client->control());
  if (run.ok()) archive_.log.set_data_fingerprint(run->data_fingerprint());
}

absl::Status ArchiveReplay::Save() {
  const ArchiverPhaseScope phase(context_.metrics, context_.clock, ArchiverPhase::kSave);
  LearnFingerprint();
  const bool there = archive_.state.snapshot.round() == archive_.replica->next_round().value();
  const absl::Status status =
      there ? context_.folder->SaveState(archive_.state, archive_.log)
            : context_.folder->Save(*archive_.replica, archive_.log, &archive_.state);
  if (!status.ok()) {
    context_.metrics->failures_save->Increment();
    context_.log->Error("own copy not saved", {{"round", next_round_.load()}, {"status", status}});
    return status;
  }
  if (there) return absl::OkStatus();
  const uint64_t round = archive_.state.snapshot.round();
  context_.metrics->snapshot_round->Set(static_cast<double>(round));
  context_.log->Info("own copy saved",
                     {{"round", round},
                      {"bytes", archive_.state.snapshot.size_bytes()},
                      {"state_hash", ToHex(archive_.state.snapshot.state_hash())}});
  return absl::OkStatus();
}

void ArchiveReplay::Publish() { publisher_.Publish(*archive_.replica, archive_.companions); }

// The aggregator accepts parameters only if the round's record confirms their hash
// (docs/protocol.md, "Snapshots").
void ArchiveReplay::OfferSnapshot(const CommittedRound& committed) {
  const Replica& replica = *archive_.replica;
  const uint64_t round = committed.round().value();
  const bool wanted = upload_due_ || round + 1 == End();
  if (committed.round() != replica.next_round()) return;  // Apply will say what is wrong
  if (!context_.options->upload_snapshots || !wanted || round <= uploader_.stored_round()) return;
  const std::optional<LogReference> reference = ReferenceOf(*committed.header);
  if (!reference || reference->state_hash != replica.StateHash()) {
    if (!std::exchange(upload_waits_, true)) {
      context_.log->Warning(
          "snapshot not uploaded: the record does not confirm its state hash; a later one may",
          {{"round", round},
           {"state_hash", ToHex(replica.StateHash())},
           {"reference", reference ? ToHex(reference->state_hash) : "none"}});
    }
    return;
  }
  if (archive_.state.snapshot.round() != round && !Save().ok()) return;
  upload_due_ = false;
  upload_waits_ = false;
  const v1::SnapshotInfo& snapshot = archive_.state.snapshot;
  uploader_.Add(snapshot, context_.folder->SnapshotPath(snapshot.round()));
}

uint64_t ArchiveReplay::Reconnects() const {
  return context_.client->follower().meter->stats(context_.clock->MonotonicNow()).reconnects;
}

void ArchiveReplay::ObserveHead(const v1::GetRunResponse& run) {
  if (run.run_id() != run_.run_id()) return;
  context_.metrics->Answered();
  client_state()->ObserveHead(EpochId(run.epoch()), RoundId(run.round()));
  ReopenIfSilent(context_.client->follower(), context_.options->patience);
  const uint64_t next = next_round_;
  const uint64_t lag = run.round() > next ? run.round() - next : 0;
  const LagJudgement judgement = trend_.Add(context_.clock->MonotonicNow(), lag);
  context_.metrics->lag_rounds->Set(static_cast<double>(lag));
  context_.metrics->falls_behind = judgement.pace == Pace::kFallsBehind;
  const uint64_t reconnects = Reconnects();
  context_.metrics->reconnects->Increment(static_cast<double>(reconnects - reconnects_));
  reconnects_ = reconnects;
  if (judgement.pace == pace_) return;
  if (judgement.pace == Pace::kFallsBehind) {
    context_.log->Warning("falls behind the run: give it more --threads, or a faster link or disk",
                          {{"round", next}, {"reason", judgement.reason}});
  } else {
    context_.log->Info(
        judgement.pace == Pace::kKeepsUp ? "keeps up with the run" : "catches up with the run",
        {{"round", next}, {"reason", judgement.reason}});
  }
  pace_ = judgement.pace;
}

}  // namespace distro::tools
