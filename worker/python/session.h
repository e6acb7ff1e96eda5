// A worker inside a Python program: runs the training loop of distro-worker on its own thread, to
// train the program's module. The program's thread controls it, and answers its requests.
//
//   Session session(options, std::move(module));
//   session.Start();
//   while (auto request = session.Wait(timeout); ...) session.Reply(...);
//   session.Close({});                        // keeps state, leaves the run; then Wait gives kEnd
//
// Call all functions on the program's thread, Start once. While a request is not answered, and
// after kEnd, the training thread waits; only then access the run, the learner and the module.
// Each thread has streams of its own on a GPU. So whoever gives the module to the other waits
// first until the devices have finished.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/client/member/grpc_exchange.h"
#include "common/client/options/channel_options.h"
#include "worker/data/sampler.h"
#include "worker/metrics/gpu_readings.h"
#include "worker/metrics/telemetry.h"
#include "worker/python/hand_over.h"
#include "worker/python/module_tensors.h"
#include "worker/python/module_workload.h"
#include "worker/state/state_dir.h"
#include "worker/train/progress.h"
#include "worker/train/training_run.h"

namespace distro::worker {

struct SessionOptions {
  // The aggregator's address, TLS and credentials; an invite may have the address.
  ChannelOptions channel;
  // Name in the run, [a-z0-9-]{1,63}; an invite has it.
  std::string name;
  // The same on every worker of the run, 1 to 128 bytes.
  std::string data_fingerprint;
  // The tokenizer of the tokens, as JoinRequest.tokenizer; empty: not stated.
  std::string tokenizer;
  // Folder for the worker's own state; empty: no state is stored.
  std::string state_dir;
  // Rounds between saves of the state, after the upload; it is also saved at the end. 0: only at
  // the end.
  uint64_t state_interval_rounds = 1;
  // Threads that compress and apply a round.
  int threads = 1;
  // As GrpcExchangeOptions::mirrors.
  std::vector<std::string> mirrors = {};
};

class Session {
 public:
  Session(SessionOptions options, ModuleTensors module);
  // Ends without saving; Close saves.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // InvalidArgument names invalid options, other statuses an invite that does not admit; then Wait
  // returns kEnd.
  absl::Status Start();
  // These are the program's side of hand_over.h. Internal also: a device failed.
  std::optional<Request> Wait(absl::Duration timeout) { return program_.Wait(timeout); }
  absl::Status Reply(const Answer& answer);
  absl::Status end_status() const { return program_.end_status(); }
  // Makes the training thread end: further requests are only kSave and kEnd. The steps `so_far` of
  // an open round are kept.
  void Close(const Answer& so_far);

  // The lines logged since the last call.
  std::vector<std::string> TakeLog();

  // The module's tensors, for the steps of a requested round.
  ModuleTensors& module() { return module_; }
  // The masters, which an inner optimizer steps, by name (module_tensors.h).
  std::map<std::string, at::Tensor> Masters() const;
  // The bytes of each parameter as JSON, by name: `module`, `master`, `host` (as
  // ModuleTensors::Memory), `replica` for the run's parameters, and `rule` for the error buffer or
  // momentum. Requires that kJoined was requested.
  std::string DescribeMemory() const;

  // These require that kJoined was requested. Describes the run as JSON: `config` as run.json,
  // `run_id`, `muon` (names of the tensors that Muon steps), `local_steps` (taken by an earlier
  // process whose state this one continues), `module` (the run's distro_module.json, or empty).
  std::string Describe();
  // The run's config.json.
  const std::string& ModelConfig() const { return run_->run().model_config_json(); }
  // "round 12/60  loss 3.2101 ...", as of the last applied round. Requires that one was trained.
  std::string Progress();
  // SummaryJson of worker/train/summary.h.
  std::string Summary() const;
  // Copies of the parameters before the next round, f32 on the host, by name.
  absl::StatusOr<std::map<std::string, at::Tensor>> Parameters();
  // Writes them as a checkpoint folder, or only the run's companions into a folder.
  absl::Status Save(const std::string& folder);
  absl::Status SaveCompanions(const std::string& folder);
  // Whether the program answers kEvaluate; at first not.
  void SetEvaluates(bool evaluates) { workload_->objective()->SetEvaluates(evaluates); }
  // Of a data set of `size` samples: the first that is held out, and the number of those that an
  // evaluation reads. InvalidArgument, here and below: there are too few samples.
  absl::StatusOr<std::pair<int64_t, int64_t>> HeldOut(int64_t size) const;
  // The samples of a slot as indices into the data set, in reading order.
  absl::StatusOr<std::vector<int64_t>> SamplesOf(const v1::Slot& slot, int64_t size) const;

 private:
  absl::StatusOr<DataSplit> Split(int64_t size) const;
  absl::Status Open();
  void Run();
  absl::Status Train();
  // Sets the module to the run's newest parameters, and waits until the program takes samples.
  absl::Status ShowJoined();
  absl::StatusOr<std::unique_ptr<TrainingRun>> Begin();

  // Takes the invite, if there is one. Statuses of TakeWorkersInvite, and FailedPrecondition with
  // reason `other_data`: it is for a run on other data.
  absl::Status TakeInvite();

  SessionOptions options_;  // constant after Open
  ModuleTensors module_;

  mutable absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);

  Log log_;
  PhaseClock phases_;
  HandOver program_;           // has its own locking
  WorkerTelemetry telemetry_;  // has its own locking
  const std::unique_ptr<GpuReader> gpus_;
  std::optional<ProgressText> text_;        // since the program takes samples
  std::optional<ModuleWorkload> workload_;  // since Open
  std::unique_ptr<StateDir> state_;
  std::unique_ptr<GrpcExchange> exchange_;
  std::unique_ptr<TrainingRun> run_;
  std::thread thread_;
};

}  // namespace distro::worker
