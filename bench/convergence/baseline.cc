#include "bench/convergence/baseline.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/convergence/deltas_worker.h"
#include "bench/convergence/held_out.h"
#include "common/base/status_macros.h"
#include "common/method/base/learning_rate.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/sample_pool.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {
namespace {

// One training run with All-Reduce, from the run's initial model.
class Baseline {
 public:
  Baseline(const server::RunIdentity& run, const SampleReader& samples, const Model& model,
           const BaselineOptions& options, std::vector<InnerTensor> tensors)
      : run_(run),
        config_(run.config),
        layout_(*run.layout),
        samples_(samples),
        model_(model),
        held_out_(&run.config, &samples, &model),
        optimizer_(options, run.config, *run.layout, std::move(tensors)),
        parameters_(*run.layout),
        gradient_(*run.layout) {}

  absl::StatusOr<Curve> Train() {
    DISTRO_RETURN_IF_ERROR(ReadSnapshot(run_.initial_snapshot_path, layout_, &parameters_));
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
    const double eta = LearningRate(config_, round.value());
    for (int i = 0; i < gradient_.tensors(); ++i) {
      for (float& g : gradient_.tensor(i)) g *= scale;
    }
    return optimizer_.Step(eta, SpansOf(&gradient_), SpansOf(&parameters_));
  }

  // The mean over the next samples of all workers, in any division among them.
  absl::Status Gradient() {
    const auto samples = static_cast<int>(config_.start_workers() * config_.samples_per_worker());
    DISTRO_RETURN_IF_ERROR(
        samples_.ReadTraining(ConsecutiveSamples(next_sample_, samples), &tokens_));
    next_sample_ += samples;
    return model_
        .LossAndGradient({.tokens = tokens_, .sequences = samples}, parameters_,
                         Accumulation::kStore, &gradient_)
        .status();
  }

  absl::Status Evaluate(uint64_t round, Curve* curve) {
    DISTRO_ASSIGN_OR_RETURN(const double loss, held_out_.Loss(parameters_));
    const uint64_t workers = config_.start_workers();
    const uint64_t bytes = round * 2 * (workers - 1) * 2 * layout_.elements() / workers;
    curve->Add(
        {.round = round,
         .tokens = round * workers * config_.samples_per_worker() * config_.sequence_length(),
         .held_out_loss = loss,
         .sent_bytes = bytes,
         .received_bytes = bytes});
    return absl::OkStatus();
  }

  const server::RunIdentity& run_;
  const v1::RunConfig& config_;
  const Layout& layout_;
  const SampleReader& samples_;
  const Model& model_;
  HeldOut held_out_;
  BaselineOptimizer optimizer_;
  TensorBuffer parameters_;
  TensorBuffer gradient_;
  std::vector<int32_t> tokens_;
  uint64_t next_sample_ = 0;
};

}  // namespace

BaselineOptimizer::BaselineOptimizer(const BaselineOptions& options, const v1::RunConfig& config,
                                     const Layout& layout, std::vector<InnerTensor> tensors)
    : method_(options.method),
      momentum_(config.beta()),
      weight_decay_(config.weight_decay()),
      tensors_(std::move(tensors)),
      first_(layout),
      second_(layout),
      inner_({.method = method_ == BaselineMethod::kMuon ? InnerMethod::kMuon : InnerMethod::kAdamW,
              .beta1 = static_cast<float>(options.beta1),
              .beta2 = static_cast<float>(options.beta2),
              .mu = static_cast<float>(config.beta()),
              .weight_decay = static_cast<float>(config.weight_decay())},
             tensors_, host_.Of({.layout = &layout, .runs = WholeRuns(layout)}), SpansOf(&first_),
             SpansOf(&second_)) {}

absl::Status BaselineOptimizer::Step(double eta, const RunSpans& gradient,
                                     const RunSpans& parameters) {
  if (method_ != BaselineMethod::kSgd)
    return inner_.Step(static_cast<float>(eta), 1, gradient, parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    Sgd(static_cast<int>(i), eta, gradient[i], parameters[i]);
  return absl::OkStatus();
}

void BaselineOptimizer::Sgd(int tensor, double eta, absl::Span<const float> gradient,
                            absl::Span<float> parameters) {
  const double decay = tensors_[tensor].decays ? weight_decay_ : 0;
  const absl::Span<float> momentum = first_.tensor(tensor);
  for (size_t i = 0; i < gradient.size(); ++i) {
    momentum[i] = static_cast<float>(momentum_ * momentum[i] + gradient[i]);
    parameters[i] -= static_cast<float>(eta * (momentum[i] + decay * parameters[i]));
  }
}

absl::StatusOr<Curve> RunBaseline(const server::RunIdentity& run, const TokenSource& tokens,
                                  const BaselineOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const Architecture> architecture,
                          ParseModelConfig(run.model_config_json));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                          Model::Create(architecture, *run.layout));
  DISTRO_ASSIGN_OR_RETURN(const SampleReader samples, SampleReader::Create(&tokens, run.config));
  return Baseline(run, samples, *model, options,
                  InnerTensors(*run.layout, UnitTensors(*architecture, run.layout->manifest())))
      .Train();
}

}  // namespace distro::worker
