#include "common/simulation/local_aggregator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/run/local_data.h"
#include "common/run/pinned_tokenizer.h"
#include "common/run/run_config.h"

namespace distro {
namespace {

constexpr uint64_t kEpoch = 1;

std::string RunId(const LocalRun& run) { return run.config.name() + "-local"; }

absl::string_view AsBytes(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool SameBytes(const RoundUpdate& a, const RoundUpdate& b) {
  const auto bytes = [](const SharedBytes& payload) -> const std::string& { return *payload; };
  return a.abstain == b.abstain && a.local_steps == b.local_steps &&
         std::ranges::equal(a.payloads, b.payloads, {}, bytes, bytes);
}

}  // namespace

LocalAggregator::LocalAggregator(LocalRun run)
    : run_(std::move(run)), weighing_(WeighingOf(run_.config)) {}

absl::StatusOr<v1::JoinResponse> LocalAggregator::Join(const v1::JoinRequest& request,
                                                       std::shared_ptr<EventQueue> queue) {
  DISTRO_RETURN_IF_ERROR(ValidateName(request.worker().name(), "worker"));
  absl::MutexLock lock(&mu_);
  DISTRO_RETURN_IF_ERROR(CheckJoin(request));
  if (started_) {
    DISTRO_RETURN_IF_ERROR(JoinAgain(request, std::move(queue)));
    return MakeResponse();
  }
  if (!members_.Add(request.worker().name(), {.incarnation = request.worker().incarnation(),
                                              .own_tokens = request.own_tokens(),
                                              .queue = std::move(queue)})) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker ", request.worker().name(), " has joined already"));
  }
  const v1::JoinResponse response = MakeResponse();
  if (members_.size() == run_.config.start_workers()) Start();
  return response;
}

absl::Status LocalAggregator::CheckJoin(const v1::JoinRequest& request) {
  const std::string run_id = RunId(run_);
  if (!request.run_id().empty() && request.run_id() != run_id) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                           absl::StrCat("this is run ", run_id, ", not ", request.run_id()));
  }
  DISTRO_RETURN_IF_ERROR(CheckOwnTokens(run_.config, request.own_tokens()));
  DISTRO_RETURN_IF_ERROR(CheckTokenizer(run_.config, request.tokenizer()));
  if (run_.config.data_fingerprint() == kAnyData) return absl::OkStatus();
  if (run_.config.has_data_fingerprint())
    data_fingerprint_ = run_.config.data_fingerprint();
  else if (members_.size() == 0)
    data_fingerprint_ = request.data_fingerprint();
  if (request.data_fingerprint() == data_fingerprint_) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_data",
      absl::StrCat("worker ", request.worker().name(), ": data ", request.data_fingerprint(),
                   " are not the run's, ", data_fingerprint_));
}

absl::Status LocalAggregator::JoinAgain(const v1::JoinRequest& request,
                                        std::shared_ptr<EventQueue> queue) {
  LocalMember* const member = members_.Find(request.worker().name());
  if (!run_.keeps_log || member == nullptr || member->left)
    return absl::FailedPreconditionError("the local run has begun: nobody may join now");
  for (const CommittedRound& round : log_) queue->Push(round);
  if (round_.value() < run_.config.rounds()) {
    queue->Push(Opened());
  } else {
    queue->Close(Done(), /*drop=*/false);
  }
  member->incarnation = request.worker().incarnation();
  member->queue = std::move(queue);
  return absl::OkStatus();
}

v1::JoinResponse LocalAggregator::MakeResponse() const {
  v1::JoinResponse response;
  response.set_run_id(RunId(run_));
  *response.mutable_config() = run_.config;
  response.set_model_config_json(run_.model_config_json);
  response.set_manifest_hash(std::string(AsBytes(run_.layout->manifest().hash())));
  response.set_epoch(kEpoch);
  response.set_head_round(round_.value());
  *response.mutable_snapshot() = run_.snapshot;
  return response;
}

void LocalAggregator::Start() {
  started_ = true;
  const v1::StartHeader start = MakeStartHeader({.run_id = RunId(run_),
                                                 .data_fingerprint = data_fingerprint_,
                                                 .state_hash = run_.snapshot.state_hash()},
                                                *run_.layout, run_.config, members_.Present());
  plan_ = PlanOf(start);
  log_hash_ = Xxh3(start.SerializeAsString());
  step_ = run_.method->Step(round_, {}, nullptr);
  OpenRound();
}

void LocalAggregator::OpenRound() {
  WeighByData();
  if (round_.value() < run_.config.rounds()) return members_.Broadcast(Opened());
  members_.CloseQueues(Done());
}

OpenedRound LocalAggregator::Opened() const {
  OpenedRound opened{.epoch = EpochId(kEpoch), .round = round_, .open = {}};
  *opened.open.mutable_step() = step_;
  opened.open.mutable_slots()->Add(plan_.slots.begin(), plan_.slots.end());
  if (run_.config.has_round_window()) *opened.open.mutable_window() = run_.config.round_window();
  opened.open.mutable_next_slots()->Add(plan_.next_slots.begin(), plan_.next_slots.end());
  return opened;
}

absl::Status LocalAggregator::Done() const {
  return absl::OutOfRangeError(absl::StrCat("the run is done after ", round_.value(), " rounds"));
}

absl::Status LocalAggregator::CheckPayloads(const RoundUpdate& update) {
  v1::StepParameters step;
  {
    absl::MutexLock lock(&mu_);
    step = step_;
  }
  const uint32_t segments = run_.layout->segments();
  if (update.payloads.size() != (update.abstain ? 0 : segments)) {
    return absl::InvalidArgumentError(absl::StrCat("round ", update.round.value(), ": ",
                                                   update.payloads.size(), " payloads for ",
                                                   segments, " segments"));
  }
  for (uint32_t i = 0; i < update.payloads.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(run_.method->CheckUpdate(
        *update.payloads[i], {.round = update.round, .segment = SegmentId(i)}, step));
  }
  return absl::OkStatus();
}

absl::Status LocalAggregator::Upload(const std::string& worker, RoundUpdate update) {
  DISTRO_RETURN_IF_ERROR(CheckPayloads(update));
  absl::MutexLock lock(&mu_);
  const LocalMember* const member = members_.Find(worker);
  const auto slot = std::ranges::find(plan_.slots, worker, &v1::Slot::worker);
  if (!started_ || update.round != round_ || member == nullptr || slot == plan_.slots.end()) {
    return absl::FailedPreconditionError(absl::StrCat("round ", update.round.value(), ": worker ",
                                                      worker, ": has no samples, or round ",
                                                      round_.value(), " is the open one"));
  }
  const UpdateClaim claim{.local_steps = update.local_steps,
                          .first_sample = update.first_sample,
                          .abstain = update.abstain};
  DISTRO_RETURN_IF_ERROR(CheckClaim(weighing_, claim, *slot));
  const Answer answer{.incarnation = member->incarnation, .update = std::move(update)};
  if (const auto [earlier, is_first] = answers_.emplace(worker, answer); !is_first) {
    // An earlier process with the same name has uploaded already: its bytes count.
    if (earlier->second.incarnation != answer.incarnation) return absl::OkStatus();
    if (SameBytes(earlier->second.update, answer.update)) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("round ", round_.value(), ": worker ", worker, " has answered"));
  }
  CommitWhenComplete();
  return absl::OkStatus();
}

void LocalAggregator::Leave(const v1::WorkerIdentity& worker) {
  absl::MutexLock lock(&mu_);
  LocalMember* const member = members_.Find(worker.name());
  if (member == nullptr || member->incarnation != worker.incarnation()) return;
  if (!started_) return members_.Remove(worker.name());
  member->left = true;
  CommitWhenComplete();
}

void LocalAggregator::CommitWhenComplete() {
  // Closes several rounds in a row only if no remaining worker has samples in the next ones; closes
  // none when all have left.
  while (round_.value() < run_.config.rounds() && !members_.Present().empty()) {
    for (const v1::Slot& slot : plan_.slots) {
      if (!answers_.contains(slot.worker()) && !members_.Get(slot.worker()).left) return;
    }
    absl::StatusOr<CommittedRound> committed = Commit();
    if (!committed.ok()) {
      members_.CloseQueues(committed.status());
      return;
    }
    members_.Broadcast(*committed);
    if (run_.keeps_log) log_.push_back(*committed);
    log_hash_ = committed->hash;
    round_ = round_.Next();
    answers_.clear();
    plan_.Advance(*committed->header);
    const auto& medians = committed->header->scale_medians();
    medians_ = {medians.begin(), medians.end()};
    step_ = run_.method->Step(round_, medians_, nullptr);
    OpenRound();
  }
}

absl::StatusOr<CommittedRound> LocalAggregator::Commit() {
  RoundOutcome outcome{.round = round_,
                       .epoch = EpochId(kEpoch),
                       .step = step_,
                       .predecessor_hash = log_hash_,
                       .members = Members()};
  std::vector<SharedBytes> results;
  std::vector<LargestCodes> codes;  // of those who are included
  for (uint32_t s = 0; s < run_.layout->segments(); ++s) {
    DISTRO_ASSIGN_OR_RETURN(
        SegmentResult result,
        run_.method->Combine({.round = round_, .segment = SegmentId(s)}, Payloads(SegmentId(s)),
                             /*threads=*/1, *Clock::Real()));
    codes.resize(result.largest_codes.size());
    for (size_t i = 0; i < codes.size(); ++i) AddLargestCodes(result.largest_codes[i], &codes[i]);
    outcome.segments.push_back(
        {.payload_bytes = result.payload->size(), .checksum = result.checksum});
    results.push_back(std::move(result.payload));
  }
  outcome.scale_medians = run_.method->ScaleMedians(codes, medians_);
  v1::RoundHeader header = MakeRoundHeader(outcome);
  const bool goes_on = round_.value() + 2 < run_.config.rounds();
  plan_.Give(goes_on ? members_.Present() : std::vector<std::string>(), run_.config, plan_.slots,
             &header);
  header.set_reason("all are in");
  return MakeCommittedRound(header.SerializeAsString(), std::move(results), *run_.layout);
}

int LocalAggregator::WeightOf(const std::string& worker, const RoundUpdate& update) const {
  return distro::WeightOf(weighing_, update.local_steps, data_weights_.at(worker));
}

void LocalAggregator::WeighByData() {
  std::vector<uint64_t> own_tokens;
  for (const v1::Slot& slot : plan_.slots)
    own_tokens.push_back(members_.Get(slot.worker()).own_tokens);
  const std::vector<int> weights = DataWeights(own_tokens);
  for (size_t i = 0; i < weights.size(); ++i) data_weights_[plan_.slots[i].worker()] = weights[i];
}

std::vector<RecordedMember> LocalAggregator::Members() const {
  std::vector<RecordedMember> members;
  for (const v1::Slot& slot : plan_.slots) {
    auto& [member, included] = members.emplace_back();
    member.set_name(slot.worker());
    member.set_weight(1);
    member.set_state(members_.Get(slot.worker()).left ? v1::MEMBER_STATE_LEFT
                                                      : v1::MEMBER_STATE_ACTIVE);
    const auto answer = answers_.find(slot.worker());
    if (answer == answers_.end()) continue;
    const RoundUpdate& update = answer->second.update;
    member.set_state_hash(update.state_hash);
    member.set_abstained(update.abstain);
    included.assign(run_.layout->segments(), !update.abstain);
    if (update.abstain) continue;
    member.set_weight(WeightOf(slot.worker(), update));
    member.set_local_steps(update.local_steps);
    member.set_incarnation(answer->second.incarnation);
  }
  return members;
}

std::vector<SentPayload> LocalAggregator::Payloads(SegmentId segment) const {
  std::vector<SentPayload> payloads;
  for (const v1::Slot& slot : plan_.slots) {
    const auto answer = answers_.find(slot.worker());
    if (answer == answers_.end() || answer->second.update.abstain) continue;
    const RoundUpdate& update = answer->second.update;
    payloads.push_back({update.payloads[segment.value()], WeightOf(slot.worker(), update)});
  }
  return payloads;
}

}  // namespace distro
