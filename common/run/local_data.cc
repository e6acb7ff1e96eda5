#include "common/run/local_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/median.h"
#include "common/base/reason.h"

namespace distro {
namespace {

constexpr uint64_t kMedianWeight = 8;
constexpr uint64_t kMostWeight = 15;

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
  std::vector<uint64_t> some;
  for (const uint64_t tokens : own_tokens) {
    if (tokens > 0) some.push_back(tokens);
  }
  std::vector<int> weights(own_tokens.size(), 1);
  if (some.empty()) return weights;
  const uint64_t twice = 2 * LowerMedian(std::move(some));
  for (size_t i = 0; i < weights.size(); ++i) {
    // Twice the median already gives more than the largest weight.
    const uint64_t tokens = std::min(own_tokens[i], twice);
    const uint64_t weight = (2 * kMedianWeight * tokens + twice / 2) / twice;
    weights[i] = static_cast<int>(std::clamp<uint64_t>(weight, 1, kMostWeight));
  }
  return weights;
}

}  // namespace distro
