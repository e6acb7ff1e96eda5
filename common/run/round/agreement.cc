#include "common/run/round/agreement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/base/median.h"

namespace distro {
namespace {

constexpr double kSuspiciousDeviations = 6;

// Whether the worker disagrees more often than is typical, by more than this number of the margins
// of Suspicious.
bool Opposes(const AgreementCounts& counts, double typical, double margins) {
  const auto votes = static_cast<double>(counts.common());
  const double opposes =
      static_cast<double>(counts.disagree) - static_cast<double>(counts.agree) + typical * votes;
  return counts.common() >= kMinCommonVotes &&
         opposes > margins * kSuspiciousDeviations * std::sqrt(votes) &&
         opposes > margins * votes / 10;
}

using Others = std::map<std::string, AgreementCounts, std::less<>>;

std::vector<AgreementCounts> Compared(const Others& others) {
  std::vector<AgreementCounts> compared;
  for (const auto& [name, counts] : others) {
    if (counts.common() >= kMinCommonVotes) compared.push_back(counts);
  }
  return compared;
}

// Requires at least one.
AgreementCounts UpperMedian(std::vector<AgreementCounts> counts) {
  const auto middle = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle, std::less<>(), &AgreementCounts::Share);
  return *middle;
}

// The lower median of the shares, at most 0.
double TypicalShare(const std::map<std::string, AgreementCounts>& judged) {
  std::vector<double> shares;
  for (const auto& [name, counts] : judged) shares.push_back(counts.Share());
  return std::min(0.0, LowerMedian(std::move(shares)));
}

}  // namespace

bool Suspicious(const AgreementCounts& counts, double typical) {
  return Opposes(counts, typical, /*margins=*/1);
}

bool Doubtful(const AgreementCounts& counts, double typical) {
  return Opposes(counts, typical, /*margins=*/0.5);
}

void Agreement::HalveUntil(uint64_t round) {
  for (; halvings_ < round / kAgreementHalfLife; ++halvings_) {
    if (workers_.empty()) {
      halvings_ = round / kAgreementHalfLife;
      return;
    }
    for (auto& [worker, others] : workers_) {
      for (auto& [other, counts] : others)
        counts = {.agree = counts.agree / 2, .disagree = counts.disagree / 2};
      std::erase_if(others, [](const auto& at) { return at.second.common() == 0; });
    }
    std::erase_if(workers_, [](const auto& at) { return at.second.empty(); });
  }
}

void Agreement::Add(RoundId round, absl::string_view worker, absl::string_view other,
                    const AgreementCounts& counts) {
  HalveUntil(round.value());
  if (counts.common() == 0) return;
  AgreementCounts& sum = workers_[std::string(worker)][std::string(other)];
  sum.agree += counts.agree;
  sum.disagree += counts.disagree;
}

AgreementCounts Agreement::Of(absl::string_view worker) const {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return {};
  std::vector<AgreementCounts> compared = Compared(it->second);
  return compared.empty() ? AgreementCounts{} : UpperMedian(std::move(compared));
}

std::map<std::string, AgreementCounts> Agreement::Judged() const {
  std::map<std::string, AgreementCounts> judged;
  for (const auto& [worker, others] : workers_) {
    std::vector<AgreementCounts> compared = Compared(others);
    if (compared.size() >= kMinJudgedWorkers - 1)
      judged.emplace(worker, UpperMedian(std::move(compared)));
  }
  if (judged.size() < kMinJudgedWorkers) judged.clear();
  return judged;
}

bool Agreement::Doubts(absl::string_view worker) const {
  const std::map<std::string, AgreementCounts> judged = Judged();
  const auto it = judged.find(std::string(worker));
  return it != judged.end() && Doubtful(it->second, TypicalShare(judged));
}

std::optional<std::string> Agreement::Worst() const {
  const std::map<std::string, AgreementCounts> judged = Judged();
  std::optional<std::string> worst;
  if (judged.empty()) return worst;
  const double typical = TypicalShare(judged);
  double lowest = 0;
  for (const auto& [worker, counts] : judged) {
    if (!Suspicious(counts, typical) || counts.Score() >= lowest) continue;
    lowest = counts.Score();
    worst = worker;
  }
  return worst;
}

void Agreement::Remove(absl::string_view worker) {
  if (const auto it = workers_.find(worker); it != workers_.end()) workers_.erase(it);
  for (auto& [name, others] : workers_) {
    if (const auto it = others.find(worker); it != others.end()) others.erase(it);
  }
}

}  // namespace distro
