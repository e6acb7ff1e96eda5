#include "bench/convergence/virtual_workers.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "bench/local/local_aggregator.h"
#include "bench/local/local_exchange.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/model/model.h"
#include "worker/train/node_workload.h"
#include "worker/train/training_run.h"

namespace distro::worker {
namespace {

// Adds a point after each evaluation of the worker.
class CurveObserver {
 public:
  CurveObserver(Curve* curve, const LabExchange* exchange, uint64_t workers)
      : curve_(curve), exchange_(exchange), workers_(workers) {}

  void operator()(const TrainSummary& summary) {
    curve_->Progress(summary.next_round);
    if (!summary.last_evaluation_loss.has_value() || summary.last_evaluation_loss == shown_) return;
    shown_ = summary.last_evaluation_loss;
    curve_->Add({.round = summary.next_round,
                 .tokens = summary.tokens * workers_,
                 .held_out_loss = *shown_,
                 .sent_bytes = exchange_->sent_bytes(),
                 .received_bytes = exchange_->received_bytes()});
  }

 private:
  Curve* const curve_;
  const LabExchange* const exchange_;
  const uint64_t workers_;
  std::optional<double> shown_;
};

struct Worker {
  int index = 0;
  LabLink link;
  int micro_batch_samples = 0;
};

// `curve` is set for the first worker, otherwise nullptr.
absl::Status Train(const Worker& worker, const TokenSource& tokens,
                   server::LocalAggregator* aggregator, Curve* curve) {
  SetTorchThreads(1);
  Log log(LogLevel::kWarning);
  PhaseClock phases(Clock::Real());
  server::LocalExchange local(aggregator);
  LabExchange exchange(&local, worker.link);
  Trainer::Observer observer = [](const TrainSummary&) {};
  if (curve != nullptr)
    observer = CurveObserver(curve, &exchange, aggregator->run().config.start_workers());
  const TrainerOptions options = {.worker = absl::StrFormat("w%03d", worker.index),
                                  .incarnation = static_cast<uint64_t>(worker.index) + 1,
                                  .micro_batch_samples = worker.micro_batch_samples,
                                  .checkpoint_dir = ""};
  DISTRO_ASSIGN_OR_RETURN(const std::string fingerprint, tokens.Fingerprint());
  NodeWorkload workload(
      options,
      {.tokens = &tokens, .data_fingerprint = fingerprint, .phases = &phases, .log = &log});
  DISTRO_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainingRun> run,
      TrainingRun::Begin(options, &workload,
                         {.exchange = &exchange, .phases = &phases, .log = &log}, observer));
  const absl::Status status = run->Train();
  exchange.Leave("done");
  return status;
}

}  // namespace

absl::StatusOr<Curve> RunVirtualWorkers(server::RunIdentity run, const TokenSource& tokens,
                                        const VirtualWorkersOptions& options) {
  Curve curve(run.config.rounds());
  run.config.set_min_workers(run.config.start_workers());
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<server::LocalAggregator> aggregator,
                          server::LocalAggregator::Create(run));
  absl::Mutex mu;
  absl::Status failure;  // the first
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.links.size(); ++i) {
    threads.emplace_back([&, i] {
      LabLink link = options.links[i];
      link.evaluates = i == 0;
      const Worker worker = {.index = static_cast<int>(i),
                             .link = link,
                             .micro_batch_samples = options.micro_batch_samples};
      const absl::Status status =
          Train(worker, tokens, aggregator.get(), i == 0 ? &curve : nullptr);
      if (status.ok()) return;
      const absl::MutexLock lock(&mu);
      failure.Update(status);
      aggregator->rounds().Stop();  // the others would wait for this worker
    });
  }
  for (std::thread& thread : threads) thread.join();
  DISTRO_RETURN_IF_ERROR(failure);
  return curve;
}

}  // namespace distro::worker
