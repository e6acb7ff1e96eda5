#include "bench/convergence/baseline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/snapshot.h"
#include "common/layout/tensor_buffer.h"
#include "common/model/architecture.h"
#include "common/run/schedule.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {
namespace {

constexpr double kEpsilon = 1e-8;

// One training run with All-Reduce, from the model that the run begins with.
class Baseline {
 public:
  Baseline(const LocalRun& run, const SampleReader& samples, const Model& model,
           const BaselineOptions& options)
      : run_(run),
        config_(run.config),
        layout_(*run.layout),
        samples_(samples),
        model_(model),
        optimizer_(options, run.config.beta(), *run.layout),
        parameters_(*run.layout),
        gradient_(*run.layout) {}

  absl::StatusOr<Curve> Train() {
    DISTRO_RETURN_IF_ERROR(ReadSnapshot(run_.snapshot_path, layout_, &parameters_));
    Curve curve(config_.rounds());
    DISTRO_RETURN_IF_ERROR(Evaluate(0, &curve));
    const uint64_t interval = config_.evaluation_interval_rounds();
    for (uint64_t round = 0; round < config_.rounds(); ++round) {
      DISTRO_RETURN_IF_ERROR(Step(RoundId(round)));
      const uint64_t done = round + 1;
      if (done == config_.rounds() || (interval > 0 && done % interval == 0))
        DISTRO_RETURN_IF_ERROR(Evaluate(done, &curve));
      curve.Progress(done);
    }
    return curve;
  }

 private:
  absl::Status Step(RoundId round) {
    DISTRO_RETURN_IF_ERROR(Gradient());
    double squares = 0;
    for (int i = 0; i < gradient_.tensors(); ++i) {
      for (const float g : gradient_.tensor(i)) squares += static_cast<double>(g) * g;
    }
    const double norm = std::sqrt(squares);
    const auto scale = static_cast<float>(std::min(1.0, config_.clip_norm() / norm));
    const double eta = LearningRate(config_, round);
    for (int i = 0; i < gradient_.tensors(); ++i) {
      for (float& g : gradient_.tensor(i)) g *= scale;
      const double decay = layout_.tensors()[i].decays ? config_.weight_decay() : 0;
      optimizer_.Step(i, round.value() + 1, eta, decay, gradient_.tensor(i), parameters_.tensor(i));
    }
    return absl::OkStatus();
  }

  // The mean over all workers' samples, in the order in which the slots give them.
  absl::Status Gradient() {
    const std::vector<v1::Slot> slots =
        AssignSlots(Workers(), config_.samples_per_worker(), &next_sample_);
    Accumulation accumulation = Accumulation::kStore;
    for (const v1::Slot& slot : slots) {
      const int samples = static_cast<int>(slot.samples());
      samples_.ReadTraining(slot.first_sample(), samples, &tokens_);
      DISTRO_RETURN_IF_ERROR(model_
                                 .LossAndGradient({.tokens = tokens_, .sequences = samples},
                                                  parameters_, accumulation, &gradient_)
                                 .status());
      accumulation = Accumulation::kAdd;
    }
    for (int i = 0; i < gradient_.tensors(); ++i) {
      for (float& g : gradient_.tensor(i)) g /= static_cast<float>(slots.size());
    }
    return absl::OkStatus();
  }

  std::vector<std::string> Workers() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < config_.start_workers(); ++i)
      names.push_back(absl::StrFormat("w%03d", i));
    return names;
  }

  absl::Status Evaluate(uint64_t round, Curve* curve) {
    const uint64_t available = samples_.held_out_samples();
    const uint64_t limit = config_.evaluation_samples();
    const uint64_t count = limit == 0 ? available : std::min(limit, available);
    const uint64_t batch = config_.samples_per_worker();
    double sum = 0;
    for (uint64_t first = 0; first < count; first += batch) {
      const int sequences = static_cast<int>(std::min(batch, count - first));
      samples_.ReadHeldOut(first, sequences, &tokens_);
      DISTRO_ASSIGN_OR_RETURN(
          const double loss, model_.Loss({.tokens = tokens_, .sequences = sequences}, parameters_));
      sum += loss * sequences;
    }
    const uint64_t workers = config_.start_workers();
    const uint64_t bytes = round * 2 * (workers - 1) * 4 * layout_.elements() / workers;
    curve->Add(
        {.round = round,
         .tokens = round * workers * config_.samples_per_worker() * config_.sequence_length(),
         .held_out_loss = sum / static_cast<double>(count),
         .sent_bytes = bytes,
         .received_bytes = bytes});
    return absl::OkStatus();
  }

  const LocalRun& run_;
  const v1::RunConfig& config_;
  const Layout& layout_;
  const SampleReader& samples_;
  const Model& model_;
  BaselineOptimizer optimizer_;
  TensorBuffer parameters_;
  TensorBuffer gradient_;
  std::vector<int32_t> tokens_;
  uint64_t next_sample_ = 0;
};

}  // namespace

BaselineOptimizer::BaselineOptimizer(const BaselineOptions& options, double momentum,
                                     const Layout& layout)
    : options_(options), momentum_(momentum) {
  const TensorBuffer shapes(layout);
  for (int i = 0; i < shapes.tensors(); ++i) {
    const size_t elements = shapes.tensor(i).size();
    first_.emplace_back(elements);
    second_.emplace_back(options.method == BaselineMethod::kAdamW ? elements : 0);
  }
}

void BaselineOptimizer::Step(int tensor, uint64_t step, double eta, double weight_decay,
                             absl::Span<const float> gradient, absl::Span<float> parameters) {
  if (options_.method == BaselineMethod::kSgd)
    return Sgd(tensor, eta, weight_decay, gradient, parameters);
  for (float& p : parameters) p -= static_cast<float>(eta * weight_decay) * p;
  AdamW(tensor, step, eta, gradient, parameters);
}

void BaselineOptimizer::AdamW(int tensor, uint64_t step, double eta,
                              absl::Span<const float> gradient, absl::Span<float> parameters) {
  const double count = static_cast<double>(step);
  const double correction1 = 1 - std::pow(options_.beta1, count);
  const double correction2 = 1 - std::pow(options_.beta2, count);
  std::vector<float>& first = first_[tensor];
  std::vector<float>& second = second_[tensor];
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i];
    first[i] = static_cast<float>(options_.beta1 * first[i] + (1 - options_.beta1) * g);
    second[i] = static_cast<float>(options_.beta2 * second[i] + (1 - options_.beta2) * g * g);
    const double direction =
        first[i] / correction1 / (std::sqrt(second[i] / correction2) + kEpsilon);
    parameters[i] -= static_cast<float>(eta * direction);
  }
}

void BaselineOptimizer::Sgd(int tensor, double eta, double weight_decay,
                            absl::Span<const float> gradient, absl::Span<float> parameters) {
  std::vector<float>& momentum = first_[tensor];
  for (size_t i = 0; i < gradient.size(); ++i) {
    momentum[i] = static_cast<float>(momentum_ * momentum[i] + gradient[i]);
    parameters[i] -= static_cast<float>(eta * (momentum[i] + weight_decay * parameters[i]));
  }
}

absl::StatusOr<Curve> RunBaseline(const LocalRun& run, const TokenSource& tokens,
                                  const BaselineOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const Architecture> architecture,
                          ParseModelConfig(run.model_config_json));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                          Model::Create(std::move(architecture), *run.layout));
  DISTRO_ASSIGN_OR_RETURN(const SampleReader samples, SampleReader::Create(&tokens, run.config));
  return Baseline(run, samples, *model, options).Train();
}

}  // namespace distro::worker
