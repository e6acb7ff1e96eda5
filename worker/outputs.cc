#include "worker/outputs.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/output.h"
#include "common/base/output_path.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"

namespace distro::worker {

absl::Status TryOutputs(const WorkerOptions& options) {
  if (!options.checkpoint_dir.empty())
    DISTRO_RETURN_IF_ERROR(Annotate(TryOutputFolder(options.checkpoint_dir), "--checkpoint_dir"));
  if (options.summary.empty()) return absl::OkStatus();
  return Annotate(TryOutputFile(options.summary), "--summary");
}

absl::StatusOr<std::unique_ptr<RoundLines>> OpenRoundLines(const WorkerOptions& options, Log* log) {
  std::string path = options.metrics_file;
  if (path.empty() && !options.state_dir.empty()) path = options.state_dir + "/metrics.jsonl";
  if (path.empty()) return nullptr;
  auto lines = RoundLines::Open(path, log, Clock::Real());
  if (!lines.ok()) return Annotate(lines.status(), "--metrics_file");
  return lines;
}

absl::StatusOr<std::optional<SampleWriter>> MakeSampleWriter(const WorkerOptions& options,
                                                             const LocalIdentity& identity,
                                                             const v1::JoinResponse& run,
                                                             NodeWorkload* workload, Log* log) {
  if (options.sample.prompt.empty()) return std::nullopt;
  DISTRO_ASSIGN_OR_RETURN(
      SampleWriter writer,
      SampleWriter::Create(options.sample,
                           {.node = workload->mutable_node(),
                            .positions = static_cast<int>(run.config().sequence_length()),
                            .vocab_size = workload->vocab_size(),
                            .file = identity.state == nullptr
                                        ? ""
                                        : absl::StrCat(identity.state->path(), "/samples.jsonl"),
                            .log = log}));
  return writer;
}

absl::Status Report(const WorkerOptions& options, const TrainSummary& summary, Log* log) {
  OutputLines(STDOUT_FILENO).Write(ShownLines(SummaryText(summary)));
  if (options.summary.empty()) return absl::OkStatus();
  const absl::Status status =
      Annotate(WriteFileAtomically(options.summary, SummaryJson(summary)), "--summary");
  if (!status.ok()) log->Error("summary was not written", {{"reason", status}});
  return status;
}

}  // namespace distro::worker
