#include "bench/convergence/suspicion.h"

#include <cmath>

#include "common/layout/matrix.h"

namespace distro::worker {
namespace {

constexpr size_t kRounds = 128;
constexpr int64_t kLeastCommon = 1000;
constexpr double kSuspiciousScore = -6;

}  // namespace

void Suspicion::AddBlock(absl::Span<const DeltaMessage* const> messages, int64_t block,
                         absl::Span<int64_t> sums, std::vector<Counts>* counts) const {
  const auto for_each = [&](auto work) {
    for (size_t w = 0; w < messages.size(); ++w) {
      if (messages[w] == nullptr) continue;
      for (int64_t i = block * messages[w]->k; i < (block + 1) * messages[w]->k; ++i)
        work(w, sums[messages[w]->positions[i]], messages[w]->values[i]);
    }
  };
  for_each([](size_t, int64_t& sum, int64_t value) { sum += value; });
  for_each([&](size_t w, int64_t& sum, int64_t value) {
    const int64_t others = sum - value;
    if (others == 0 || value == 0) return;
    ++((others > 0) == (value > 0) ? (*counts)[w].agree : (*counts)[w].disagree);
  });
  for_each([](size_t, int64_t& sum, int64_t) { sum = 0; });
}

void Suspicion::Add(absl::Span<const DeltaMessage* const> messages) {
  std::vector<int64_t> sums(kBlockElements);
  std::vector<Counts> counts(messages.size());
  int64_t blocks = 0;
  for (const DeltaMessage* message : messages) {
    if (message != nullptr) blocks = static_cast<int64_t>(message->positions.size()) / message->k;
  }
  for (int64_t block = 0; block < blocks; ++block)
    AddBlock(messages, block, absl::MakeSpan(sums), &counts);
  for (size_t w = 0; w < messages.size(); ++w) {
    windows_[w].push_back(counts[w]);
    if (windows_[w].size() > kRounds) windows_[w].pop_front();
  }
}

bool Suspicion::Suspects(int worker) const {
  Counts sum;
  for (const Counts& counts : windows_[worker]) {
    sum.agree += counts.agree;
    sum.disagree += counts.disagree;
  }
  const int64_t common = sum.agree + sum.disagree;
  if (common < kLeastCommon || sum.disagree - sum.agree <= common / 10) return false;
  return static_cast<double>(sum.agree - sum.disagree) <
         kSuspiciousScore * std::sqrt(static_cast<double>(common));
}

}  // namespace distro::worker
