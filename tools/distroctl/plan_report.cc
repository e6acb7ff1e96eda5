#include "tools/distroctl/plan_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/distroctl/plan.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

std::string Seconds(double seconds) { return absl::StrFormat("%.2f s", seconds); }

std::string MemoryTable(const Plan& plan) {
  Table table({"STRATEGY", ">PARAMETERS", ">GRADIENTS", ">MOMENTUM", ">GATHERED", ">ACTIVATIONS",
               ">WORKSPACE", ">TOTAL", "FITS", "LARGEST AT"});
  for (const PlanMemory& m : plan.memories) {
    std::vector<std::string> row = {std::string(worker::Name(m.sharding))};
    for (const int64_t bytes : m.gpu.bytes) row.push_back(Bytes(static_cast<double>(bytes)));
    row.push_back(Bytes(static_cast<double>(m.gpu.device_bytes)));
    row.push_back(m.fits ? "yes" : "no");
    row.push_back(m.gpu.phase);
    table.Add(std::move(row));
  }
  return table.Text();
}

std::string TrafficTable(const Plan& plan, const PlanOptions& o) {
  const PlanBytes& b = plan.bytes;
  const PlanTimes& t = plan.times;
  Table table({"TRAFFIC OF A WORKER", ">UP", ">DOWN", ">STEP", ">GRADIENT / UP"});
  const auto add = [&](const std::string& name, double up, double down, double step) {
    table.Add(
        {name, Bytes(up), Bytes(down), Seconds(step), absl::StrFormat("%.1fx", b.gradient / up)});
  };
  add("DisTrO, overlap 1", b.update, b.result, t.with_overlap);
  add("DisTrO, overlap 0", b.update, b.result, t.without_overlap);
  add("ring All-Reduce, ZeRO-1, ZeRO-2", b.ring, b.ring, t.ring);
  add("ZeRO-3 / FSDP over all nodes", b.zero3, b.zero3, t.zero3);
  return absl::StrCat(table.Text(), "\nAll-Reduce as the report counts it: ", Bytes(b.all_reduce),
                      " received a step from ", o.nodes - 1, " peers");
}

std::string ServerText(const Plan& plan, const PlanOptions& o) {
  const PlanServer& s = plan.server;
  return absl::StrCat(
      "aggregator at one round in ", Seconds(plan.times.round), ": sends ", Bytes(s.sent_a_day),
      " and receives ", Bytes(s.received_a_day), " a day",
      absl::StrFormat(" (%.0f and %.0f Mbit/s on average)\n", s.up_mbps, s.down_mbps),
      "disk of the aggregator: ", Bytes(s.disk_with_archiver), " with an archiver, ",
      Bytes(s.disk_without_archiver), " without one at the end of ", o.rounds, " rounds\n",
      "a join downloads ", Bytes(s.join), " at most: ", Seconds(s.join_seconds));
}

std::string PipelineText(const PlanPipeline& p, const PlanOptions& o) {
  return absl::StrFormat(
      "a pipeline of %d stages instead: bubble %.1f %% with %d micro-batches; %s a micro-batch and "
      "boundary, %s on this link; a step takes %s",
      p.stages, 100 * p.bubble, o.micro_batches_of_pipeline, Bytes(p.bytes),
      Seconds(p.seconds_a_micro_batch), Seconds(p.step));
}

nlohmann::json MemoryJson(const PlanMemory& m) {
  nlohmann::json memory = {{"strategy", worker::Name(m.sharding)},
                           {"total_bytes", m.gpu.device_bytes},
                           {"phase", m.gpu.phase},
                           {"fits", m.fits}};
  for (int i = 0; i < worker::kMemoryCategories; ++i) {
    const auto category = static_cast<worker::MemoryCategory>(i);
    memory[absl::StrCat(worker::Name(category), "_bytes")] = m.gpu.bytes[i];
  }
  return memory;
}

}  // namespace

std::string PlanText(const Plan& plan, const PlanOptions& options) {
  const PlanBytes& b = plan.bytes;
  const PlanTimes& t = plan.times;
  return absl::StrCat(absl::StrFormat("model: %.4g parameters, %s of 16-bit gradients\n",
                                      b.parameters, Bytes(b.gradient)),
                      "a round of a worker: ", Bytes(b.update), " up in ", Seconds(t.upload), ", ",
                      Bytes(b.result), " down at most in ", Seconds(t.download), "\n",
                      absl::StrFormat("%d rounds: %.1f days\n\n", options.rounds, t.run_days),
                      TrafficTable(plan, options), "\n\n", ServerText(plan, options), "\n\n",
                      PipelineText(plan.pipeline, options), "\n\nmemory of a GPU, ", options.gpus,
                      " a node:\n", MemoryTable(plan));
}

nlohmann::json PlanJson(const Plan& plan) {
  const PlanBytes& b = plan.bytes;
  const PlanTimes& t = plan.times;
  const PlanServer& s = plan.server;
  const PlanPipeline& p = plan.pipeline;
  nlohmann::json memories = nlohmann::json::array();
  for (const PlanMemory& m : plan.memories) memories.push_back(MemoryJson(m));
  return {{"parameters", b.parameters},
          {"gradient_bytes", b.gradient},
          {"update_bytes", b.update},
          {"result_bytes", b.result},
          {"all_reduce_received_bytes", b.all_reduce},
          {"ring_all_reduce_bytes", b.ring},
          {"zero3_bytes", b.zero3},
          {"upload_seconds", t.upload},
          {"download_seconds", t.download},
          {"round_seconds", t.round},
          {"round_seconds_overlap_1", t.with_overlap},
          {"round_seconds_overlap_0", t.without_overlap},
          {"ring_all_reduce_seconds", t.ring},
          {"zero3_seconds", t.zero3},
          {"run_days", t.run_days},
          {"aggregator_sent_bytes_a_day", s.sent_a_day},
          {"aggregator_received_bytes_a_day", s.received_a_day},
          {"aggregator_up_mbps", s.up_mbps},
          {"aggregator_down_mbps", s.down_mbps},
          {"aggregator_disk_bytes", s.disk_with_archiver},
          {"aggregator_disk_bytes_without_archiver", s.disk_without_archiver},
          {"join_bytes", s.join},
          {"join_seconds", s.join_seconds},
          {"pipeline_stages", p.stages},
          {"pipeline_bubble", p.bubble},
          {"pipeline_boundary_bytes", p.bytes},
          {"pipeline_step_seconds", p.step},
          {"memory", std::move(memories)}};
}

}  // namespace distro::tools
