// The validated options of a worker process. Defaults of flags are here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/client/options/channel_options.h"
#include "worker/plan/node_options.h"
#include "worker/train/sample_options.h"

namespace distro::worker {

// InvalidArgument names --threads and its range.
absl::Status ValidateThreads(int threads);

struct WorkerOptions {
  // The aggregator and how to talk with it. Required.
  ChannelOptions channel;
  // File of tokens or text; the same on every worker of a run. Required.
  std::string data;
  // File of tokens or text that every worker of a run of local data holds; `data` is then this
  // worker's own. Empty: the run's data is shared.
  std::string public_data;
  // Of `data`: text, llmc, uint16, uint32, or auto, which goes by its name.
  std::string data_format = "auto";
  // Of an invite: the name of the run that is meant, and the fingerprint of its data; empty: any.
  std::string run;
  std::string data_fingerprint;
  // Name in the run, [a-z0-9-]{1,63}; with TLS that of the credential. Default: the name that
  // `state_dir` keeps, else the host's name and a random suffix.
  std::string name;
  // Torch threads of each rank. Larger values are faster up to the number of cores; results are
  // bit-reproducible with 1 only.
  int threads = 1;
  // Samples of one forward and backward pass of a rank; 0: all of a round's, by one rank;
  // kAutoMicroBatch: as many as fit. Larger values are faster and cost activation memory.
  int micro_batch_samples = 0;
  // Time by which every gradient takes longer, for tests of workers of different speeds.
  absl::Duration hold_back = absl::ZeroDuration();
  // Every round begins without state of those before it; needs an empty state_dir.
  bool stateless = false;
  // Updates after which the worker leaves; 0: when the run is done.
  uint64_t updates = 0;
  // How the node's ranks share model and samples; its torch_threads and fsdp.param_dtype are not
  // read: `threads` counts for every rank, and `param_dtype`.
  NodeOptions node = {};
  // Type of the parameters for computation; empty: DefaultParamDtype of the device. f32 on a GPU
  // needs twice the memory and, by data sheets, 15 times as long.
  std::optional<FloatType> param_dtype = {};
  // Folder for the trained model, Hugging Face layout; empty: it is not written.
  std::string checkpoint_dir;
  // Also every so many rounds; 0: only at the end.
  uint64_t checkpoint_interval_rounds = 0;
  // Folder for the worker's own state, with which a restarted process goes on; empty: none is kept.
  // One a worker.
  std::string state_dir;
  // It is saved after every so many rounds and at the end; 0: at the end only. Smaller values lose
  // less momentum with a process that is killed; each save writes 4 bytes a parameter while
  // training waits.
  uint64_t state_interval_rounds = 100;
  // What the model continues while it is trained.
  SampleOptions sample = {};
  // File for the summary as JSON; empty: none.
  std::string summary;
  // File for a JSON line a round; empty: metrics.jsonl in `state_dir`, or none without it. Bounded
  // to twice kMaxRoundLineBytes.
  std::string metrics_file;
  // How long it looks for an aggregator that answers, before the first answer; 0: for ever. Smaller
  // values say sooner what is wrong, and do not wait for one that is starting.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Address of /metrics, /healthz and /readyz; port 0 takes a free one and logs it.
  std::string http = "127.0.0.1:0";
  LogLevel log_level = LogLevel::kInfo;

  // Takes what the invite of `channel` says, if there is one: address, name, run and data. The
  // statuses of distro::TakeInvite; InvalidArgument: it is not a worker's, or another name is
  // given.
  absl::Status TakeInvite(absl::Time now);
  // InvalidArgument names the flag and the remedy.
  absl::Status Validate() const;
  FloatType ParamDtype() const { return param_dtype.value_or(DefaultParamDtype(node.device)); }
  // One line, for the start of the process.
  void WriteTo(Log* log) const;
};

}  // namespace distro::worker
