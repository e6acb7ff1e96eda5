#include "common/base/process/flag.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_util.h"

namespace distro {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};

constexpr Unit kUnits[] = {{"KiB", uint64_t{1} << 10},
                           {"MiB", uint64_t{1} << 20},
                           {"GiB", uint64_t{1} << 30},
                           {"TiB", uint64_t{1} << 40},
                           {"kB", 1000},
                           {"MB", 1000000},
                           {"GB", 1000000000},
                           {"TB", 1000000000000},
                           {"B", 1}};  // "B" ends all of them

// False: it is not a size, or has more than 64 bits.
bool ParseBytes(absl::string_view text, uint64_t* bytes) {
  uint64_t unit = 1;
  for (const Unit& known : kUnits) {
    if (!absl::ConsumeSuffix(&text, known.name)) continue;
    unit = known.bytes;
    break;
  }
  uint64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count > UINT64_MAX / unit) return false;
  *bytes = count * unit;
  return true;
}

std::string BytesText(uint64_t bytes) {
  for (const char* name : {"TiB", "GiB", "MiB", "KiB"}) {
    const Unit& unit = *absl::c_find_if(kUnits, [&](const Unit& u) { return u.name == name; });
    if (bytes != 0 && bytes % unit.bytes == 0) return absl::StrCat(bytes / unit.bytes, unit.name);
  }
  return absl::StrCat(bytes);
}

// Sets the variable. Returns nullptr, or the expected kind of value for the error message, such as
// "a number".
struct Setter {
  const std::string& text;

  const char* operator()(std::string* value) const {
    *value = text;
    return nullptr;
  }
  const char* operator()(bool* value) const {
    return absl::SimpleAtob(text, value) ? nullptr : "true or false";
  }
  const char* operator()(int* value) const {
    return absl::SimpleAtoi(text, value) ? nullptr : "a whole number";
  }
  const char* operator()(int64_t* value) const {
    return absl::SimpleAtoi(text, value) ? nullptr : "a whole number";
  }
  const char* operator()(uint64_t* value) const {
    return absl::SimpleAtoi(text, value) ? nullptr : "a whole number from 0";
  }
  const char* operator()(double* value) const {
    return absl::SimpleAtod(text, value) && std::isfinite(*value) ? nullptr : "a number";
  }
  const char* operator()(absl::Duration* value) const {
    return absl::ParseDuration(text, value) ? nullptr : "a duration such as 10s or 500ms";
  }
  const char* operator()(std::vector<std::string>* value) const {
    for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty()))
      value->emplace_back(word);
    return nullptr;
  }
  const char* operator()(const ByteSize& value) const {
    return ParseBytes(text, value.bytes) ? nullptr : "a size such as 1048576 or 1MiB";
  }
  const char* operator()(const ParsedText&) const { return nullptr; }  // has a status of its own
};

struct DefaultWriter {
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const bool* value) const {
    return value != nullptr && *value ? "true" : "";
  }
  template <typename Number>
  std::string operator()(const Number* value) const {
    return absl::StrCat(*value);
  }
  std::string operator()(const uint64_t* value) const {
    return *value == UINT64_MAX ? "" : absl::StrCat(*value);  // no bound
  }
  std::string operator()(const absl::Duration* value) const { return absl::FormatDuration(*value); }
  std::string operator()(const std::vector<std::string>* value) const {
    return absl::StrJoin(*value, ",");
  }
  std::string operator()(const ByteSize& value) const { return BytesText(*value.bytes); }
  std::string operator()(const ParsedText& value) const { return value.by_default; }
};

struct PlaceholderWriter {
  std::string operator()(const std::string*) const { return "TEXT"; }
  std::string operator()(const bool*) const { return ""; }
  template <typename Number>
  std::string operator()(const Number*) const {
    return "N";
  }
  std::string operator()(const double*) const { return "X"; }
  std::string operator()(const absl::Duration*) const { return "10s"; }
  std::string operator()(const std::vector<std::string>*) const { return "A,B,..."; }
  std::string operator()(const ByteSize&) const { return "BYTES"; }
  std::string operator()(const ParsedText&) const { return "TEXT"; }
};

}  // namespace

absl::Status SetFlag(const Flag& flag, const std::string& text) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": '", text, "' is ", what));
  };
  if (!flag.choices.empty() && !absl::c_linear_search(flag.choices, text))
    return wrong(absl::StrCat("none of ", absl::StrJoin(flag.choices, ", ")));
  if (const auto* parsed = std::get_if<ParsedText>(&flag.value))
    return Annotate(parsed->parse(text), absl::StrCat("--", flag.name));
  const char* wanted = std::visit(Setter{text}, flag.value);
  return wanted == nullptr ? absl::OkStatus() : wrong(absl::StrCat("not ", wanted));
}

std::string DefaultText(const Flag& flag) { return std::visit(DefaultWriter(), flag.value); }

std::string Placeholder(const Flag& flag) {
  if (!flag.choices.empty()) return absl::StrJoin(flag.choices, "|");
  if (flag.takes == Takes::kFile) return "FILE";
  if (flag.takes == Takes::kFolder) return "DIR";
  return std::visit(PlaceholderWriter(), flag.value);
}

Flag LogLevelFlag(LogLevel* level) {
  return {
      .name = "log_level",
      .value = ParsedText{[level](absl::string_view text) { return ParseLogLevel(text, level); },
                          "info"},
      .help = "How much is logged.",
      .choices = {"debug", "info", "warning", "error"}};
}

}  // namespace distro
