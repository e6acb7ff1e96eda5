#include "worker/model/gradient.h"

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

at::Tensor Leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(); }

// One unit's forward with its own graph: the leaves are views of the parameters and the input.
struct Step {
  std::vector<at::Tensor> leaves;  // parameters, then the input (not for the first unit)
  at::Tensor input;                // undefined for the first unit
  at::Tensor output;               // undefined: forward kept the input only
};

Step RunUnit(const Unit& unit, absl::Span<const at::Tensor> parameters, const at::Tensor& input,
             const Batch& batch) {
  const at::AutoGradMode with_grad(true);
  Step step{.leaves = {}, .input = input, .output = {}};
  for (const at::Tensor& parameter : parameters) step.leaves.push_back(Leaf(parameter));
  if (input.defined()) step.leaves.push_back(Leaf(input));
  step.output = unit.Forward(absl::MakeConstSpan(step.leaves).first(parameters.size()),
                             input.defined() ? step.leaves.back() : input, batch);
  return step;
}

// Sums the parts of each tensor's gradient until it is complete.
class Collector {
 public:
  explicit Collector(Units units) {
    for (const auto& unit : units) {
      for (const int tensor : unit->tensors()) {
        if (tensor >= static_cast<int>(uses_left_.size())) uses_left_.resize(tensor + 1, 0);
        ++uses_left_[tensor];
      }
    }
    sums_.resize(uses_left_.size());
  }

  // The gradients that are complete with `parts`, those of the unit's tensors; takes them.
  std::vector<TensorGradient> Add(const Unit& unit, std::vector<at::Tensor>& parts) {
    std::vector<TensorGradient> complete;
    for (size_t i = 0; i < unit.tensors().size(); ++i) {
      const int tensor = unit.tensors()[i];
      at::Tensor& sum = sums_[tensor];
      sum = sum.defined() ? sum + parts[i] : std::move(parts[i]);
      parts[i].reset();
      if (--uses_left_[tensor] == 0) complete.emplace_back(tensor, std::exchange(sum, {}));
    }
    return complete;
  }

 private:
  std::vector<int> uses_left_;
  std::vector<at::Tensor> sums_;
};

class Loop {
 public:
  Loop(Units units, const Batch& batch, int checkpoint_every, UnitHooks& hooks)
      : units_(units),
        last_(static_cast<int>(units.size()) - 1),
        batch_(batch),
        checkpoint_every_(checkpoint_every),
        hooks_(hooks),
        collector_(units) {}

  absl::StatusOr<double> Run() {
    const at::NoGradGuard no_grad;
    DISTRO_RETURN_IF_ERROR(ForwardPass());
    const at::Tensor loss = steps_.back().output.detach();
    at::Tensor upstream = at::ones_like(loss);
    for (int unit = last_; unit >= 0; --unit) DISTRO_RETURN_IF_ERROR(Backward(unit, &upstream));
    return loss.item<double>();
  }

 private:
  absl::Status ForwardPass() {
    at::Tensor value;
    for (int unit = 0; unit <= last_; ++unit) {
      DISTRO_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parameters, hooks_.Acquire(unit));
      if (IsCheckpointed(unit, last_ + 1, checkpoint_every_)) {
        steps_.push_back({.leaves = {}, .input = value, .output = {}});
        value = units_[unit]->Forward(parameters, value, batch_);
      } else {
        steps_.push_back(RunUnit(*units_[unit], parameters, value, batch_));
        value = steps_.back().output.detach();
      }
      if (unit < last_) DISTRO_RETURN_IF_ERROR(hooks_.Release(unit));
    }
    return absl::OkStatus();
  }

  // Replaces d loss / d output of the unit by that of its input.
  absl::Status Backward(int unit, at::Tensor* upstream) {
    Step step = std::move(steps_.back());
    steps_.pop_back();
    if (unit < last_) {
      DISTRO_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parameters, hooks_.Acquire(unit));
      if (!step.output.defined()) {
        step = RunUnit(*units_[unit], parameters, step.input, batch_);
      }
    }
    std::vector<at::Tensor> parts =
        torch::autograd::grad({step.output}, step.leaves, {std::exchange(*upstream, {})});
    if (step.input.defined()) *upstream = std::move(parts.back());
    step = {};
    DISTRO_RETURN_IF_ERROR(hooks_.Release(unit));
    return hooks_.ReceiveGradients(unit, collector_.Add(*units_[unit], parts));
  }

  const Units units_;
  const int last_;
  const Batch& batch_;
  const int checkpoint_every_;
  UnitHooks& hooks_;
  Collector collector_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<int> UnitUses(int units, bool backward) {
  std::vector<int> uses;
  for (int unit = 0; unit < units; ++unit) uses.push_back(unit);
  for (int unit = units - 2; backward && unit >= 0; --unit) uses.push_back(unit);
  return uses;
}

absl::StatusOr<at::Tensor> Forward(Units units, const Batch& batch, UnitHooks& hooks) {
  const at::NoGradGuard no_grad;
  at::Tensor value;
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    DISTRO_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parameters, hooks.Acquire(unit));
    value = units[unit]->Forward(parameters, value, batch);
    DISTRO_RETURN_IF_ERROR(hooks.Release(unit));
  }
  return value;
}

absl::StatusOr<double> LossAndGradient(Units units, const Batch& batch, int checkpoint_every,
                                       UnitHooks& hooks) {
  return Loop(units, batch, checkpoint_every, hooks).Run();
}

}  // namespace distro::worker
