#include "worker/model/gradient.h"

#include <utility>

namespace distro::worker {
namespace {

// One unit's forward with its own graph: the leaves are views of the parameters and the input.
struct Step {
  const Unit* unit = nullptr;
  std::vector<at::Tensor> leaves;  // parameters, then the input (not for the first unit)
  at::Tensor output;
};

at::Tensor Leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(); }

Step RunUnit(const Unit& unit, absl::Span<const at::Tensor> parameters, const at::Tensor& input,
             const Batch& batch) {
  Step step{.unit = &unit, .leaves = {}, .output = {}};
  for (const int tensor : unit.tensors()) step.leaves.push_back(Leaf(parameters[tensor]));
  const size_t own = step.leaves.size();
  if (input.defined()) step.leaves.push_back(Leaf(input));
  step.output = unit.Forward(absl::MakeConstSpan(step.leaves).first(own),
                             input.defined() ? step.leaves.back() : input, batch);
  return step;
}

// Sums the parts of each tensor's gradient and passes on what is complete.
class Collector {
 public:
  Collector(Units units, size_t tensors, const GradientSink& sink)
      : uses_left_(tensors), sum_(tensors), sink_(sink) {
    for (const auto& unit : units) {
      for (const int tensor : unit->tensors()) ++uses_left_[tensor];
    }
  }

  void Add(int tensor, at::Tensor part) {
    sum_[tensor] = sum_[tensor].defined() ? sum_[tensor] + part : std::move(part);
    if (--uses_left_[tensor] > 0) return;
    sink_(tensor, sum_[tensor]);
    sum_[tensor].reset();
  }

 private:
  std::vector<int> uses_left_;
  std::vector<at::Tensor> sum_;
  const GradientSink& sink_;
};

}  // namespace

at::Tensor Forward(Units units, absl::Span<const at::Tensor> parameters, const Batch& batch) {
  const at::NoGradGuard no_grad;
  at::Tensor value;
  for (const auto& unit : units) {
    std::vector<at::Tensor> own;
    for (const int tensor : unit->tensors()) own.push_back(parameters[tensor]);
    value = unit->Forward(own, value, batch);
  }
  return value;
}

double LossAndGradient(Units units, absl::Span<const at::Tensor> parameters, const Batch& batch,
                       const GradientSink& sink) {
  std::vector<Step> steps;
  {
    const at::AutoGradMode with_grad(true);
    at::Tensor value;
    for (const auto& unit : units) {
      steps.push_back(RunUnit(*unit, parameters, value, batch));
      value = steps.back().output;
    }
  }
  const at::NoGradGuard no_grad;
  const double loss = steps.back().output.item<double>();
  Collector collector(units, parameters.size(), sink);
  at::Tensor upstream = at::ones_like(steps.back().output);
  for (; !steps.empty(); steps.pop_back()) {
    const Step& step = steps.back();
    std::vector<at::Tensor> parts = torch::autograd::grad({step.output}, step.leaves, {upstream});
    for (size_t i = 0; i < step.unit->tensors().size(); ++i) {
      collector.Add(step.unit->tensors()[i], std::move(parts[i]));
    }
    upstream = std::move(parts.back());
  }
  return loss;
}

}  // namespace distro::worker
