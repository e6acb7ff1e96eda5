#include "bench/convergence/deltas_aggregator.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/convergence/hostile_worker.h"
#include "common/base/median.h"
#include "common/base/random.h"
#include "common/method/base/learning_rate.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"

namespace distro::worker {
namespace {

constexpr double kAlphaTail = 0.9;  // of the steps: then alpha_end
constexpr SegmentId kSegment(0);    // the lab has one

uint64_t ResultBytes(const PayloadIdentity& identity, int k, const DeltaResult& result) {
  return IsDense(k) ? EncodeDenseDeltaResult(identity, DenseOf(result)).size()
                    : EncodeDeltaResult(identity, result).size();
}

}  // namespace

DeltasAggregator::DeltasAggregator(const DeltasSettings* settings, const v1::RunConfig* config,
                                   const BlockForms* forms)
    : settings_(*settings),
      config_(*config),
      forms_(*forms),
      layout_(*forms->layout),
      medians_(layout_.tensors().size()),
      bytes_(*settings) {}

DeltaRound DeltasAggregator::Open(uint64_t round, uint64_t step, int steps) {
  round_ = round;
  step_ = step;
  rates_.clear();
  for (int h = 0; h < steps; ++h) rates_.push_back(LearningRate(config_, step + h));
  caps_.clear();
  for (const std::optional<uint8_t>& median : medians_) {
    caps_.push_back(settings_.cap_growth >= kScaleCodes
                        ? uint8_t{kScaleCodes - 1}
                        : DeltaCap(rates_, median, settings_.cap_growth));
  }
  const float beta =
      static_cast<float>(WithRate(config_, step, settings_.beta, settings_.beta_end));
  return {.beta = beta, .k = settings_.k, .caps = caps_};
}

bool DeltasAggregator::Misses(int worker) const {
  const uint64_t draw =
      SplitMix64(config_.seed() + 1000, round_ * config_.start_workers() + worker) >> 11;
  return static_cast<double>(draw) * 0x1p-53 < settings_.miss;
}

DeltasOutcome DeltasAggregator::Close(absl::Span<DeltasWorker* const> workers) {
  std::vector<DeltaUpdate> updates(workers.size());
  std::vector<const DeltaMessage*> messages(workers.size());
  DeltasOutcome outcome;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (workers[i] == nullptr) continue;
    const int w = static_cast<int>(i);
    if (Misses(w) || (settings_.quarantine && suspected_.contains(w))) {
      workers[i]->Missed();
      continue;
    }
    updates[i] = workers[i]->update();
    if (!settings_.attack.empty() && i + settings_.attackers >= workers.size()) {
      Falsify(i, &updates);
      workers[i]->message() = MessageOf(updates[i]);
    }
    messages[i] = &workers[i]->message();
    outcome.included.push_back(w);
  }
  FollowScales(updates, outcome.included);
  if (settings_.norm_clip > 0) ClipNorms(workers, outcome.included);
  Combine(updates, messages, &outcome);
  const PayloadIdentity identity = IdentifyPayload(layout_, RoundId(round_), kSegment);
  const bool real = IsReal(settings_);
  if (messages[0] != nullptr) {
    sent_bytes_ += real ? EncodeDeltaUpdate(identity, updates[0]).size()
                        : bytes_.Upload(identity, *messages[0]);
  }
  received_bytes_ += real ? ResultBytes(identity, settings_.k, outcome.result)
                          : bytes_.Download(identity, outcome.means);
  const bool tail =
      static_cast<double>(step_) >= kAlphaTail * static_cast<double>(config_.rounds());
  outcome.alpha = static_cast<float>(settings_.alpha * (tail ? settings_.alpha_end : 1));
  if (settings_.decay_in_update)
    outcome.decay = std::accumulate(rates_.begin(), rates_.end(), 0.0) * config_.weight_decay();
  return outcome;
}

void DeltasAggregator::Falsify(size_t worker, std::vector<DeltaUpdate>* updates) const {
  const DeltaUpdate& first = (*updates)[updates->size() - settings_.attackers];
  DeltaUpdate& own = (*updates)[worker];
  if (settings_.attack_together && &own != &first && first.blocks() > 0) {
    own = first;
    return;
  }
  Attack(
      settings_, layout_,
      {.round = round_, .seed = config_.seed() + 2000 + round_, .caps = caps_, .medians = medians_},
      &own);
}

void DeltasAggregator::FollowScales(const std::vector<DeltaUpdate>& updates,
                                    const std::vector<int>& included) {
  std::vector<std::vector<uint8_t>> codes(medians_.size());
  for (const int w : included) {
    std::vector<std::optional<uint8_t>> largest;
    AddLargestCodes(layout_, kSegment, updates[w], &largest);
    for (size_t i = 0; i < largest.size(); ++i) {
      if (largest[i].has_value()) codes[i].push_back(*largest[i]);
    }
  }
  for (size_t i = 0; i < medians_.size(); ++i)
    medians_[i] = MedianOfLargest(std::move(codes[i]), medians_[i]);
}

void DeltasAggregator::ClipNorms(absl::Span<DeltasWorker* const> workers,
                                 const std::vector<int>& included) const {
  std::vector<double> norms;
  for (const int w : included) norms.push_back(MessageNorm(workers[w]->message()));
  if (norms.empty()) return;
  const double most = settings_.norm_clip * Median(norms);
  for (size_t i = 0; i < included.size(); ++i) {
    if (norms[i] > most) ScaleBy(most / norms[i], &workers[included[i]]->message());
  }
}

void DeltasAggregator::Compare(const std::vector<int>& included, const PairCounts& pairs) {
  for (size_t a = 0; a < included.size(); ++a) {
    for (size_t b = 0; b < included.size(); ++b) {
      if (a == b) continue;
      agreement_.Add(RoundId(round_), absl::StrCat(included[a]), absl::StrCat(included[b]),
                     pairs.Of(a, b));
    }
  }
  const std::optional<std::string> worst = agreement_.Worst();
  int worker = 0;
  if (!worst.has_value() || !absl::SimpleAtoi(*worst, &worker)) return;
  suspected_.try_emplace(worker, round_);
  agreement_.Remove(*worst);
}

void DeltasAggregator::Combine(const std::vector<DeltaUpdate>& updates,
                               const std::vector<const DeltaMessage*>& messages,
                               DeltasOutcome* outcome) {
  const auto window = static_cast<int>(rates_.size());
  int64_t weights = 0;
  for (const int w : outcome->included) weights += WeightOf(settings_, w, window);
  const auto floor_256 = static_cast<int>(
      std::lround(256 * WithRate(config_, step_, settings_.rho, settings_.rho_end)));
  const MeanRule rule = {.divisor = settings_.divisor == "all" ? Divisor::kAll : Divisor::kSenders,
                         .weights = weights,
                         .least_senders = LeastSenders(weights, floor_256)};
  std::vector<WeightedDelta> weighted;
  std::vector<const DeltaMessage*> included;
  for (const int w : outcome->included) {
    weighted.push_back({.update = &updates[w], .weight = WeightOf(settings_, w, window)});
    included.push_back(messages[w]);
  }
  const std::vector<BlockExtent> extents = DeltaExtents(layout_, forms_.as_dct, kSegment);
  const bool real = IsReal(settings_);
  Compare(outcome->included, CompareMessages(included, forms_));
  const DeltaMeans all =
      real ? CombineDeltas(weighted, extents, rule) : CombineMessages(included, forms_, rule);
  const DeltaMeans means =
      settings_.keep == 0 ? all
                          : KeepLargest(all, settings_.keep, config_.seed(), RoundId(round_), 0);
  if (real) {
    outcome->result = RoundToLevels(means);
    outcome->means = MeansOf(outcome->result);
    return;
  }
  if (settings_.levels == 0)
    outcome->means.means = means;
  else
    outcome->means = RoundMeans(means, settings_.levels, settings_.level_step);
  outcome->returned = outcome->means.means;
  if (settings_.feedback == "returned") return;
  outcome->returned = AllSent(included, layout_.blocks());
  if (settings_.feedback == "cancelled")
    outcome->returned = Without(outcome->returned, Without(all, outcome->means.means));
}

}  // namespace distro::worker
