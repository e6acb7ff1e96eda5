#include "server/log/same_run.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "server/log/disk.h"
#include "server/log/snapshot_check.h"

namespace distro::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxShownBytes = 120;  // of a value
constexpr size_t kMaxShownKeys = 10;
constexpr absl::string_view kContinue =
    "start the aggregator without --run and --model to continue it; for a new run give another "
    "--data_dir, and keep this one";
// Keys of config.json that only say who wrote it.
constexpr absl::string_view kOrigin[] = {"_name_or_path", "transformers_version"};

absl::Status OtherRun(const RunIdentity& stored, absl::string_view what, absl::string_view remedy) {
  return absl::AlreadyExistsError(absl::StrCat("the data folder holds run ", stored.run_id,
                                               ", which has another ", what, ": ", remedy));
}

std::string Shown(const json& object, const std::string& key) {
  const auto value = object.find(key);
  if (value == object.end()) return "not set";
  std::string text = value->dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMaxShownBytes) text = absl::StrCat(text.substr(0, kMaxShownBytes), "...");
  return text;
}

// The keys of two objects whose values differ.
std::vector<std::string> DifferentKeys(const json& a, const json& b) {
  std::vector<std::string> keys;
  for (const json* object : {&a, &b}) {
    for (const auto& [key, value] : object->items()) {
      const auto in_a = a.find(key), in_b = b.find(key);
      const bool same = in_a != a.end() && in_b != b.end() && *in_a == *in_b;
      if (!same && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

// "seed: 7 -> 8, ..."
std::string Changes(const json& stored, const json& asked, std::vector<std::string> keys) {
  const size_t all = keys.size();
  keys.resize(std::min(all, kMaxShownKeys));
  for (std::string& key : keys)
    key = absl::StrCat(key, ": ", Shown(stored, key), " -> ", Shown(asked, key));
  return absl::StrCat(absl::StrJoin(keys, ", "),
                      all > keys.size() ? absl::StrCat(" and ", all - keys.size(), " more") : "");
}

json AsJson(const v1::RunConfig& config) { return *ParseJson(RunConfigToJson(config)); }

// The remedy for keys of run.json that differ.
std::string RemedyForKeys(const v1::RunConfig& stored, const v1::RunConfig& asked,
                          const std::vector<std::string>& keys) {
  const auto has = [&keys](absl::string_view key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  if (has("name")) {
    return "give the new run an aggregator with a --data_dir of its own, and keep this one";
  }
  std::string remedy = absl::StrCat(
      "they are fixed when a run is created: put back what run.json had (the data folder has a "
      "copy), or ",
      kContinue);
  if (!has("rounds")) return remedy;
  const std::string more =
      asked.rounds() > stored.rounds()
          ? absl::StrCat(
                "a run that exists gets more rounds with distroctl run extend HOST:PORT "
                "--rounds ",
                asked.rounds(), ", and its run.json keeps ", stored.rounds())
          : absl::StrCat("a run does not become shorter: put ", stored.rounds(), " back");
  return keys.size() == 1 ? more : absl::StrCat(more, "; as for the others, ", remedy);
}

absl::Status CompareConfigs(const RunIdentity& stored, v1::RunConfig asked) {
  // A repeated creation without a method means the run's method.
  if (asked.method() == v1::METHOD_UNSPECIFIED) asked.set_method(stored.config.method());
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig complete, CompleteRunConfig(asked));
  const json ours = AsJson(stored.config), theirs = AsJson(complete), set = AsJson(asked);
  // A default may follow from another key, or be another one in the version that created the run.
  // A key without a default that is not set any more is a change.
  std::vector<std::string> keys = DifferentKeys(ours, theirs);
  const auto is_set = [&set](const std::string& key) { return set.contains(key); };
  std::erase_if(keys, [&](const std::string& key) { return !is_set(key) && theirs.contains(key); });
  std::ranges::stable_partition(keys, is_set);  // what was changed before what was removed
  if (keys.empty()) return absl::OkStatus();
  return OtherRun(stored, absl::StrCat("configuration (", Changes(ours, theirs, keys), ")"),
                  RemedyForKeys(stored.config, complete, keys));
}

absl::Status CompareModelConfigs(const RunIdentity& stored, absl::string_view asked) {
  if (asked == stored.model_config_json) return absl::OkStatus();
  const absl::StatusOr<json> ours = ParseJson(stored.model_config_json), theirs = ParseJson(asked);
  if (!ours.ok() || !theirs.ok() || !ours->is_object() || !theirs->is_object())
    return OtherRun(stored, "config.json", kContinue);
  std::vector<std::string> keys = DifferentKeys(*ours, *theirs);
  std::erase_if(keys, [](const std::string& key) {
    return std::ranges::find(kOrigin, key) != std::end(kOrigin);
  });
  if (keys.empty()) return absl::OkStatus();
  return OtherRun(stored, absl::StrCat("config.json (", Changes(*ours, *theirs, keys), ")"),
                  absl::StrCat("put back what it had, or ", kContinue));
}

json DigestsOf(const CompanionList& list) {
  json digests = json::object();
  for (const v1::CompanionFile& file : list)
    digests[file.name()] = absl::BytesToHexString(file.sha256());
  return digests;
}

absl::Status CompareCompanions(const RunIdentity& stored, const CompanionList& asked) {
  if (asked.empty() || stored.companions.empty()) return absl::OkStatus();
  const json ours = DigestsOf(stored.companions), theirs = DigestsOf(asked);
  const std::vector<std::string> keys = DifferentKeys(ours, theirs);
  if (keys.empty()) return absl::OkStatus();
  return OtherRun(
      stored,
      absl::StrCat("tokenizer or other file that travels with the model (SHA-256 of ",
                   Changes(ours, theirs, keys), ")"),
      absl::StrCat("put back what the model's folder had (the data folder has it in companions), "
                   "or ",
                   kContinue));
}

}  // namespace

absl::Status CompareRuns(const RunIdentity& stored, const AskedRun& asked) {
  DISTRO_RETURN_IF_ERROR(CompareConfigs(stored, asked.config));
  DISTRO_RETURN_IF_ERROR(CompareModelConfigs(stored, asked.model_config_json));
  const std::string digest = DigestBytes(asked.sha256);
  if (digest != stored.created_sha256()) {
    return OtherRun(
        stored,
        absl::StrCat("initial model (SHA-256 of its tensors as float32: ",
                     absl::BytesToHexString(stored.created_sha256()), " -> ", ToHex(asked.sha256),
                     ")"),
        absl::StrCat("a run that exists goes on with its own rounds, not with --model: ",
                     kContinue));
  }
  return CompareCompanions(stored, asked.companions);
}

absl::Status RefusalOf(const absl::Status& status) {
  const bool another = absl::IsAlreadyExists(status) && !IsDiskError(status);
  return another ? absl::FailedPreconditionError(status.message()) : status;
}

bool SameCompanion(absl::string_view name, absl::string_view a, absl::string_view b) {
  if (a == b) return true;
  if (absl::EndsWith(name, ".jinja"))
    return absl::StrReplaceAll(a, {{"\r\n", "\n"}}) == absl::StrReplaceAll(b, {{"\r\n", "\n"}});
  if (!absl::EndsWith(name, ".json")) return false;
  const absl::StatusOr<json> one = ParseJson(a), other = ParseJson(b);
  return one.ok() && other.ok() && *one == *other;
}

}  // namespace distro::server
