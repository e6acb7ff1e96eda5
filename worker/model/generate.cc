#include "worker/model/generate.h"

#include <algorithm>
#include <cmath>

#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

int32_t Likeliest(absl::Span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Draws from softmax(logits / temperature); `uniform` is in [0, 1).
int32_t Draw(absl::Span<const float> logits, double temperature, double uniform) {
  const double largest = logits[Likeliest(logits)];
  std::vector<double> weights;
  double total = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp((logit - largest) / temperature));
    total += weights.back();
  }
  double left = uniform * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int32_t>(i);
  }
  return Likeliest(logits);  // rounding left nothing to draw from
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> Generate(NextLogits next, int positions,
                                              absl::Span<const int32_t> prompt,
                                              const GenerateOptions& options) {
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  if (options.count < 0) return absl::InvalidArgumentError("count is negative");
  if (!(options.temperature >= 0)) return absl::InvalidArgumentError("temperature is negative");
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  for (int i = 0; i < options.count; ++i) {
    const size_t seen = std::min<size_t>(text.size(), positions);
    DISTRO_ASSIGN_OR_RETURN(const std::vector<float> logits,
                            next(absl::MakeConstSpan(text).last(seen)));
    const double uniform = static_cast<double>(SplitMix64(options.seed, i) >> 11) * 0x1p-53;
    text.push_back(options.temperature == 0 ? Likeliest(logits)
                                            : Draw(logits, options.temperature, uniform));
  }
  return std::vector<int32_t>(text.begin() + static_cast<int64_t>(prompt.size()), text.end());
}

absl::StatusOr<std::vector<int32_t>> Generate(const Model& model, const TensorBuffer& parameters,
                                              absl::Span<const int32_t> prompt,
                                              const GenerateOptions& options) {
  const auto next = [&](absl::Span<const int32_t> tokens) {
    return model.NextLogits(tokens, parameters);
  };
  return Generate(next, model.architecture().sizes().max_positions, prompt, options);
}

}  // namespace distro::worker
