#include "common/model/config_reader.h"

#include "absl/strings/str_cat.h"

namespace distro {
namespace {

using nlohmann::json;

// The value for a message, shortened, because the file is untrusted.
std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = absl::StrCat(text.substr(0, 57), "...");
  return text;
}

}  // namespace

const json* ConfigReader::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::IsNull(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

void ConfigReader::Refuse(absl::string_view key, absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(prefix_, key, ": ", message));
}

void ConfigReader::RefuseValue(const char* key, absl::string_view message) {
  Refuse(key, absl::StrCat(Shown(*Find(key)), " ", message));
}

int64_t ConfigReader::Integer(const char* key, int64_t min, int64_t max, int64_t fallback) {
  const json* value = Find(key);
  if (value == nullptr) return fallback;
  const bool in_range = value->is_number_unsigned() &&
                        value->get<uint64_t>() <= static_cast<uint64_t>(max) &&
                        value->get<int64_t>() >= min;
  if (in_range) return value->get<int64_t>();
  RefuseValue(key, absl::StrCat("is not an integer from ", min, " to ", max));
  return fallback;
}

int64_t ConfigReader::RequiredInteger(const char* key, int64_t min, int64_t max) {
  if (Find(key) == nullptr)
    Refuse(key, absl::StrCat("is missing; give an integer from ", min, " to ", max));
  return Integer(key, min, max, min);
}

double ConfigReader::Number(const char* key, double min, double max, double fallback) {
  const json* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_number() && value->get<double>() >= min && value->get<double>() <= max)
    return value->get<double>();
  RefuseValue(key, absl::StrCat("is not a number from ", min, " to ", max));
  return fallback;
}

bool ConfigReader::Bool(const char* key, bool fallback) {
  const json* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  RefuseValue(key, "is not true or false");
  return fallback;
}

std::string ConfigReader::String(const char* key, absl::string_view fallback) {
  const json* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  RefuseValue(key, "is not a string");
  return std::string(fallback);
}

void ConfigReader::RequireBool(const char* key, bool built, absl::string_view remedy) {
  if (Bool(key, built) != built) RefuseValue(key, absl::StrCat("is not supported; ", remedy));
}

void ConfigReader::RequireNumber(const char* key, double built, absl::string_view remedy) {
  const json* value = Find(key);
  if (value != nullptr && !(value->is_number() && value->get<double>() == built)) {
    RefuseValue(key, absl::StrCat("is not supported; ", remedy));
  }
}

void ConfigReader::RequireString(const char* key, absl::string_view built,
                                 absl::string_view remedy) {
  if (String(key, built) != built) RefuseValue(key, absl::StrCat("is not supported; ", remedy));
}

void ConfigReader::RequireAbsent(const char* key, absl::string_view remedy) {
  if (Find(key) != nullptr) RefuseValue(key, absl::StrCat("is not supported; ", remedy));
}

}  // namespace distro
