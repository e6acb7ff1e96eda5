#include "worker/run_worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/exceptions.h"
#include "common/base/file.h"
#include "common/base/parallel.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/member/grpc_exchange.h"
#include "common/model/architecture.h"
#include "common/net/telemetry/serve_metrics.h"
#include "worker/data/token_file.h"
#include "worker/local_identity.h"
#include "worker/metrics/gpu_readings.h"
#include "worker/metrics/metrics.h"
#include "worker/model/model.h"
#include "worker/node/node.h"
#include "worker/outputs.h"
#include "worker/train/node_workload.h"
#include "worker/train/phase_clock.h"
#include "worker/train/progress.h"
#include "worker/train/summary.h"
#include "worker/train/training_run.h"

namespace distro::worker {
namespace {

// The public text of a run of local data; nullopt without the flag.
absl::StatusOr<std::optional<TokenSource>> OpenPublicData(const WorkerOptions& options) {
  if (options.public_data.empty()) return std::nullopt;
  absl::StatusOr<TokenSource> tokens = OpenTokens(options.public_data, TokenFormat::kAuto);
  if (!tokens.ok()) return Annotate(tokens.status(), "--public_data");
  return *std::move(tokens);
}

absl::StatusOr<TokenSource> OpenData(const WorkerOptions& options) {
  const absl::StatusOr<TokenFormat> format = ParseTokenFormat(options.data_format);
  if (!format.ok()) return Annotate(format.status(), "--data_format");
  absl::StatusOr<TokenSource> tokens = OpenTokens(options.data, *format);
  if (!tokens.ok()) return Annotate(tokens.status(), "--data");
  return tokens;
}

// The fingerprint that the aggregator compares, computed once: a worker may join many times.
// FailedPrecondition with reason `other_data`: the invite names another.
absl::StatusOr<std::string> FingerprintOf(const WorkerOptions& options, const TokenSource& tokens) {
  DISTRO_ASSIGN_OR_RETURN(std::string fingerprint, tokens.Fingerprint());
  if (options.data_fingerprint.empty() || fingerprint == options.data_fingerprint)
    return fingerprint;
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_data",
      absl::StrCat(
          options.public_data.empty() ? "--data: " : "--public_data: ", "its fingerprint is ",
          fingerprint, ", and the invite is for a run on ", options.data_fingerprint));
}

TrainerOptions TrainerOptionsOf(const WorkerOptions& options, const LocalIdentity& identity) {
  NodeOptions node = options.node;
  node.torch_threads = options.threads;
  node.fsdp.param_dtype = options.ParamDtype();
  return {.worker = identity.name,
          .incarnation = RandomWord() | 1,
          .micro_batch_samples = options.micro_batch_samples,
          .hold_back = options.hold_back,
          .stateless = options.stateless,
          .updates = options.updates,
          .node = node,
          .checkpoint_dir = options.checkpoint_dir,
          .checkpoint_interval_rounds = options.checkpoint_interval_rounds,
          .keep = options.keep,
          .state_interval_rounds = options.state_interval_rounds};
}

// The peak of one rank, times the number of ranks with a GPU, or cores, of their own.
absl::StatusOr<ComputeRates> MeasureCompute(const v1::JoinResponse& run, NodeWorkload& workload,
                                            const WorkerOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
                          ParseModelConfig(run.model_config_json()));
  DISTRO_ASSIGN_OR_RETURN(const double of_one, workload.PeakFlops());
  const int ranks = options.node.device == DeviceKind::kCuda
                        ? workload.node().ranks()
                        : std::clamp(Cores() / options.threads, 1, workload.node().ranks());
  const int sequence = static_cast<int>(run.config().sequence_length());
  return ComputeRates{.flops_per_token = model->FlopsPerToken(sequence),
                      .peak_flops_per_second = of_one * ranks};
}

// A requested end is not an error.
void LogEnd(const absl::Status& status, ExitCode code, const std::string& worker, Log* log) {
  if (status.ok()) return;
  if (code >= kExitHungUp) {
    log->Info("worker stopped", {{"exit_code", static_cast<int>(code)}});
  } else {
    log->Error("worker ended", {{"exit_code", static_cast<int>(code)},
                                {"reason", ReasonOf(status)},
                                {"status", status},
                                {"remedy", RemedyFor(code, worker)}});
  }
}

// A stuck thread still uses objects that a normal exit would destroy.
[[noreturn]] void EndWithoutCleanUp(const WorkerOptions& options, const LocalIdentity& identity,
                                    const absl::Status& status, const TrainSummary& summary,
                                    Exchange* exchange, Log* log) {
  Report(options, summary, log).IgnoreError();  // the training's own status ends the process
  exchange->Leave(std::string(status.message()));
  const ExitCode code = ExitCodeFor(status, 0);
  LogEnd(status, code, identity.name, log);
  std::fflush(nullptr);
  std::_Exit(code);
}

// Trains, and fills in `summary` even if training fails.
absl::Status Train(const WorkerOptions& options, const LocalIdentity& identity, Exchange* exchange,
                   PhaseClock* phases, WorkerMetrics* metrics, Log* log, TrainSummary* summary) {
  DISTRO_ASSIGN_OR_RETURN(const TokenSource tokens, OpenData(options));
  DISTRO_ASSIGN_OR_RETURN(const std::optional<TokenSource> public_tokens, OpenPublicData(options));
  DISTRO_ASSIGN_OR_RETURN(
      std::string fingerprint,
      FingerprintOf(options, public_tokens.has_value() ? *public_tokens : tokens));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<HttpEndpoint> endpoint,
                          ServeMetrics(options.http, metrics, log));
  SetTorchThreads(options.threads);
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<RoundLines> lines, OpenRoundLines(options, log));
  Progress progress(stdout, /*live=*/isatty(STDOUT_FILENO) != 0, Clock::Real());
  std::optional<SampleWriter> samples;
  const auto goes_on = [exchange] {
    return exchange->stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
  };
  const TrainerOptions trainer = TrainerOptionsOf(options, identity);
  NodeWorkload workload(trainer,
                        {.tokens = &tokens,
                         .public_tokens = public_tokens.has_value() ? &*public_tokens : nullptr,
                         .data_fingerprint = std::move(fingerprint),
                         .run_name = options.run,
                         .phases = phases,
                         .log = log});
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run,
                          TrainingRun::Begin(trainer, &workload,
                                             {.exchange = exchange,
                                              .phases = phases,
                                              .log = log,
                                              .state = identity.state.get(),
                                              .wants_companions = !options.checkpoint_dir.empty()},
                                             [&](const TrainSummary& reading) {
                                               metrics->Update(reading);
                                               if (lines != nullptr) lines->Add(reading);
                                               if (reading.rounds_applied == 0) return;
                                               progress.Update(ReadingOf(reading));
                                               if (!samples.has_value()) return;
                                               const PhaseScope phase(phases, Phase::kEvaluate);
                                               samples->Observe(reading.next_round, reading.rounds,
                                                                goes_on);
                                             }));
  DISTRO_ASSIGN_OR_RETURN(samples, MakeSampleWriter(options, identity, run->run(), &workload, log));
  DISTRO_ASSIGN_OR_RETURN(const ComputeRates compute,
                          MeasureCompute(run->run(), workload, options));
  metrics->SetCompute(compute);
  metrics->SetReady(true);
  const absl::Status status = run->Train();
  progress.Finish();
  *summary = run->summary();
  if (workload.node().has_stuck_rank())
    EndWithoutCleanUp(options, identity, status, *summary, exchange, log);
  return status;
}

GrpcExchangeOptions ExchangeOptionsOf(const WorkerOptions& options, WorkerMetrics* metrics) {
  GrpcExchangeOptions exchange;
  exchange.channel = options.channel;
  exchange.connect_timeout = PatienceOf(options.connect_timeout);
  exchange.mirrors = options.mirrors;
  exchange.telemetry = [metrics] { return metrics->Telemetry(); };
  return exchange;
}

absl::Status Connect(const WorkerOptions& options, const LocalIdentity& identity, StopSignal* stop,
                     Log* log, TrainSummary* summary) {
  PhaseClock phases(Clock::Real());
  const std::unique_ptr<GpuReader> gpus = GpuReader::Open();
  WorkerMetrics metrics(&phases);
  metrics.SetGpus(gpus.get());
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcExchange> exchange,
                          GrpcExchange::Create(ExchangeOptionsOf(options, &metrics), log));
  metrics.SetTransfers([&exchange] { return exchange->stats(); });
  stop->SetHandler([&exchange, log] {
    log->Info("stopping", {{"reason", "signal"}});
    exchange->Stop();
  });
  const auto unregister = absl::MakeCleanup([stop] { stop->SetHandler(nullptr); });
  const absl::Status status = CatchExceptions(
      [&] { return Train(options, identity, exchange.get(), &phases, &metrics, log, summary); });
  exchange->Leave(status.ok() ? "done" : std::string(status.message()));
  return status;
}

}  // namespace

ExitCode RunWorker(const WorkerOptions& options, StopSignal* stop, Log* log) {
  options.WriteTo(log);
  if (options.channel.insecure)
    log->Warning(
        "plaintext (--insecure): anybody on the network can read and change this run's traffic");
  TrainSummary summary;
  const absl::StatusOr<LocalIdentity> identity = OpenLocalIdentity(options, log);
  absl::Status status =
      identity.ok() ? Node::CheckDevices(options.node).status() : identity.status();
  if (status.ok()) status = TryOutputs(options);
  if (status.ok())
    status = CatchExceptions([&] { return Connect(options, *identity, stop, log, &summary); });
  if (!summary.run_id.empty()) {
    const absl::Status reported = Report(options, summary, log);
    if (status.ok()) status = reported;
  }
  const ExitCode code = ExitCodeFor(status, stop->signal());
  LogEnd(status, code, identity.ok() ? identity->name : "", log);
  return code;
}

}  // namespace distro::worker
