#include "bench/convergence/deltas_settings.h"

#include <algorithm>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/method/base/learning_rate.h"
#include "common/method/base/method.h"

namespace distro::worker {
namespace {

// Reads the members of an object by name, and keeps the first error.
class Reader {
 public:
  explicit Reader(const nlohmann::json& object) : object_(object) {}

  void Take(const char* name, int least, int most, int* value) {
    if (const nlohmann::json* member = Find(name, &nlohmann::json::is_number_integer)) {
      const int64_t number = member->get<int64_t>();
      if (number < least || number > most)
        Fail(name, absl::StrCat(number, " is outside ", least, "..", most));
      else
        *value = static_cast<int>(number);
    }
  }
  void Take(const char* name, double least, double most, double* value) {
    if (const nlohmann::json* member = Find(name, &nlohmann::json::is_number)) {
      const double number = member->get<double>();
      if (number < least || number > most)
        Fail(name, absl::StrCat(number, " is outside ", least, " to ", most));
      else
        *value = number;
    }
  }
  void Take(const char* name, bool* value) {
    if (const nlohmann::json* member = Find(name, &nlohmann::json::is_boolean))
      *value = member->get<bool>();
  }
  void Take(const char* name, std::initializer_list<absl::string_view> choices,
            std::string* value) {
    if (const nlohmann::json* member = Find(name, &nlohmann::json::is_string)) {
      *value = member->get<std::string>();
      if (std::ranges::find(choices, *value) == choices.end())
        Fail(name, absl::StrCat("'", *value, "' is none of ", absl::StrJoin(choices, ", ")));
    }
  }
  void Take(const char* name, std::vector<int>* values) {
    if (const nlohmann::json* member = Find(name, &nlohmann::json::is_array)) {
      for (const nlohmann::json& value : *member) {
        if (!value.is_number_unsigned()) return Fail(name, "not an array of whole numbers");
        values->push_back(value.get<int>());
      }
    }
  }

  absl::Status Finish() {
    for (const auto& [name, value] : object_.items()) {
      if (std::ranges::find(known_, name) == known_.end()) Fail(name, "no such setting");
    }
    return status_;
  }

 private:
  const nlohmann::json* Find(const char* name, bool (nlohmann::json::*is_type)() const) {
    known_.push_back(name);
    const auto member = object_.find(name);
    if (member == object_.end()) return nullptr;
    if (((*member).*is_type)()) return &*member;
    Fail(name, "of another type");
    return nullptr;
  }
  void Fail(absl::string_view name, absl::string_view what) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(absl::StrCat("settings: ", name, ": ", what));
  }

  const nlohmann::json& object_;
  std::vector<std::string> known_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<DeltasSettings> ParseDeltasSettings(absl::string_view json) {
  DISTRO_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json));
  if (!object.is_object()) return absl::InvalidArgumentError("settings: not a JSON object");
  DeltasSettings s;
  Reader reader(object);
  reader.Take("window", 1, 10000, &s.window);
  reader.Take("k", 1, 4096, &s.k);
  reader.Take("beta", 0, 1, &s.beta);
  reader.Take("beta_end", 0, 1, &s.beta_end);
  reader.Take("alpha", 0, 1000, &s.alpha);
  reader.Take("divisor", {"senders", "all"}, &s.divisor);
  reader.Take("rho", 0, 1, &s.rho);
  reader.Take("rho_end", 0, 1, &s.rho_end);
  reader.Take("keep", 0, 4096, &s.keep);
  reader.Take("cap_growth", 0, 256, &s.cap_growth);
  reader.Take("overlap", 0, 10000, &s.overlap);
  reader.Take("inner", {"muon", "adamw"}, &s.inner);
  reader.Take("mu", 0, 1, &s.mu);
  reader.Take("muon_scale", 0, 10, &s.muon_scale);
  reader.Take("newton_schulz", 0, 20, &s.newton_schulz);
  reader.Take("beta1", 0, 1, &s.beta1);
  reader.Take("beta2", 0, 1, &s.beta2);
  reader.Take("miss", 0, 1, &s.miss);
  reader.Take("stateless", &s.stateless);
  reader.Take("worker_steps", &s.worker_steps);
  reader.Take("equal_weights", &s.equal_weights);
  reader.Take("first_round", &s.first_round);
  reader.Take("attack",
              {"", "cap", "random", "inverted", "inverted_cap", "third_inverted_cap", "drift"},
              &s.attack);
  reader.Take("attackers", 1, 1000, &s.attackers);
  reader.Take("attack_together", &s.attack_together);
  reader.Take("attack_pauses", &s.attack_pauses);
  reader.Take("attack_multiple", 0, 1e6, &s.attack_multiple);
  reader.Take("quarantine", &s.quarantine);
  reader.Take("backwards", 0, 1000, &s.backwards);
  reader.Take("values", {"bit", "float", "two", "tensor"}, &s.values);
  reader.Take("transform", {"muon", "none", "all"}, &s.transform);
  reader.Take("levels", 0, 64, &s.levels);
  reader.Take("level_step", 0.01, 4, &s.level_step);
  reader.Take("feedback", {"returned", "cancelled", "included"}, &s.feedback);
  reader.Take("nesterov", 0, 1, &s.nesterov);
  reader.Take("alpha_end", 0, 10, &s.alpha_end);
  reader.Take("decay_in_update", &s.decay_in_update);
  reader.Take("slow", 0, 1, &s.slow);
  reader.Take("slow_end", 0, 1, &s.slow_end);
  reader.Take("slow_decay", 0, 1, &s.slow_decay);
  reader.Take("slow_for", {"all", "muon"}, &s.slow_for);
  reader.Take("norm_clip", 0, 1000, &s.norm_clip);
  DISTRO_RETURN_IF_ERROR(reader.Finish());
  if (s.overlap > s.window)
    return absl::InvalidArgumentError("settings: overlap: more than the steps of a window");
  if (s.stateless && s.overlap > 0)
    return absl::InvalidArgumentError("settings: stateless: an overlap is state");
  if (s.stateless && s.slow > 0)
    return absl::InvalidArgumentError("settings: stateless: a slow mean is state");
  if (!s.worker_steps.empty() &&
      (s.overlap > 0 || std::ranges::min(s.worker_steps) < 1 || !IsReal(s)))
    return absl::InvalidArgumentError(
        "settings: worker_steps: 1 or more of each worker, without overlap and variants");
  return s;
}

double WithRate(const v1::RunConfig& config, uint64_t step, double at_peak, double at_zero) {
  if (at_zero < 0 || step < config.warmup_rounds()) return at_peak;
  return at_zero + (at_peak - at_zero) * LearningRate(config, step) / config.peak_learning_rate();
}

int StepsOf(const DeltasSettings& settings, int worker, int window) {
  return settings.worker_steps.empty() ? window : std::min(settings.worker_steps[worker], window);
}

int WeightOf(const DeltasSettings& settings, int worker, int window) {
  if (settings.worker_steps.empty() || settings.equal_weights) return 1;
  return StepsWeight(StepsOf(settings, worker, window), window);
}

InnerSettings InnerOf(const DeltasSettings& settings, double weight_decay) {
  return {.method = settings.inner == "muon" ? InnerMethod::kMuon : InnerMethod::kAdamW,
          .beta1 = static_cast<float>(settings.beta1),
          .beta2 = static_cast<float>(settings.beta2),
          .epsilon = 1e-8f,
          .mu = static_cast<float>(settings.mu),
          .muon_scale = static_cast<float>(settings.muon_scale),
          .newton_schulz = settings.newton_schulz,
          .weight_decay = settings.decay_in_update ? 0 : static_cast<float>(weight_decay)};
}

bool IsReal(const DeltasSettings& s) {
  return s.values == "bit" && s.levels == 8 && s.level_step == 0.5 && s.feedback == "returned" &&
         s.nesterov == 0 && !s.decay_in_update && s.norm_clip == 0;
}

}  // namespace distro::worker
