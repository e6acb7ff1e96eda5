#include "common/round/local_data.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro {
namespace {

constexpr uint64_t kMedianWeight = 8;
constexpr uint64_t kMostWeight = 15;

// 0: nobody has any.
uint64_t LowerMedian(absl::Span<const uint64_t> own_tokens) {
  std::vector<uint64_t> some;
  for (const uint64_t tokens : own_tokens) {
    if (tokens > 0) some.push_back(tokens);
  }
  if (some.empty()) return 0;
  const auto middle = some.begin() + static_cast<int64_t>(some.size() - 1) / 2;
  std::nth_element(some.begin(), middle, some.end());
  return *middle;
}

absl::Status OtherData(absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data", why);
}

}  // namespace

absl::Status CheckOwnTokens(const v1::RunConfig& config, uint64_t own_tokens) {
  const bool local = config.data() == v1::DATA_LOCAL;
  if (local && own_tokens == 0) {
    return OtherData(
        "own_tokens: each worker of this run trains on tokens of its own: give the text that all "
        "hold as --public_data");
  }
  if (!local && own_tokens > 0) {
    return OtherData(
        "own_tokens: all workers of this run hold the same data: leave --public_data out");
  }
  if (own_tokens <= kMostOwnTokens) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("own_tokens: ", own_tokens, " is outside 1 to ", kMostOwnTokens));
}

std::vector<int> DataWeights(absl::Span<const uint64_t> own_tokens) {
  const uint64_t median = LowerMedian(own_tokens);
  std::vector<int> weights;
  for (const uint64_t tokens : own_tokens) {
    const uint64_t most = 2 * median;  // which is more than the largest weight
    const uint64_t eighths =
        tokens == 0 ? 1 : (2 * kMedianWeight * std::min(tokens, most) + median) / (2 * median);
    weights.push_back(static_cast<int>(std::clamp<uint64_t>(eighths, 1, kMostWeight)));
  }
  return weights;
}

}  // namespace distro
