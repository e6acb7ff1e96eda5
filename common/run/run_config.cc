#include "common/run/run_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/key_checks.h"
#include "common/method/methods.h"
#include "common/run/pinned_tokenizer.h"
#include "google/protobuf/unknown_field_set.h"

namespace distro {
namespace {

constexpr uint64_t kMaxRounds = uint64_t{1} << 32;
constexpr uint32_t kMaxCount = 1 << 20;          // samples, tokens of a sample, blocks of a segment
constexpr int64_t kMaxDeadlineSeconds = 604800;  // a week
constexpr int64_t kDefaultMinDeadlineSeconds = 5;
constexpr uint32_t kDefaultProbationRounds = 4;
constexpr uint32_t kMaxProbationRounds = 1000;

template <typename T>
absl::Status Required(absl::string_view key, T value, T high) {
  if (value != 0) return InRange<T>(key, value, 1, high);
  return BadField(key, absl::StrCat("is required and not 0: give 1 to ", high));
}

// A number that is none of its key's values.
struct UnknownValue {
  std::string key;
  int number;
};

std::optional<UnknownValue> FirstUnknownValue(const v1::RunConfig& config) {
  const auto* const reflection = config.GetReflection();
  for (int i = 0; i < v1::RunConfig::descriptor()->field_count(); ++i) {
    const auto* const field = v1::RunConfig::descriptor()->field(i);
    if (field->enum_type() == nullptr) continue;
    const int number = reflection->GetEnumValue(config, field);
    if (field->enum_type()->FindValueByNumber(number) == nullptr)
      return UnknownValue{.key = field->name(), .number = number};
  }
  return std::nullopt;
}

absl::Status NotKnown(absl::string_view what) {
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "version",
      absl::StrCat("this version does not know ", what,
                   " of the run: use the version that created the run, or a later one"));
}

// Refuses values that a message can hold and a JSON text cannot.
absl::Status CheckMessage(const v1::RunConfig& config) {
  if (!config.GetReflection()->GetUnknownFields(config).empty()) {
    return BadField("run configuration",
                    "has a field that this version does not know: use one version on both ends");
  }
  const std::optional<UnknownValue> unknown = FirstUnknownValue(config);
  if (!unknown.has_value()) return absl::OkStatus();
  return BadField(unknown->key, absl::StrCat(unknown->number, " is not known"));
}

void FillOptimizerDefaults(v1::RunConfig& config) {
  if (!config.has_peak_learning_rate()) config.set_peak_learning_rate(4e-4);
  if (!config.has_min_learning_rate()) {
    config.set_min_learning_rate(config.peak_learning_rate() / 10);
  }
  if (!config.has_warmup_rounds()) {
    config.set_warmup_rounds(std::min<uint64_t>(400, config.rounds() / 10));
  }
  if (!config.has_clip_norm()) config.set_clip_norm(1);
  if (!config.has_weight_decay()) config.set_weight_decay(0.1);
}

bool Less(const google::protobuf::Duration& a, const google::protobuf::Duration& b) {
  return a.seconds() != b.seconds() ? a.seconds() < b.seconds() : a.nanos() < b.nanos();
}

// The part of round_deadline after the window; all of it without a window. Requires durations in
// their range.
google::protobuf::Duration AfterWindow(const v1::RunConfig& config) {
  google::protobuf::Duration left = config.round_deadline();
  if (!config.has_round_window()) return left;
  left.set_seconds(left.seconds() - config.round_window().seconds());
  left.set_nanos(left.nanos() - config.round_window().nanos());
  if (left.nanos() >= 0) return left;
  left.set_seconds(left.seconds() - 1);
  left.set_nanos(left.nanos() + 1'000'000'000);
  return left;
}

std::string SecondsText(const google::protobuf::Duration& value) {
  return absl::FormatDuration(absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos()));
}

bool IsDuration(const google::protobuf::Duration& value) {
  const bool whole = value.seconds() >= 0 && value.nanos() >= 0 && value.nanos() < 1'000'000'000;
  const bool positive = value.seconds() > 0 || value.nanos() > 0;
  return whole && positive && value.seconds() <= kMaxDeadlineSeconds;
}

void FillDeadlineDefault(v1::RunConfig& config) {
  if (!config.has_round_deadline() || config.has_min_round_deadline()) return;
  if (!IsDuration(config.round_deadline())) return;  // it is refused later
  if (config.has_round_window() && !IsDuration(config.round_window())) return;
  google::protobuf::Duration least;
  least.set_seconds(kDefaultMinDeadlineSeconds);
  const google::protobuf::Duration most = AfterWindow(config);
  *config.mutable_min_round_deadline() = Less(most, least) ? most : least;
}

// Stored runs are completed too, and workers of the version before refuse keys that they do not
// know. So a key that is added later stays absent in them: without it a run does what it did
// before.
void FillDefaults(v1::RunConfig& config) {
  if (config.method() == v1::METHOD_UNSPECIFIED) config.set_method(kDefaultMethod);
  FillOptimizerDefaults(config);
  MethodOf(config).FillDefaults(&config);
  if (!config.has_segment_blocks()) config.set_segment_blocks(16384);
  if (config.download() == v1::DOWNLOAD_MODE_UNSPECIFIED) {
    config.set_download(v1::DOWNLOAD_MODE_LOSSLESS);
  }
  if (config.data() == v1::DATA_UNSPECIFIED) config.set_data(v1::DATA_SHARED);
  if (config.workers() == v1::WORKERS_UNSPECIFIED) config.set_workers(v1::WORKERS_ANY);
  if (config.workers() == v1::WORKERS_PYTHON && config.sequence_length() == 0)
    config.set_sequence_length(1);
  if (!config.has_held_out_fraction()) config.set_held_out_fraction(0.05);
  if (!config.has_start_workers()) config.set_start_workers(1);
  if (!config.has_min_workers()) config.set_min_workers(1);
  FillDeadlineDefault(config);
  if (!config.has_probation_rounds()) config.set_probation_rounds(kDefaultProbationRounds);
}

absl::Status CheckLearningRate(const v1::RunConfig& config) {
  const double peak = config.peak_learning_rate();
  if (!(peak <= 1) || !(static_cast<float>(peak) > 0)) {
    return BadField("peak_learning_rate", absl::StrCat(peak, " is outside above 0 to 1"));
  }
  DISTRO_RETURN_IF_ERROR(InRange("min_learning_rate", config.min_learning_rate(), 0.0, 1.0));
  if (config.min_learning_rate() > peak) {
    return BadField("min_learning_rate",
                    absl::StrCat(config.min_learning_rate(), " exceeds peak_learning_rate ", peak,
                                 ": lower it or raise peak_learning_rate"));
  }
  if (config.warmup_rounds() >= config.rounds()) {
    return BadField("warmup_rounds", absl::StrCat(config.warmup_rounds(), " is not below rounds ",
                                                  config.rounds(), ": lower it or raise rounds"));
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(CheckLearningRate(config));
  const float clip = static_cast<float>(config.clip_norm());
  if (!(clip > 0) || !std::isfinite(clip)) {
    return BadField("clip_norm",
                    absl::StrCat(config.clip_norm(),
                                 " is not above 0 and finite (as a 32-bit float): to "
                                 "switch clipping off give a large number such as 1e9"));
  }
  return InRange("weight_decay", config.weight_decay(), 0.0, 1.0);
}

absl::Status CheckDownload(const v1::RunConfig& config) {
  const bool top = config.download() == v1::DOWNLOAD_MODE_TOP;
  if (top && !config.has_kept_votes_per_block()) {
    return BadField("kept_votes_per_block", "is required with download \"top\": give 1 to 4096");
  }
  if (!top && config.has_kept_votes_per_block()) {
    return BadField("kept_votes_per_block",
                    "has no meaning with download \"lossless\": remove it or set download to "
                    "\"top\"");
  }
  if (!top) return absl::OkStatus();
  return InRange<uint32_t>("kept_votes_per_block", config.kept_votes_per_block(), 1, kMaxKept);
}

absl::Status CheckWorkers(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(
      InRange<uint32_t>("start_workers", config.start_workers(), 1, kMaxWorkers));
  if (config.start_workers() > config.max_workers()) {
    return BadField("start_workers",
                    absl::StrCat(config.start_workers(), " exceeds max_workers ",
                                 config.max_workers(), ": lower it or raise max_workers"));
  }
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("min_workers", config.min_workers(), 1, kMaxWorkers));
  if (config.min_workers() > config.start_workers()) {
    return BadField("min_workers", absl::StrCat(config.min_workers(), " exceeds start_workers ",
                                                config.start_workers(), ": set start_workers to ",
                                                config.min_workers(), " or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckDuration(absl::string_view key, const google::protobuf::Duration& value,
                           absl::string_view remedy) {
  if (IsDuration(value)) return absl::OkStatus();
  return BadField(
      key, absl::StrCat(value.seconds(), " s + ", value.nanos(), " ns is outside above 0 to ",
                        kMaxDeadlineSeconds, " s: ", remedy));
}

absl::Status CheckWindow(const v1::RunConfig& config) {
  if (!config.has_round_window()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(CheckDuration("round_window", config.round_window(),
                                       "remove the key to have every worker take local_steps"));
  if (config.has_round_deadline() && !Less(config.round_window(), config.round_deadline())) {
    return BadField(
        "round_window",
        absl::StrCat(SecondsText(config.round_window()), " is not below round_deadline, ",
                     SecondsText(config.round_deadline()),
                     ": no update would arrive in time: lower it or raise "
                     "round_deadline"));
  }
  return absl::OkStatus();
}

absl::Status CheckDeadline(const v1::RunConfig& config) {
  if (!config.has_round_deadline()) {
    if (!config.has_min_round_deadline()) return absl::OkStatus();
    return BadField("min_round_deadline",
                    "has no meaning without round_deadline: remove it or set round_deadline");
  }
  DISTRO_RETURN_IF_ERROR(CheckDuration("round_deadline", config.round_deadline(),
                                       "remove the key to wait for every worker"));
  DISTRO_RETURN_IF_ERROR(CheckDuration("min_round_deadline", config.min_round_deadline(),
                                       "remove the key to take its default"));
  if (!Less(AfterWindow(config), config.min_round_deadline())) return absl::OkStatus();
  return BadField(
      "min_round_deadline",
      absl::StrCat(SecondsText(config.min_round_deadline()), " exceeds ",
                   config.has_round_window() ? "what round_deadline leaves after round_window, "
                                             : "round_deadline, ",
                   SecondsText(AfterWindow(config)),
                   config.has_round_window() ? ": lower one of these two or raise round_deadline"
                                             : ": lower it or raise round_deadline"));
}

absl::Status CheckPinnedTokenizer(const v1::RunConfig& config) {
  if (!config.has_tokenizer_sha256() || IsSha256Text(config.tokenizer_sha256()))
    return absl::OkStatus();
  return BadField("tokenizer_sha256",
                  "is not 64 hexadecimal digits: give what `sha256sum tokenizer.json` prints, or "
                  "the \"sha256\" that the index of distro-data has under \"tokenizer\"");
}

absl::Status CheckPinnedData(const v1::RunConfig& config) {
  if (!config.has_data_fingerprint()) return absl::OkStatus();
  const std::string& fingerprint = config.data_fingerprint();
  if (fingerprint.empty() || fingerprint.size() > kMaxFingerprintBytes) {
    return BadField("data_fingerprint",
                    absl::StrCat("has ", fingerprint.size(), " characters, outside 1 to ",
                                 kMaxFingerprintBytes));
  }
  if (config.workers() == v1::WORKERS_PYTHON || IsSha256Text(fingerprint) ||
      fingerprint == kAnyData) {
    return absl::OkStatus();
  }
  return BadField("data_fingerprint",
                  "is not 64 hexadecimal digits: give what `distro-worker fingerprint --data "
                  "FILE` prints, or \"any\", with which no worker's data is compared");
}

absl::Status Check(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(ValidateName(config.name(), "name"));
  DISTRO_RETURN_IF_ERROR(Required<uint64_t>("rounds", config.rounds(), kMaxRounds));
  DISTRO_RETURN_IF_ERROR(CheckStep(config));
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("kept_per_block", config.kept_per_block(), 1, kMaxKept));
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("max_workers", config.max_workers(), 1, kMaxWorkers));
  DISTRO_RETURN_IF_ERROR(MethodOf(config).CheckKeys(config));
  DISTRO_RETURN_IF_ERROR(
      InRange<uint32_t>("segment_blocks", config.segment_blocks(), 1, kMaxCount));
  DISTRO_RETURN_IF_ERROR(CheckDownload(config));
  DISTRO_RETURN_IF_ERROR(
      Required<uint32_t>("sequence_length", config.sequence_length(), kMaxCount));
  DISTRO_RETURN_IF_ERROR(
      Required<uint32_t>("samples_per_worker", config.samples_per_worker(), kMaxCount));
  DISTRO_RETURN_IF_ERROR(InRange("held_out_fraction", config.held_out_fraction(), 0.0, 0.5));
  DISTRO_RETURN_IF_ERROR(CheckPinnedData(config));
  DISTRO_RETURN_IF_ERROR(CheckPinnedTokenizer(config));
  DISTRO_RETURN_IF_ERROR(CheckWorkers(config));
  DISTRO_RETURN_IF_ERROR(CheckWindow(config));
  DISTRO_RETURN_IF_ERROR(CheckDeadline(config));
  return InRange<uint32_t>("probation_rounds", config.probation_rounds(), 0, kMaxProbationRounds);
}

}  // namespace

absl::Status CheckValuesAreKnown(const v1::RunConfig& config) {
  const std::optional<UnknownValue> unknown = FirstUnknownValue(config);
  if (!unknown.has_value()) return absl::OkStatus();
  return NotKnown(absl::StrCat(unknown->key, " ", unknown->number));
}

absl::Status CheckKeysAreKnown(const v1::RunConfig& config) {
  const auto& unknown = config.GetReflection()->GetUnknownFields(config);
  if (!unknown.empty()) return NotKnown(absl::StrCat("key ", unknown.field(0).number()));
  return CheckValuesAreKnown(config);
}

absl::StatusOr<v1::RunConfig> CompleteRunConfig(v1::RunConfig config) {
  DISTRO_RETURN_IF_ERROR(CheckMessage(config));
  FillDefaults(config);
  DISTRO_RETURN_IF_ERROR(Check(config));
  return config;
}

}  // namespace distro
