#include "bench/convergence/deltas.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/convergence/deltas_aggregator.h"
#include "bench/convergence/deltas_worker.h"
#include "bench/convergence/held_out.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/snapshot.h"
#include "kernels/block_site.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/deltas_view.h"
#include "worker/model/model.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {
namespace {

class DeltasRun {
 public:
  DeltasRun(const server::RunIdentity& run, const SampleReader& samples, const Model& model,
            const Architecture& architecture, const DeltasSettings& settings, int threads)
      : run_(run),
        config_(run.config),
        layout_(*run.layout),
        settings_(settings),
        threads_(threads),
        lab_{.settings = &settings_,
             .config = &run.config,
             .layout = run.layout.get(),
             .samples = &samples,
             .model = &model,
             .tensors = InnerTensors(layout_, UnitTensors(architecture, layout_.manifest())),
             .forms = FormsOf(settings_, layout_, lab_.tensors)},
        held_out_(&run.config, &samples, &model),
        aggregator_(&settings_, &run.config, &lab_.forms),
        parameters_(layout_),
        delta_(layout_),
        outer_momentum_(layout_) {
    for (uint32_t w = 0; w < config_.start_workers(); ++w)
      workers_.push_back(std::make_unique<DeltasWorker>(&lab_, static_cast<int>(w)));
  }

  absl::StatusOr<DeltasLearned> Train() {
    DISTRO_RETURN_IF_ERROR(ReadSnapshot(run_.initial_snapshot_path, layout_, &parameters_));
    Curve curve(config_.rounds());
    DISTRO_RETURN_IF_ERROR(Evaluate(0, &curve));
    uint64_t evaluated = 0;
    const uint64_t steps = config_.rounds(), interval = config_.evaluation_interval_rounds();
    for (uint64_t round = 0, step = 0; step < steps; ++round) {
      const int window = static_cast<int>(std::min<uint64_t>(settings_.window, steps - step));
      DISTRO_RETURN_IF_ERROR(Round(round, step, window));
      step += window;
      for (size_t w = 0; w < workers_.size(); ++w) {
        tokens_ += uint64_t{config_.samples_per_worker()} * config_.sequence_length() *
                   StepsOf(settings_, static_cast<int>(w), window);
      }
      if (step == steps && held_.has_value())
        DISTRO_RETURN_IF_ERROR(Apply(*std::exchange(held_, std::nullopt)));
      if (step == steps || (interval > 0 && step / interval > evaluated / interval)) {
        DISTRO_RETURN_IF_ERROR(Evaluate(step, &curve));
        evaluated = step;
      }
      curve.Progress(step);
    }
    return DeltasLearned{.curve = std::move(curve), .suspected = aggregator_.suspected()};
  }

 private:
  using Workers = std::vector<DeltasWorker*>;

  // The workers that take part; nullptr for the others.
  Workers Active(uint64_t round) const {
    Workers active;
    for (size_t w = 0; w < workers_.size(); ++w) {
      const bool late =
          !settings_.first_round.empty() && round < static_cast<uint64_t>(settings_.first_round[w]);
      active.push_back(late ? nullptr : workers_[w].get());
    }
    return active;
  }

  absl::Status Round(uint64_t round, uint64_t step, int window) {
    const Workers active = Active(round);
    const DeltaRound open = aggregator_.Open(round, step, window);
    if (settings_.overlap == 0 || round == 0) {
      for (DeltasWorker* worker : active) {
        if (worker != nullptr) DISTRO_RETURN_IF_ERROR(worker->GoOnFrom(parameters_));
      }
    }
    const int before = held_.has_value() ? std::min(settings_.overlap, window) : 0;
    DISTRO_RETURN_IF_ERROR(
        Together(active, [&](DeltasWorker& worker) { return Steps(worker, step, before); }));
    if (held_.has_value()) {
      DISTRO_RETURN_IF_ERROR(Apply(*std::exchange(held_, std::nullopt)));
      for (DeltasWorker* worker : active) {
        if (worker != nullptr) worker->CarryOnto(parameters_);
      }
    }
    DISTRO_RETURN_IF_ERROR(Together(active, [&](DeltasWorker& worker) {
      const int count = StepsOf(settings_, worker.index(), window) - before;
      const absl::Status status = Steps(worker, step + before, count);
      return status.ok() ? worker.Compress(open, &parameters_) : status;
    }));
    DeltasOutcome outcome = aggregator_.Close(active);
    if (settings_.overlap == 0) return Apply(outcome);
    held_ = std::move(outcome);
    return absl::OkStatus();
  }

  static absl::Status Steps(DeltasWorker& worker, uint64_t first, int count) {
    for (int i = 0; i < count; ++i) DISTRO_RETURN_IF_ERROR(worker.Step(first + i));
    return absl::OkStatus();
  }

  absl::Status Together(const Workers& active,
                        const std::function<absl::Status(DeltasWorker&)>& work) const {
    std::vector<absl::Status> statuses(active.size());
    RunParallel(threads_, static_cast<int64_t>(active.size()), [&](int /*thread*/, int64_t i) {
      SetTorchThreads(1);
      if (active[i] != nullptr) statuses[i] = work(*active[i]);
    });
    for (const absl::Status& status : statuses) DISTRO_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

  absl::Status Apply(const DeltasOutcome& outcome) {
    for (const int w : outcome.included) {
      if (IsReal(settings_))
        DISTRO_RETURN_IF_ERROR(workers_[w]->Feedback(outcome.result));
      else
        workers_[w]->FeedbackOfMessage(outcome.returned);
    }
    if (IsReal(settings_))
      ApplyResult(outcome);
    else
      ApplyVariant(outcome);
    return absl::OkStatus();
  }

  void ApplyResult(const DeltasOutcome& outcome) {
    uint32_t invalid = kAllBlocksValid;
    for (size_t i = 0; i < layout_.tensors().size(); ++i) {
      const TensorLayout& tensor = layout_.tensors()[i];
      const int64_t count = tensor.matrix.Blocks();
      backend_->ApplyDeltas(tensor.matrix, {.first = 0, .count = count},
                            {.alpha = outcome.alpha, .as_dct = lab_.forms.as_dct[i]},
                            ViewOf(outcome.result, {.first = tensor.first_block, .count = count}),
                            parameters_.tensor(static_cast<int>(i)), &invalid);
    }
    CheckShape(invalid == kAllBlocksValid, "a result of the lab breaks the rules");
  }

  void ApplyVariant(const DeltasOutcome& outcome) {
    SpreadMeans(outcome.means.means, lab_.forms, &delta_);
    const auto mu = static_cast<float>(settings_.nesterov);
    for (int i = 0; i < parameters_.tensors(); ++i) {
      const float decay = layout_.tensors()[i].decays ? static_cast<float>(outcome.decay) : 0.0f;
      const absl::Span<float> p = parameters_.tensor(i), u = outer_momentum_.tensor(i);
      const absl::Span<const float> delta = delta_.tensor(i);
      for (size_t j = 0; j < p.size(); ++j) {
        u[j] = mu * u[j] + delta[j];
        const float step = mu == 0 ? delta[j] : delta[j] + mu * u[j];
        p[j] -= decay * p[j] + outcome.alpha * step;
      }
    }
  }

  absl::Status Evaluate(uint64_t step, Curve* curve) {
    SetTorchThreads(1);
    DISTRO_ASSIGN_OR_RETURN(const double loss, held_out_.Loss(parameters_));
    curve->Add({.round = step,
                .tokens = tokens_,
                .held_out_loss = loss,
                .sent_bytes = aggregator_.sent_bytes(),
                .received_bytes = aggregator_.received_bytes()});
    return absl::OkStatus();
  }

  const server::RunIdentity& run_;
  const v1::RunConfig& config_;
  const Layout& layout_;
  const DeltasSettings settings_;
  const int threads_;
  const DeltasLab lab_;
  HeldOut held_out_;
  DeltasAggregator aggregator_;
  std::vector<std::unique_ptr<DeltasWorker>> workers_;
  uint64_t tokens_ = 0;  // of all workers, late ones too
  TensorBuffer parameters_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend();
  TensorBuffer delta_;                 // of variants: a round's step, dense
  TensorBuffer outer_momentum_;        // of variants
  std::optional<DeltasOutcome> held_;  // with overlap: what is not applied yet
};

absl::Status Check(const server::RunIdentity& run, const DeltasSettings& settings) {
  if (run.layout->segments() != 1)
    return absl::InvalidArgumentError("the lab combines one segment: raise segment_blocks");
  for (const auto& [name, numbers] : {std::pair{"first_round", &settings.first_round},
                                      std::pair{"worker_steps", &settings.worker_steps}}) {
    if (!numbers->empty() && numbers->size() != run.config.start_workers())
      return absl::InvalidArgumentError(
          absl::StrCat("settings: ", name, ": not a number for each worker"));
  }
  if (static_cast<uint32_t>(settings.attackers) >= run.config.start_workers() &&
      !settings.attack.empty())
    return absl::InvalidArgumentError("settings: attackers: as many as there are workers");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeltasLearned> RunDeltas(const server::RunIdentity& run, const TokenSource& tokens,
                                        const DeltasSettings& settings, int threads) {
  DISTRO_RETURN_IF_ERROR(Check(run, settings));
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> architecture,
                          ParseModelConfig(run.model_config_json));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                          Model::Create(architecture, *run.layout));
  DISTRO_ASSIGN_OR_RETURN(const SampleReader samples, SampleReader::Create(&tokens, run.config));
  return DeltasRun(run, samples, *model, *architecture, settings, threads).Train();
}

}  // namespace distro::worker
