#include "common/base/json.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/foreign_file.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

using nlohmann::json;

constexpr size_t kShownBytesOfJson = 200;

// Accepts what nlohmann::json parses, except repeated keys and deep nesting.
class Checker final : public nlohmann::json_sax<json> {
 public:
  absl::Status status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }

  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return true;
    return Refuse(absl::StrCat("the key ", ShownText(name, kShownBytesOfJson), " is repeated"));
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    return Refuse(
        absl::StrCat("byte ", position, ": ", ShownText(error.what(), kShownBytesOfJson)));
  }

 private:
  bool Enter() {
    keys_.emplace_back();
    return keys_.size() <= kMaxJsonDepth ||
           Refuse(absl::StrCat("nested deeper than ", kMaxJsonDepth));
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }
  bool Refuse(const std::string& message) {
    status_ = absl::InvalidArgumentError(absl::StrCat("not valid JSON: ", message));
    return false;
  }

  std::vector<std::set<std::string>> keys_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text) {
  // The library treats a zero byte as the end of the text.
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    return ExplainForeign(
        absl::InvalidArgumentError(absl::StrCat("not valid JSON: byte ", zero, " is zero")), text);
  }
  Checker checker;
  if (!json::sax_parse(text.begin(), text.end(), &checker))
    return ExplainForeign(checker.status(), text);
  return json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string WriteJson(const json& value) {
  return absl::StrCat(value.dump(2, ' ', false, json::error_handler_t::replace), "\n");
}

}  // namespace distro
