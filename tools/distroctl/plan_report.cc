#include "tools/distroctl/plan_report.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/distroctl/plan.h"
#include "tools/distroctl/plan_cluster.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

std::string Seconds(double seconds) { return absl::StrFormat("%.2f s", seconds); }

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

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

// "deltas, K = 32, H = 5"
std::string Name(const PlanMethod& m) {
  return absl::StrCat(m.figures.name, ", K = ", m.kept,
                      m.figures.local_steps ? absl::StrCat(", H = ", m.local_steps) : "");
}

// The planned one, and those with which it is compared.
std::vector<const PlanMethod*> MethodsOf(const Plan& plan) {
  std::vector<const PlanMethod*> methods = {&plan.method};
  for (const PlanMethod& choice : plan.choices) methods.push_back(&choice);
  methods.push_back(&plan.other);
  return methods;
}

// Of the deltas that were measured; the planned ones, unless others are a tenth faster: the figures
// are no better. Null: none was measured that takes so many workers, or signs are planned.
const PlanMethod* FastestOf(const Plan& plan) {
  constexpr double kClearly = 1.1;
  if (plan.method.figures.number != kDeltasFigures.number) return nullptr;
  const PlanMethod* fastest = &plan.method;
  for (const PlanMethod& choice : plan.choices) {
    const bool serves = fastest == &plan.method && fastest->speed_up >= 1;
    const double least = fastest->speed_up * (serves ? kClearly : 1);
    if (choice.speed_up > least) fastest = &choice;
  }
  return fastest->speed_up > 0 ? fastest : nullptr;
}

std::string FastestText(const Plan& plan) {
  const PlanMethod* fastest = FastestOf(plan);
  if (fastest == nullptr) return "";
  if (fastest->speed_up < 1)
    return "\non these links one worker alone learns faster than these deltas";
  if (fastest == &plan.method) return "\nno other of these deltas learn a tenth faster";
  return absl::StrFormat(
      "\n%s: \"local_steps\": %d, \"kept_per_block\": %d in run.json",
      plan.method.speed_up > 0 ? "faster" : "fastest of those that were measured",
      fastest->local_steps, fastest->kept);
}

std::string TrafficTable(const Plan& plan, const PlanOptions& o) {
  const PlanBaseline& b = plan.baseline;
  Table table({"TRAFFIC OF A WORKER, A STEP", ">UP", ">DOWN", ">SECONDS", ">GRADIENT / UP",
               ">GAIN KEPT", ">SPEED-UP"});
  const auto add = [&](const std::string& name, double up, double down, double step,
                       const PlanMethod* m) {
    table.Add({name, Bytes(up), Bytes(down), Seconds(step),
               absl::StrFormat("%.1fx", b.gradient / up),
               m != nullptr && m->learning ? Percent(m->learning->gain) : "",
               m != nullptr && m->speed_up > 0 ? absl::StrFormat("%.1fx", m->speed_up) : ""});
  };
  for (const PlanMethod* m : MethodsOf(plan)) {
    const double up = m->update_a_step(), down = m->result_a_step();
    if (m->figures.overlaps) {
      add(absl::StrCat(Name(*m), ", overlap 1"), up, down, m->with_overlap, m);
      add(absl::StrCat(Name(*m), ", overlap 0"), up, down, m->without_overlap, m);
    } else {
      add(Name(*m), up, down, m->step(), m);
    }
  }
  add("ring All-Reduce, ZeRO-1, ZeRO-2", b.ring, b.ring, b.ring_seconds, nullptr);
  add("ZeRO-3 / FSDP over all nodes", b.zero3, b.zero3, b.zero3_seconds, nullptr);
  return absl::StrCat(table.Text(), FastestText(plan),
                      "\nAll-Reduce as the report counts it: ", Bytes(b.all_reduce),
                      " received a step from ", o.workers - 1, " peers");
}

std::string MethodText(const Plan& plan, const PlanOptions& o) {
  const PlanMethod& m = plan.method;
  const int steps = m.local_steps;
  return absl::StrCat(
      "method: ", Name(m), m.figures.overlaps ? absl::StrCat(", overlap ", m.overlap ? 1 : 0) : "",
      "\n", "a round of a worker: ", o.step_seconds.empty() ? "" : "at most ", steps,
      steps == 1 ? " step" : " steps", o.step_seconds.empty() ? " of " : " in ",
      Seconds(o.step_seconds.empty() ? m.compute / steps : m.compute), "; ", Bytes(m.update),
      " up in ", Seconds(m.upload), ", ", Bytes(m.result), " down at most in ", Seconds(m.download),
      "\n", "a step of it: ", Bytes(m.update_a_step()), " up, ", Bytes(m.result_a_step()),
      " down; ", Seconds(m.step()), m.overlap ? ", the longer of " : ": ",
      Seconds(m.compute / steps), " of compute and ", Seconds((m.upload + m.download) / steps),
      " of transfer\n",
      absl::StrFormat("%d rounds, %d steps: %.1f days\n", o.rounds, o.rounds * steps,
                      plan.run_days));
}

std::string WorkersText(const Plan& plan) {
  if (plan.workers.empty()) return "";
  Table table({"WORKER OF", ">STEPS A ROUND", ">WEIGHT", ">STEPS A DAY", ">COMPUTES"});
  double done = 0, alone = 0;
  for (const PlanWorker& w : plan.workers) {
    table.Add({absl::StrCat(Seconds(w.step_seconds), " a step"), absl::StrCat(w.steps),
               absl::StrCat(w.weight), absl::StrFormat("%.0f", w.steps_a_day), Percent(w.busy)});
    done += w.busy / w.step_seconds;
    alone += 1 / w.step_seconds;
  }
  return absl::StrCat(table.Text(), absl::StrFormat("\ntogether %.0f %% of what they would do "
                                                    "if none ever waited\n\n",
                                                    100 * done / alone));
}

std::string ServerText(const Plan& plan, const PlanOptions& o) {
  const PlanServer& s = plan.server;
  const PlanDisk& d = plan.disk;
  return absl::StrCat(
      "aggregator at one round in ", Seconds(plan.method.round), ": sends ", Bytes(s.sent_a_day),
      " and receives ", Bytes(s.received_a_day), " a day",
      absl::StrFormat(" (%.0f and %.0f Mbit/s on average)\n", s.up_mbps, s.down_mbps),
      "disk of the aggregator: ", Bytes(d.bytes), " with an archiver in at most ",
      absl::StrFormat("%.0f files, ", d.files), Bytes(d.bytes_without_archiver),
      absl::StrFormat(" without one in %.0f files at the end of %d rounds\n",
                      d.files_without_archiver, o.rounds),
      ClusterText(plan.cluster), "\n", "a join downloads ", Bytes(s.join),
      " at most: ", Seconds(s.join_seconds));
}

std::string PipelineText(const PlanPipeline& p, const PlanOptions& o) {
  return absl::StrFormat(
      "a pipeline of %d stages instead: bubble %.1f %% with %d micro-batches; %s a micro-batch and "
      "boundary, %s on this link; a step takes %s",
      p.stages, 100 * p.bubble, o.micro_batches_of_pipeline, Bytes(p.bytes),
      Seconds(p.seconds_a_micro_batch), Seconds(p.step));
}

std::string MemoryText(const Plan& plan, const PlanOptions& o) {
  return absl::StrCat("memory of a GPU, ", o.gpus, " a node:\n", MemoryTable(plan),
                      "\nthe worker's program itself: ",
                      Bytes(static_cast<double>(worker::kProgramBytes)), " of the host more");
}

nlohmann::json MethodJson(const PlanMethod& m) {
  nlohmann::json method = {{"method", m.figures.name},
                           {"kept_per_block", m.kept},
                           {"local_steps", m.local_steps},
                           {"overlap", m.overlap ? 1 : 0},
                           {"cpus_only", m.figures.cpus_only},
                           {"update_bytes", m.update},
                           {"result_bytes", m.result},
                           {"update_bytes_a_step", m.update_a_step()},
                           {"result_bytes_a_step", m.result_a_step()},
                           {"upload_seconds", m.upload},
                           {"download_seconds", m.download},
                           {"round_compute_seconds", m.compute},
                           {"round_seconds", m.round},
                           {"step_seconds", m.step()}};
  if (m.learning) method["gain_kept"] = m.learning->gain;
  if (m.speed_up > 0) method["speed_up"] = m.speed_up;
  if (!m.figures.overlaps) return method;
  method["round_seconds_overlap_1"] = m.with_overlap;
  method["round_seconds_overlap_0"] = m.without_overlap;
  return method;
}

nlohmann::json WorkersJson(const std::vector<PlanWorker>& workers) {
  nlohmann::json rows = nlohmann::json::array();
  for (const PlanWorker& w : workers) {
    rows.push_back({{"step_seconds", w.step_seconds},
                    {"steps_a_round", w.steps},
                    {"weight", w.weight},
                    {"steps_a_day", w.steps_a_day},
                    {"compute_ratio", w.busy}});
  }
  return rows;
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
  const PlanBaseline& b = plan.baseline;
  return absl::StrCat(absl::StrFormat("model: %.4g parameters, %s of 16-bit gradients\n",
                                      b.parameters, Bytes(b.gradient)),
                      MethodText(plan, options), "\n", TrafficTable(plan, options), "\n\n",
                      WorkersText(plan), ServerText(plan, options), "\n\n",
                      PipelineText(plan.pipeline, options), "\n\n", MemoryText(plan, options));
}

nlohmann::json PlanJson(const Plan& plan) {
  const PlanBaseline& b = plan.baseline;
  const PlanServer& s = plan.server;
  const PlanPipeline& p = plan.pipeline;
  nlohmann::json memories = nlohmann::json::array();
  for (const PlanMemory& m : plan.memories) memories.push_back(MemoryJson(m));
  nlohmann::json choices = nlohmann::json::array();
  for (const PlanMethod& m : plan.choices) choices.push_back(MethodJson(m));
  nlohmann::json json = MethodJson(plan.method);
  json.update({{"choices", std::move(choices)},
               {"other_method", MethodJson(plan.other)},
               {"workers", WorkersJson(plan.workers)},
               {"parameters", b.parameters},
               {"gradient_bytes", b.gradient},
               {"all_reduce_received_bytes", b.all_reduce},
               {"ring_all_reduce_bytes", b.ring},
               {"zero3_bytes", b.zero3},
               {"ring_all_reduce_seconds", b.ring_seconds},
               {"zero3_seconds", b.zero3_seconds},
               {"run_days", plan.run_days},
               {"aggregator_sent_bytes_a_day", s.sent_a_day},
               {"aggregator_received_bytes_a_day", s.received_a_day},
               {"aggregator_up_mbps", s.up_mbps},
               {"aggregator_down_mbps", s.down_mbps},
               {"header_bytes", plan.disk.header},
               {"aggregator_disk_bytes", plan.disk.bytes},
               {"aggregator_disk_files", plan.disk.files},
               {"aggregator_disk_bytes_without_archiver", plan.disk.bytes_without_archiver},
               {"aggregator_disk_files_without_archiver", plan.disk.files_without_archiver},
               {"join_bytes", s.join},
               {"join_seconds", s.join_seconds},
               {"pipeline_stages", p.stages},
               {"pipeline_bubble", p.bubble},
               {"pipeline_boundary_bytes", p.bytes},
               {"pipeline_step_seconds", p.step},
               {"worker_program_bytes", worker::kProgramBytes},
               {"memory", std::move(memories)}});
  if (const PlanMethod* fastest = FastestOf(plan); fastest != nullptr && fastest->speed_up >= 1) {
    json["fastest"] = {{"local_steps", fastest->local_steps}, {"kept_per_block", fastest->kept}};
  }
  json.update(ClusterJson(plan.cluster));
  return json;
}

}  // namespace distro::tools
