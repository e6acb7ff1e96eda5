// A worker inside a Python program: the training loop of distro-worker on a thread of its own, with
// the program's module as what it trains. The program's thread says what happens and runs what it
// is asked for.
//
//   Session session(options, std::move(module));
//   session.Start();
//   while (auto request = session.program().Wait(timeout); ...) ...   // hand_over.h
//   session.Close();                          // keeps state, leaves the run; then Wait gives kEnd
//
// The program's thread calls; Start once. While it has not answered what it was asked, and after
// kEnd, the training thread waits: then the run, the learner and the module may be looked at.
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
#include "common/base/log.h"
#include "common/client/member/grpc_exchange.h"
#include "common/client/options/channel_options.h"
#include "worker/python/hand_over.h"
#include "worker/python/module_tensors.h"
#include "worker/python/module_workload.h"
#include "worker/state/state_dir.h"
#include "worker/train/training_run.h"

namespace distro::worker {

struct SessionOptions {
  // The aggregator and how to talk with it.
  ChannelOptions channel;
  // In the run, [a-z0-9-]{1,63}.
  std::string name;
  // The same on every worker of the run, 1 to 128 bytes.
  std::string data_fingerprint;
  // What made the tokens, as JoinRequest.tokenizer; empty: not said.
  std::string tokenizer;
  // Folder for the worker's own state; empty: none is kept.
  std::string state_dir;
  // It is kept after so many rounds' uploads, and at the end; 0: at the end only.
  uint64_t state_interval_rounds = 1;
  // That compress and apply a round.
  int threads = 1;
};

class Session {
 public:
  Session(SessionOptions options, ModuleTensors module);
  // Ends without keeping anything that Close did not.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // InvalidArgument: options that cannot be; names them. Then Wait gives kEnd.
  absl::Status Start();
  HandOver& program() { return program_; }
  // The training thread is to end: what is asked from now on is kSave and kEnd.
  void Close();

  // Lines that were logged since the last call.
  std::vector<std::string> TakeLog();

  // What an inner optimizer steps, by name (module_tensors.h).
  std::map<std::string, at::Tensor> Masters() const;
  // The bytes in which each parameter lies, as JSON: by name `module`, `master`, `host` (as
  // ModuleTensors::Memory), `replica` and `rule`, those of the run's parameters and of the error
  // buffer or momentum. Requires that kJoined was asked.
  std::string DescribeMemory() const;

  // These require that kJoined was asked. What the run is, as JSON: `config` as run.json, `run_id`,
  // `muon` (names of the tensors that Muon steps), `local_steps` (that an earlier process took,
  // whose state this one goes on with).
  std::string Describe();
  // SummaryJson of worker/train/summary.h.
  std::string Summary() const;
  // The parameters before the next round as a checkpoint folder.
  absl::Status Save(const std::string& folder);
  // A slot as indices into a data set of `size` samples, in the order in which they are to be read.
  // InvalidArgument: there are too few.
  absl::StatusOr<std::vector<int64_t>> SamplesOf(const v1::Slot& slot, int64_t size) const;

 private:
  absl::Status Open();
  void Run();
  absl::Status Train();
  absl::StatusOr<std::unique_ptr<TrainingRun>> Begin(const std::string& scratch_dir);

  const SessionOptions options_;
  ModuleTensors module_;

  mutable absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);

  Log log_;
  PhaseClock phases_;
  HandOver program_;  // has its own locking
  ModuleWorkload workload_;
  std::unique_ptr<StateDir> state_;
  std::unique_ptr<GrpcExchange> exchange_;
  std::unique_ptr<TrainingRun> run_;
  std::thread thread_;
};

}  // namespace distro::worker
