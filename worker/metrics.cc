#include "worker/metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/telemetry/metric_families.h"
#include "common/telemetry/process_metrics.h"

namespace distro::worker {

WorkerMetrics::WorkerMetrics() {
  registry_
      .AddGauge("build_info", "1, with the version of this build.",
                {{"version", std::string(Version())}})
      ->Set(1);
  round_ = registry_.AddGauge("round", "The first round that is not yet in the parameters.");
  loss_ = registry_.AddGauge("loss", "Training loss of the last own step, in nats a token.");
  evaluation_loss_ =
      registry_.AddGauge("eval_loss", "Held-out loss of the last evaluation, in nats a token.");
  gradient_norm_ =
      registry_.AddGauge("grad_norm", "Norm of the last own gradient, before clipping.");
  learning_rate_ = registry_.AddGauge("learning_rate", "Learning rate of the last own step.");
  for (int i = 0; i < kPhases; ++i) {
    phases_[i] = registry_.AddCounter("phase_seconds_total",
                                      "Time of the training thread by phase, in seconds.",
                                      {{"phase", std::string(PhaseName(static_cast<Phase>(i)))}});
  }
  AddMirror("tokens_total", "Tokens trained on.", {},
            [](const TrainSummary& s) { return double(s.tokens); });
  AddMirror("nonfinite_steps_total", "Steps whose loss or gradient was not finite.", {},
            [](const TrainSummary& s) { return double(s.nonfinite_steps); });
  AddMirror("resyncs_total", "Times that the parameters were taken from a snapshot again.", {},
            [](const TrainSummary& s) { return double(s.resyncs); });
  AddUpdates();
  AddTransfers();
}

void WorkerMetrics::AddUpdates() {
  AddMirror("updates_total", "Updates handed in.", {},
            [](const TrainSummary& s) { return double(s.updates_sent); });
  for (int i = 0; i < kExclusions; ++i) {
    AddMirror("updates_excluded_total", "Updates of which a segment or more was not included.",
              {{"reason", std::string(ExclusionName(static_cast<Exclusion>(i)))}},
              [i](const TrainSummary& s) { return double(s.excluded[i]); });
  }
  AddMirror(
      "gradient_bytes_total",
      "Bytes of the float32 gradients that sending gradients would have uploaded.", {},
      [](const TrainSummary& s) { return 4.0 * double(s.parameters) * double(s.updates_sent); });
}

void WorkerMetrics::AddTransfers() {
  AddMirror("sent_bytes_total", "Payload bytes sent.", {{"kind", "update"}},
            [](const TrainSummary& s) { return double(s.transfer.sent_payload_bytes); });
  AddMirror("received_bytes_total", "Payload bytes received.", {{"kind", "result"}},
            [](const TrainSummary& s) { return double(s.transfer.received_payload_bytes); });
  AddMirror("transfer_seconds_total",
            "Time with payload bytes in flight, in seconds; it overlaps with all phases.",
            {{"direction", "upload"}},
            [](const TrainSummary& s) { return absl::ToDoubleSeconds(s.transfer.upload_time); });
  AddMirror("transfer_seconds_total",
            "Time with payload bytes in flight, in seconds; it overlaps with all phases.",
            {{"direction", "download"}},
            [](const TrainSummary& s) { return absl::ToDoubleSeconds(s.transfer.download_time); });
  for (int rpc = 0; rpc < kRetriedRpcs; ++rpc) {
    for (int code = 0; code < kRetryCodes; ++code) {
      AddMirror(
          "retries_total", "Calls to the aggregator that were made again.",
          {{"rpc", std::string(RetriedRpcName(static_cast<RetriedRpc>(rpc)))},
           {"code", std::string(RetryCodeName(code))}},
          [rpc, code](const TrainSummary& s) { return double(s.transfer.retries[rpc][code]); });
    }
  }
  AddMirror("reconnects_total", "Subscriptions to the aggregator that were opened again.", {},
            [](const TrainSummary& s) { return double(s.transfer.reconnects); });
}

void WorkerMetrics::AddMirror(const std::string& name, const std::string& help,
                              const MetricLabels& labels, Reading reading) {
  counters_.push_back({registry_.AddCounter(name, help, labels), std::move(reading)});
}

void WorkerMetrics::Update(const TrainSummary& summary) {
  round_->Set(double(summary.next_round));
  loss_->Set(summary.training_loss);
  gradient_norm_->Set(summary.gradient_norm);
  learning_rate_->Set(summary.learning_rate);
  if (summary.last_evaluation_loss.has_value())
    evaluation_loss_->Set(*summary.last_evaluation_loss);
  for (const Mirror& mirror : counters_) {
    mirror.counter->Increment(mirror.reading(summary) - mirror.counter->value());
  }
  for (int i = 0; i < kPhases; ++i) {
    phases_[i]->Increment(absl::ToDoubleSeconds(summary.phases[i]) - phases_[i]->value());
  }
}

std::vector<prometheus::MetricFamily> WorkerMetrics::Collect() {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  AppendFamilies(ProcessMetrics(), &families);
  return families;
}

ReadyReport WorkerMetrics::Ready() const {
  const bool ready = ready_;
  return {.ready = ready,
          .checks = {{.name = "run", .ok = ready, .detail = ready ? "joined" : "not joined yet"}}};
}

}  // namespace distro::worker
