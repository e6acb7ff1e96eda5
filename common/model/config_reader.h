// Reads the keys of one JSON object with types and ranges, and keeps the first error, which names
// its key. For architectures; not thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace distro {

class ConfigReader {
 public:
  // Borrows `object`, which must be a JSON object. Messages put `prefix` before every key.
  ConfigReader(const nlohmann::json& object, std::string prefix)
      : object_(object), prefix_(std::move(prefix)) {}

  const absl::Status& status() const { return status_; }
  // The value; nullptr if the key is absent or null.
  const nlohmann::json* Find(const char* key) const;
  bool IsNull(const char* key) const;  // false if the key is absent

  // These return `fallback` if the key is absent or null, and after an error.
  int64_t Integer(const char* key, int64_t min, int64_t max, int64_t fallback);
  int64_t RequiredInteger(const char* key, int64_t min, int64_t max);
  double Number(const char* key, double min, double max, double fallback);
  bool Bool(const char* key, bool fallback);
  std::string String(const char* key, absl::string_view fallback);

  // Require that the key is absent, null or equal to `built`, the supported value; `remedy` is part
  // of the error message.
  void RequireBool(const char* key, bool built, absl::string_view remedy);
  void RequireNumber(const char* key, double built, absl::string_view remedy);
  void RequireString(const char* key, absl::string_view built, absl::string_view remedy);
  void RequireAbsent(const char* key, absl::string_view remedy);

  void Refuse(absl::string_view key, absl::string_view message);
  // Like Refuse, and shows the value. Requires that Find(key) is not nullptr.
  void RefuseValue(const char* key, absl::string_view message);

 private:
  const nlohmann::json& object_;
  const std::string prefix_;
  absl::Status status_;
};

}  // namespace distro
