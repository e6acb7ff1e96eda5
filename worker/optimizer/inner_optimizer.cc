#include "worker/optimizer/inner_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/model/architecture.h"

namespace distro::worker {

std::vector<InnerTensor> InnerTensors(const Layout& layout,
                                      const std::vector<std::vector<int>>& units) {
  std::vector<InnerTensor> tensors;
  const std::vector<bool> inside = TensorsInside(layout, units);
  for (size_t i = 0; i < inside.size(); ++i) {
    const TensorLayout& tensor = layout.tensors()[i];
    tensors.push_back({.matrix = tensor.matrix, .decays = tensor.decays, .inside = inside[i]});
  }
  return tensors;
}

std::vector<bool> MuonTensors(const InnerSettings& settings,
                              absl::Span<const InnerTensor> tensors) {
  std::vector<bool> by_muon;
  for (const InnerTensor& tensor : tensors)
    by_muon.push_back(settings.method == InnerMethod::kMuon && tensor.inside);
  return by_muon;
}

InnerOptimizer::InnerOptimizer(const InnerSettings& settings, std::vector<InnerTensor> tensors,
                               RuleShard shard, RunSpans first, RunSpans second)
    : settings_(settings),
      tensors_(std::move(tensors)),
      by_muon_(MuonTensors(settings_, tensors_)),
      shard_(std::move(shard)),
      first_(std::move(first)),
      second_(std::move(second)),
      matrices_(shard_, by_muon_, settings_.newton_schulz) {}

absl::Status InnerOptimizer::Step(float rate, float gradient_scale, const RunSpans& gradient,
                                  const RunSpans& x) {
  ++steps_;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!by_muon_[shard_.runs[i].tensor]) AdamW(i, rate, gradient_scale, gradient[i], x[i]);
  }
  return matrices_.Orthogonalize(
      [&](size_t i, absl::Span<float> direction) {
        MakeDirection(i, gradient_scale, gradient[i], direction);
      },
      [&](size_t i, absl::Span<const float> direction) { MoveAlong(i, rate, direction, x[i]); });
}

void InnerOptimizer::AdamW(size_t run, float rate, float gradient_scale,
                           absl::Span<const float> gradient, absl::Span<float> x) {
  const auto count = static_cast<double>(steps_);
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(double{settings_.beta1}, count)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(double{settings_.beta2}, count)));
  const float decay = TensorOf(run).decays ? rate * settings_.weight_decay : 0.0f;
  const float beta1 = settings_.beta1, beta2 = settings_.beta2, epsilon = settings_.epsilon;
  float* const first = first_[run].data();
  float* const second = second_[run].data();
  for (size_t i = 0; i < x.size(); ++i) {
    const float g = gradient_scale * gradient[i];
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const float direction = first[i] * correction1 / (std::sqrt(second[i] * correction2) + epsilon);
    x[i] -= decay * x[i] + rate * direction;
  }
}

void InnerOptimizer::MakeDirection(size_t run, float gradient_scale,
                                   absl::Span<const float> gradient, absl::Span<float> direction) {
  const float mu = settings_.mu;
  float* const buffer = first_[run].data();
  for (size_t i = 0; i < direction.size(); ++i) {
    const float g = gradient_scale * gradient[i];
    buffer[i] = mu * buffer[i] + g;
    direction[i] = g + mu * buffer[i];
  }
}

void InnerOptimizer::MoveAlong(size_t run, float rate, absl::Span<const float> direction,
                               absl::Span<float> x) const {
  const MatrixShape& matrix = TensorOf(run).matrix;
  const float scale =
      settings_.muon_scale * std::sqrt(static_cast<float>(std::max(matrix.rows, matrix.cols)));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] -= rate * (scale * direction[i] + settings_.weight_decay * x[i]);
}

void InnerOptimizer::Reset() {
  steps_ = 0;
  for (const RunSpans* state : {&first_, &second_}) {
    for (const absl::Span<float> tensor : *state) std::ranges::fill(tensor, 0.0f);
  }
}

}  // namespace distro::worker
