#include "worker/python/session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/bitmap.h"
#include "common/base/clock.h"
#include "common/base/exceptions.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/follow/mirrors.h"
#include "common/client/options/invite.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/module_description.h"
#include "common/run/run_config.h"
#include "common/run/sample_pool.h"
#include "worker/train/summary.h"

namespace distro::worker {
Session::Session(SessionOptions options, ModuleTensors module)
    : options_(std::move(options)),
      module_(std::move(module)),
      log_(LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) {
             const absl::MutexLock lock(&mu_);
             lines_.emplace_back(line);
           }),
      phases_(Clock::Real()),
      telemetry_(&phases_),
      gpus_(GpuReader::Open()) {
  telemetry_.SetGpus(gpus_.get());
}

Session::~Session() {
  module_.Finish().IgnoreError();  // as in Close
  program_.Abandon();
  if (exchange_ != nullptr) exchange_->Stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status Session::Start() {
  absl::Status status = CatchExceptions([this]() -> absl::Status {
    DISTRO_RETURN_IF_ERROR(Open());
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  });
  if (!status.ok()) program_.End(status);
  return status;
}

absl::Status Session::Open() {
  DISTRO_RETURN_IF_ERROR(module_.Finish());
  DISTRO_RETURN_IF_ERROR(ValidateCredential(options_.channel.insecure, options_.channel.tls));
  DISTRO_RETURN_IF_ERROR(TakeInvite());
  DISTRO_RETURN_IF_ERROR(ValidateName(options_.name, "name"));
  DISTRO_RETURN_IF_ERROR(Annotate(ValidateMirrors(options_.mirrors), "mirrors"));
  if (!options_.state_dir.empty()) {
    absl::StatusOr<std::unique_ptr<StateDir>> state = StateDir::Open(options_.state_dir, &log_);
    if (!state.ok()) return Annotate(state.status(), "state_dir");
    state_ = *std::move(state);
  }
  GrpcExchangeOptions exchange;
  exchange.channel = options_.channel;
  exchange.connect_timeout = absl::InfiniteDuration();  // the program has its own
  exchange.mirrors = options_.mirrors;
  exchange.telemetry = [this] { return telemetry_.Telemetry(); };
  DISTRO_ASSIGN_OR_RETURN(exchange_, GrpcExchange::Create(exchange, &log_));
  telemetry_.SetTransfers([this] { return exchange_->stats(); });
  return absl::OkStatus();
}

absl::Status Session::TakeInvite() {
  ModuleWorkload::Options workload = {.data_fingerprint = options_.data_fingerprint,
                                      .tokenizer = options_.tokenizer,
                                      .threads = options_.threads};
  DISTRO_ASSIGN_OR_RETURN(
      const std::optional<Invite> invite,
      TakeWorkersInvite(&options_.channel, options_.name, Clock::Real()->WallNow()));
  if (invite.has_value()) {
    options_.name = invite->name;
    workload.run_name = invite->run;
    const std::string& data = invite->data_fingerprint;
    if (!data.empty() && !options_.data_fingerprint.empty() && data != options_.data_fingerprint) {
      return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                             absl::StrCat("fingerprint: is ", options_.data_fingerprint,
                                          ", and the invite is for a run on ", data));
    }
  }
  workload_.emplace(std::move(workload), &module_, &program_, &phases_);
  return absl::OkStatus();
}

absl::Status Session::Reply(const Answer& answer) {
  DISTRO_RETURN_IF_ERROR(module_.Finish());
  return program_.Reply(answer);
}

void Session::Close(const Answer& so_far) {
  module_.Finish().IgnoreError();  // the training thread meets the same failure, and reports it
  if (exchange_ != nullptr) exchange_->Stop();
  program_.Close(so_far);
}

void Session::Run() {
  absl::Status status = CatchExceptions([this] { return Train(); });
  exchange_->Leave(status.ok() ? "done" : std::string(status.message()));
  program_.End(std::move(status));
}

absl::Status Session::Train() {
  DISTRO_ASSIGN_OR_RETURN(run_, Begin());
  const absl::Status status = run_->Train();
  // The program continues with the run's parameters, even after an error.
  const absl::Status shown = workload_->learner()->BeginLocalSteps();
  return status.ok() ? shown : status;
}

absl::Status Session::ShowJoined() {
  DISTRO_RETURN_IF_ERROR(workload_->learner()->BeginLocalSteps());
  DISTRO_RETURN_IF_ERROR(program_.Ask({.kind = Request::Kind::kJoined}).status());
  text_.emplace(Clock::Real());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TrainingRun>> Session::Begin() {
  return TrainingRun::Begin({.worker = options_.name,
                             .incarnation = RandomWord() | 1,
                             .checkpoint_dir = "",
                             .state_interval_rounds = options_.state_interval_rounds},
                            &*workload_,
                            {.exchange = exchange_.get(),
                             .phases = &phases_,
                             .log = &log_,
                             .state = state_.get(),
                             .wants_companions = true,
                             .ready = [this] { return ShowJoined(); }},
                            [this](const TrainSummary& summary) { telemetry_.Update(summary); });
}

std::vector<std::string> Session::TakeLog() {
  const absl::MutexLock lock(&mu_);
  return std::exchange(lines_, {});
}

std::string Session::Describe() {
  nlohmann::json muon = nlohmann::json::array();
  const std::string& by_muon = workload_->rule().as_dct;
  for (size_t i = 0; !by_muon.empty() && i < module_.manifest().tensors().size(); ++i) {
    if (BitOf(by_muon, i)) muon.push_back(module_.manifest().tensors()[i].name);
  }
  const absl::StatusOr<Learner::Kept> kept = workload_->learner()->kept();
  return nlohmann::json{{"run_id", run_->run().run_id()},
                        {"config", nlohmann::json::parse(RunConfigToJson(run_->run().config()))},
                        {"muon", std::move(muon)},
                        {"local_steps", kept.ok() ? kept->local_steps : 0},
                        {"module", ModuleDescription(run_->companions())}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::map<std::string, at::Tensor> Session::Masters() const {
  std::map<std::string, at::Tensor> masters;
  for (size_t i = 0; i < module_.masters().size(); ++i)
    masters[module_.manifest().tensors()[i].name] = module_.masters()[i];
  return masters;
}

std::string Session::DescribeMemory() const {
  const int arrays = workload_->rule().element_arrays;
  nlohmann::json described;
  for (size_t i = 0; i < module_.masters().size(); ++i) {
    const ModuleTensors::Memory memory = module_.MemoryOf(i);
    const int64_t array = module_.masters()[i].numel() * static_cast<int64_t>(sizeof(float));
    described[module_.manifest().tensors()[i].name] = {{"module", memory.module},
                                                       {"master", memory.master},
                                                       {"host", memory.host},
                                                       {"replica", array},
                                                       {"rule", arrays * array}};
  }
  return described.dump();
}

std::string Session::Progress() { return text_->Line(ReadingOf(run_->summary())); }

std::string Session::Summary() const { return SummaryJson(run_->summary()); }

absl::StatusOr<std::map<std::string, at::Tensor>> Session::Parameters() {
  DISTRO_ASSIGN_OR_RETURN(const Learner::HostTensors parameters,
                          workload_->learner()->parameters());
  std::map<std::string, at::Tensor> copies;
  for (size_t i = 0; i < parameters.pieces.size(); ++i) {
    const TensorSpec& spec = module_.manifest().tensors()[i];
    at::Tensor copy = at::empty(spec.shape, at::kFloat);
    auto* to = copy.data_ptr<float>();
    for (const absl::Span<const float> piece : parameters.pieces[i])
      to = std::copy(piece.begin(), piece.end(), to);
    copies[spec.name] = std::move(copy);
  }
  return copies;
}

absl::Status Session::SaveCompanions(const std::string& folder) {
  return WriteCompanions(folder, run_->companions());
}

absl::Status Session::Save(const std::string& folder) {
  DISTRO_ASSIGN_OR_RETURN(const Learner::HostTensors parameters,
                          workload_->learner()->parameters());
  return WriteCheckpointFolder(folder, run_->run().model_config_json(), workload_->layout(),
                               parameters.pieces, run_->companions());
}

absl::StatusOr<DataSplit> Session::Split(int64_t size) const {
  // As a text in which every token except the first is a sample.
  absl::StatusOr<DataSplit> split =
      SplitSamples(size + 1, 1, run_->run().config().held_out_fraction());
  if (!split.ok())
    return Annotate(split.status(), absl::StrCat("a data set of ", size, " samples"));
  return split;
}

absl::StatusOr<std::pair<int64_t, int64_t>> Session::HeldOut(int64_t size) const {
  DISTRO_ASSIGN_OR_RETURN(const DataSplit split, Split(size));
  const auto most = static_cast<int64_t>(run_->run().config().evaluation_samples());
  const int64_t samples = split.held_out_samples;
  return std::pair(split.training_samples, most == 0 ? samples : std::min(most, samples));
}

absl::StatusOr<std::vector<int64_t>> Session::SamplesOf(const v1::Slot& slot, int64_t size) const {
  DISTRO_ASSIGN_OR_RETURN(const DataSplit split, Split(size));
  const Sampler sampler(split.training_samples, run_->run().config().seed());
  std::vector<int64_t> samples;
  ForEachRange(slot, [&](uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) samples.push_back(sampler.SampleAt(first + i));
  });
  return samples;
}

}  // namespace distro::worker
