// The interface to Python: torch.classes.distro_train.Session, used only by the package
// distro_train beside this file. Torch calls it without Python's global lock. The Python C API is
// not used. Functions are static methods of the class: Library::def has another symbol in every few
// versions of PyTorch, as it names at::Tag, and one library serves several of them.
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "worker/data/token_file.h"
#include "worker/python/session.h"
#include "worker/torch/torch_library.h"

namespace distro::worker {
namespace {

using Texts = c10::Dict<std::string, std::string>;
// Code, reason (may be empty), message; a code of "OK": no error.
using Ending = std::tuple<std::string, std::string, std::string>;

Ending EndingOf(const absl::Status& status) {
  return {absl::StatusCodeToString(status.code()), ReasonOf(status), std::string(status.message())};
}

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  TORCH_CHECK_VALUE(value.ok(), std::string(value.status().message()));
  return *std::move(value);
}

void OrThrow(const absl::Status& status) {
  TORCH_CHECK_VALUE(status.ok(), std::string(status.message()));
}

std::string Text(const Texts& texts, const char* key) {
  return texts.contains(key) ? texts.at(key) : std::string();
}

SessionOptions OptionsOf(const Texts& given, int64_t state_interval_rounds) {
  return {.channel = {.aggregator = Text(given, "aggregator"),
                      .insecure = Text(given, "insecure") == "1",
                      .tls = {.ca = Text(given, "ca"),
                              .cert = Text(given, "cert"),
                              .key = Text(given, "key"),
                              .invite = Text(given, "invite"),
                              .token_file = Text(given, "token_file"),
                              .server_name = Text(given, "server_name")}},
          .name = Text(given, "name"),
          .data_fingerprint = Text(given, "fingerprint"),
          .tokenizer = Text(given, "tokenizer"),
          .state_dir = Text(given, "state_dir"),
          .state_interval_rounds = static_cast<uint64_t>(state_interval_rounds),
          .threads = at::get_num_threads(),
          .mirrors = absl::StrSplit(Text(given, "mirrors"), ',', absl::SkipEmpty())};
}

const char* NameOf(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::kJoined:
      return "joined";
    case Request::Kind::kEvaluate:
      return "evaluate";
    case Request::Kind::kRound:
      return "round";
    case Request::Kind::kReset:
      return "reset";
    case Request::Kind::kSave:
      return "save";
    case Request::Kind::kEnd:
      return "end";
  }
  return "";
}

Answer AnswerOf(double value, double norm, int64_t steps, int64_t skipped) {
  return {.value = value,
          .norm = norm,
          .steps = static_cast<int>(steps),
          .skipped = static_cast<int>(skipped)};
}

class PythonSession final : public torch::CustomClassHolder {
 public:
  PythonSession(const std::vector<std::string>& names, const std::vector<at::Tensor>& parameters,
                const Texts& options, int64_t state_interval_rounds)
      : session_(OptionsOf(options, state_interval_rounds),
                 OrThrow(ModuleTensors::Create(names, parameters))) {}

  Ending Start() { return EndingOf(session_.Start()); }

  // The kind of the next request, empty if there is none within this number of milliseconds; then
  // rates, clip_norm, the seconds until the window ends, and local_steps of Request.
  std::tuple<std::string, std::vector<double>, double, double, int64_t> Wait(int64_t milliseconds) {
    const std::optional<Request> request = session_.Wait(absl::Milliseconds(milliseconds));
    if (!request.has_value()) return {"", {}, 0, 0, 0};
    request_ = *request;
    const absl::Duration left = request_.window_ends - Clock::Real()->MonotonicNow();
    return {NameOf(request_.kind),
            {request_.rates.begin(), request_.rates.end()},
            request_.clip_norm,
            absl::ToDoubleSeconds(left),
            static_cast<int64_t>(request_.local_steps)};
  }
  // The fields of Answer, here and in Close.
  void Reply(double value, double norm, int64_t steps, int64_t skipped) {
    const absl::Status status = session_.Reply(AnswerOf(value, norm, steps, skipped));
    TORCH_CHECK(status.ok(), std::string(status.message()));  // no argument is at fault
  }
  void Close(double value, double norm, int64_t steps, int64_t skipped) {
    session_.Close(AnswerOf(value, norm, steps, skipped));
  }
  Ending HowItEnded() { return EndingOf(session_.end_status()); }

  // Those of the round, and those expected from its first step on.
  std::tuple<std::vector<int64_t>, std::vector<int64_t>> Samples(int64_t size) {
    return {OrThrow(session_.SamplesOf(request_.samples, size)),
            OrThrow(session_.SamplesOf(request_.expected, size))};
  }
  // As ModuleTensors. The norm comes behind an Ending.
  std::tuple<std::string, std::string, std::string, double> ClipGradients(double clip_norm) {
    const auto norm = session_.module().ClipGradients(static_cast<float>(clip_norm));
    return std::tuple_cat(EndingOf(norm.status()), std::tuple(norm.value_or(0)));
  }
  Ending ShowMasters() { return EndingOf(session_.module().ShowMasters()); }
  void SetEvaluates(bool evaluates) { session_.SetEvaluates(evaluates); }
  std::tuple<int64_t, int64_t> HeldOut(int64_t size) { return OrThrow(session_.HeldOut(size)); }
  std::vector<std::string> TakeLog() { return session_.TakeLog(); }
  std::string Progress() { return session_.Progress(); }
  c10::Dict<std::string, at::Tensor> Masters() {
    c10::Dict<std::string, at::Tensor> masters;
    for (const auto& [name, master] : session_.Masters()) masters.insert(name, master);
    return masters;
  }
  std::string Describe() { return session_.Describe(); }
  std::string DescribeMemory() { return session_.DescribeMemory(); }
  std::string Summary() { return session_.Summary(); }
  c10::Dict<std::string, at::Tensor> Parameters() {
    c10::Dict<std::string, at::Tensor> parameters;
    for (const auto& [name, values] : OrThrow(session_.Parameters()))
      parameters.insert(name, values);
    return parameters;
  }
  std::string ModelConfig() { return session_.ModelConfig(); }
  Ending SaveCompanions(const std::string& folder) {
    return EndingOf(session_.SaveCompanions(folder));
  }
  Ending Save(const std::string& folder) { return EndingOf(session_.Save(folder)); }

 private:
  Session session_;
  Request request_;  // last result of Wait
};

std::string FingerprintOf(const std::string& path) {
  return OrThrow(OrThrow(OpenTokens(path, TokenFormat::kAuto)).Fingerprint());
}

void WriteFolder(const std::string& folder, const std::string& config_json,
                 const std::vector<std::string>& names, const std::vector<at::Tensor>& parameters) {
  ModuleTensors module = OrThrow(ModuleTensors::Create(names, parameters));
  const Layout layout = OrThrow(Layout::Create(module.manifest(), kDefaultSegmentBlocks));
  TensorPieces pieces;
  for (const absl::Span<float> tensor : OrThrow(module.ReadElements())) pieces.push_back({tensor});
  OrThrow(WriteCheckpointFolder(folder, config_json, layout, pieces));
}

TORCH_LIBRARY(distro_train, library) {
  library.class_<PythonSession>("Session")
      .def(torch::init<const std::vector<std::string>&, const std::vector<at::Tensor>&,
                       const Texts&, int64_t>())
      .def("start", &PythonSession::Start)
      .def("wait", &PythonSession::Wait)
      .def("answer", &PythonSession::Reply)
      .def("close", &PythonSession::Close)
      .def("ending", &PythonSession::HowItEnded)
      .def("samples", &PythonSession::Samples)
      .def("clip_gradients", &PythonSession::ClipGradients)
      .def("show_masters", &PythonSession::ShowMasters)
      .def("set_evaluates", &PythonSession::SetEvaluates)
      .def("held_out", &PythonSession::HeldOut)
      .def("take_log", &PythonSession::TakeLog)
      .def("progress", &PythonSession::Progress)
      .def("masters", &PythonSession::Masters)
      .def("describe", &PythonSession::Describe)
      .def("describe_memory", &PythonSession::DescribeMemory)
      .def("summary", &PythonSession::Summary)
      .def("parameters", &PythonSession::Parameters)
      .def("model_config", &PythonSession::ModelConfig)
      .def("save_companions", &PythonSession::SaveCompanions)
      .def("save", &PythonSession::Save)
      .def_static("fingerprint", &FingerprintOf)
      .def_static("write_folder", &WriteFolder);
}

}  // namespace
}  // namespace distro::worker
