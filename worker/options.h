// The validated options of a worker process. Defaults of flags are here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/client/options/channel_options.h"
#include "worker/plan/node_options.h"
#include "worker/train/sample_options.h"

namespace distro::worker {

struct WorkerOptions {
  // The aggregator's address, TLS and credentials. Required.
  ChannelOptions channel;
  // File of tokens or text; the same on every worker of a run. Required.
  std::string data;
  // File of tokens or text that all workers of a run with local data have; `data` is then this
  // worker's own. Empty: the run's data is shared.
  std::string public_data;
  // Format of `data`: text, llmc, uint16, uint32, or auto, which decides by the file's name.
  std::string data_format = "auto";
  // From an invite: the name of the expected run, and the fingerprint of its data; empty: any.
  std::string run;
  std::string data_fingerprint;
  // Name in the run, [a-z0-9-]{1,63}; with TLS that of the credential. Default: the name stored in
  // `state_dir`, otherwise the host's name and a random suffix.
  std::string name;
  // Torch threads of each rank. Larger values are faster up to the number of cores; results are
  // bit-reproducible with 1 only.
  int threads = 1;
  // Samples of one forward and backward pass of a rank; 0: all samples of a round, by one rank;
  // kAutoMicroBatch: as many as fit. Larger values are faster and cost activation memory.
  int micro_batch_samples = 0;
  // Time added to every gradient, to simulate slower workers in tests.
  absl::Duration hold_back = absl::ZeroDuration();
  // Every round begins without state of earlier rounds; requires an empty state_dir.
  bool stateless = false;
  // Number of updates after which the worker leaves; 0: when the run is done.
  uint64_t updates = 0;
  // How the node's ranks share model and samples. Its torch_threads and fsdp.param_dtype are
  // ignored: `threads` and `param_dtype` apply to every rank.
  NodeOptions node = {};
  // Type of the parameters for computation; empty: DefaultParamDtype of the device. f32 on a GPU
  // needs twice the memory and, by data sheets, 15 times as long.
  std::optional<FloatType> param_dtype = {};
  // Folder for the trained model, Hugging Face layout; empty: it is not written.
  std::string checkpoint_dir;
  // Rounds between further checkpoints; 0: only one at the end.
  uint64_t checkpoint_interval_rounds = 0;
  // Newest of these further checkpoints to keep; 0: all, which fill any disk in time.
  int keep = 3;
  // Folder for the worker's own state, with which a restarted process continues; empty: no state is
  // stored. Each worker needs its own.
  std::string state_dir;
  // Rounds between saves of the state, which is also saved at the end; 0: only at the end. With
  // smaller values a killed process loses less momentum; each save writes 4 bytes per parameter (12
  // with deltas) while training waits.
  uint64_t state_interval_rounds = 100;
  // The prompt that the model continues during training.
  SampleOptions sample = {};
  // File for the summary as JSON; empty: no summary file.
  std::string summary;
  // File with one JSON line per round; empty: metrics.jsonl in `state_dir`, or none without a
  // state_dir. Limited to twice kMaxRoundLineBytes.
  std::string metrics_file;
  // How long to wait for the first answer of an aggregator; 0: no limit. Smaller values report an
  // error sooner, but may not wait for an aggregator that is starting.
  absl::Duration connect_timeout = absl::Seconds(60);
  // As GrpcExchangeOptions::mirrors.
  std::vector<std::string> mirrors = {};
  // Address of /metrics, /healthz and /readyz; port 0 takes a free one and logs it.
  std::string http = "127.0.0.1:0";
  LogLevel log_level = LogLevel::kInfo;

  // Takes address, name, run and data from the invite of `channel`, if there is one. The statuses
  // of distro::TakeInvite; InvalidArgument: the invite is not for a worker, or `name` is another
  // one.
  absl::Status TakeInvite(absl::Time now);
  // InvalidArgument names the flag and the remedy.
  absl::Status Validate() const;
  // The type of the parameters for computation: `param_dtype`, or the device's default.
  FloatType ParamDtype() const { return param_dtype.value_or(DefaultParamDtype(node.device)); }
  // Logs the effective options in one line, at the start of the process.
  void WriteTo(Log* log) const;
};

}  // namespace distro::worker
