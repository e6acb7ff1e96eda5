// The JSON form of run_config.h. Keys are the message's field names and values have proto3's JSON
// form, except that enumerations have short names: "lossless", "top".
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/run/pinned_tokenizer.h"
#include "common/run/run_config.h"

namespace distro {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

constexpr size_t kMaxJsonBytes = 1 << 20;

// A text from the file, escaped and shortened for a message.
std::string Shown(absl::string_view text) { return ShownText(text, 80); }

std::string AllKeys() {
  std::vector<std::string> keys;
  for (int i = 0; i < v1::RunConfig::descriptor()->field_count(); ++i) {
    keys.push_back(v1::RunConfig::descriptor()->field(i)->name());
  }
  return absl::StrJoin(keys, ", ");
}

// Reads whole numbers, also in the form 1e6, because templating tools print such numbers.
absl::StatusOr<uint64_t> WholeNumber(absl::string_view key, const json& value, uint64_t most) {
  constexpr double kExact = 9007199254740992;  // 2^53
  uint64_t number = most;
  bool whole = value.is_number_unsigned();
  if (whole) number = value.get<uint64_t>();
  if (value.is_number_float()) {
    const double real = value.get<double>();
    whole = real >= 0 && real <= kExact && std::floor(real) == real;
    if (whole) number = static_cast<uint64_t>(real);
  }
  if (whole && number <= most) return number;
  return BadField(
      key, absl::StrCat(Shown(value.dump(-1, ' ', true)), " is not a whole number of 0 to ", most));
}

// The name without its enumeration's prefix: DOWNLOAD_MODE_TOP is "top".
std::string NameOf(const EnumValueDescriptor* value) {
  const absl::string_view unset = value->type()->FindValueByNumber(0)->name();
  absl::string_view prefix = unset;
  absl::ConsumeSuffix(&prefix, "UNSPECIFIED");
  return absl::AsciiStrToLower(absl::StripPrefix(value->name(), prefix));
}

absl::Status SetEnum(const FieldDescriptor* field, const json& value, v1::RunConfig& config) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  std::vector<std::string> known;
  for (int i = 1; i < field->enum_type()->value_count(); ++i) {
    const EnumValueDescriptor* const allowed = field->enum_type()->value(i);
    known.push_back(absl::StrCat("\"", NameOf(allowed), "\""));
    if (text != NameOf(allowed) && text != allowed->name()) continue;
    config.GetReflection()->SetEnum(&config, field, allowed);
    return absl::OkStatus();
  }
  return BadField(field->name(),
                  absl::StrCat(Shown(value.dump(-1, ' ', true)), " is not known: give ",
                               absl::StrJoin(known, " or ")));
}

absl::Status SetDuration(absl::string_view key, const json& value,
                         google::protobuf::Duration* message) {
  absl::Duration duration;
  if (!value.is_string() || !absl::ParseDuration(value.get<std::string>(), &duration) ||
      duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) {
    return BadField(key,
                    absl::StrCat(Shown(value.dump(-1, ' ', true)),
                                 " is not a duration: give a text such as \"30s\" or \"1.5s\""));
  }
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return absl::OkStatus();
}

// The field as a duration: RunConfig has no other messages.
google::protobuf::Duration* MutableDuration(const FieldDescriptor* field, v1::RunConfig& config) {
  return static_cast<google::protobuf::Duration*>(
      config.GetReflection()->MutableMessage(&config, field));
}

absl::Status SetField(const FieldDescriptor* field, const json& value, v1::RunConfig& config) {
  const auto* reflection = config.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      DISTRO_ASSIGN_OR_RETURN(uint64_t number, WholeNumber(field->name(), value, UINT32_MAX));
      reflection->SetUInt32(&config, field, static_cast<uint32_t>(number));
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      DISTRO_ASSIGN_OR_RETURN(uint64_t number, WholeNumber(field->name(), value, UINT64_MAX));
      reflection->SetUInt64(&config, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!value.is_number())
        return BadField(field->name(),
                        absl::StrCat(Shown(value.dump(-1, ' ', true)), " is not a number"));
      reflection->SetDouble(&config, field, value.get<double>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string())
        return BadField(field->name(),
                        absl::StrCat(Shown(value.dump(-1, ' ', true)), " is not a text in quotes"));
      reflection->SetString(&config, field, value.get<std::string>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(field, value, config);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return SetDuration(field->name(), value, MutableDuration(field, config));
    default:
      return absl::InternalError(absl::StrCat(field->name(), ": has no JSON form"));
  }
}

std::string DurationText(const google::protobuf::Duration& duration) {
  std::string text = absl::StrCat(duration.seconds());
  if (duration.nanos() != 0) {
    absl::StrAppend(&text, ".", absl::Dec(duration.nanos(), absl::kZeroPad9));
  }
  return absl::StrCat(text, "s");
}

nlohmann::ordered_json FieldToJson(const FieldDescriptor* field, const v1::RunConfig& config) {
  const auto* reflection = config.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(config, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetUInt64(config, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetDouble(config, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(config, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(reflection->GetEnum(config, field));
    default:
      return DurationText(
          static_cast<const google::protobuf::Duration&>(reflection->GetMessage(config, field)));
  }
}

// The fingerprint of a Python worker's data is any text, and stays as it is.
void LowerHashes(v1::RunConfig* config) {
  if (config->has_tokenizer_sha256())
    config->set_tokenizer_sha256(Sha256TextOf(config->tokenizer_sha256()));
  if (config->has_data_fingerprint() && config->workers() != v1::WORKERS_PYTHON)
    config->set_data_fingerprint(Sha256TextOf(config->data_fingerprint()));
}

}  // namespace

absl::StatusOr<v1::RunConfig> ReadRunConfig(absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat("is larger than ", kMaxJsonBytes, " bytes"));
  }
  DISTRO_ASSIGN_OR_RETURN(const json values, ParseJson(text));
  if (!values.is_object()) {
    return absl::InvalidArgumentError("is not a JSON object: give {\"name\": ..., ...}");
  }
  v1::RunConfig config;
  for (const auto& [key, value] : values.items()) {
    const FieldDescriptor* field = v1::RunConfig::descriptor()->FindFieldByName(key);
    if (field == nullptr) {
      return BadField(Shown(key),
                      absl::StrCat("is not a key of a run: remove it, or take one of ", AllKeys()));
    }
    if (value.is_null()) return BadField(key, "is null: remove the key to take its default");
    DISTRO_RETURN_IF_ERROR(SetField(field, value, config));
  }
  LowerHashes(&config);
  DISTRO_RETURN_IF_ERROR(CompleteRunConfig(config).status());
  return config;
}

absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view text) {
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig config, ReadRunConfig(text));
  return CompleteRunConfig(std::move(config));
}

std::string RunConfigToJson(const v1::RunConfig& config) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (int i = 0; i < v1::RunConfig::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = v1::RunConfig::descriptor()->field(i);
    const bool always =
        !field->has_presence() && field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM;
    if (always || config.GetReflection()->HasField(config, field)) {
      values[field->name()] = FieldToJson(field, config);
    }
  }
  return absl::StrCat(values.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                      "\n");
}

}  // namespace distro
