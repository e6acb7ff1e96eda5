#include "tools/distroctl/arguments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/command.h"

namespace distro::tools {
namespace {

absl::Status Wrong(absl::string_view flag, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": '", value, "' is not ", wanted));
}

absl::Status CheckValue(const Flag& flag, const std::string& value) {
  uint64_t count;
  double number;
  absl::Duration duration;
  switch (flag.value) {
    case Value::kSwitch:
      if (value != "true" && value != "false") return Wrong(flag.name, value, "true or false");
      break;
    case Value::kCount:
      if (!absl::SimpleAtoi(value, &count)) return Wrong(flag.name, value, "a whole number from 0");
      break;
    case Value::kNumber:
      if (!absl::SimpleAtod(value, &number) || !std::isfinite(number))
        return Wrong(flag.name, value, "a number");
      break;
    case Value::kDuration:
      if (!absl::ParseDuration(value, &duration))
        return Wrong(flag.name, value, "a duration such as 10s or 500ms");
      break;
    default:
      break;
  }
  if (flag.choices.empty() || absl::c_linear_search(flag.choices, value)) return absl::OkStatus();
  return Wrong(flag.name, value, absl::StrJoin(flag.choices, ", "));
}

absl::Status CheckCount(const Command& command, const std::vector<std::string>& positional) {
  const std::vector<std::string> names = absl::StrSplit(command.arguments, ' ', absl::SkipEmpty());
  if (positional.size() > names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(command.name, ": '", positional[names.size()], "' is one argument too many"));
  }
  if (positional.size() == names.size() || names[positional.size()][0] == '[')
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(command.name, ": ", names[positional.size()], " is missing"));
}

class Parser {
 public:
  explicit Parser(const Command& command) : command_(command), known_(CommonFlags()) {
    known_.insert(known_.end(), command.flags.begin(), command.flags.end());
  }

  absl::Status Parse(const std::vector<std::string>& given) {
    for (next_ = 0; next_ < given.size(); ++next_) {
      if (given[next_] == "--") {
        positional_.insert(positional_.end(), given.begin() + next_ + 1, given.end());
        break;
      }
      if (absl::StartsWith(given[next_], "--")) {
        DISTRO_RETURN_IF_ERROR(TakeFlag(given));
      } else {
        positional_.push_back(given[next_]);
      }
    }
    return CheckCount(command_, positional_);
  }

  Arguments Finish() {
    for (const Flag& flag : known_) values_.try_emplace(flag.name, flag.default_value);
    return Arguments(std::move(values_), std::move(positional_));
  }

 private:
  absl::Status TakeFlag(const std::vector<std::string>& given) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(given[next_].substr(2), absl::MaxSplits('=', 1));
    const auto flag = std::find_if(known_.begin(), known_.end(),
                                   [&](const Flag& f) { return f.name == parts.first; });
    if (flag == known_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--", parts.first, ": is no flag of '",
                                                     command_.name, "'; 'distroctl help ",
                                                     command_.name, "' lists them"));
    }
    std::string value = parts.second;
    if (!absl::StrContains(given[next_], '=')) {
      if (flag->value == Value::kSwitch) {
        value = "true";
      } else if (++next_ < given.size()) {
        value = given[next_];
      } else {
        return absl::InvalidArgumentError(absl::StrCat("--", flag->name, ": its value is missing"));
      }
    }
    DISTRO_RETURN_IF_ERROR(CheckValue(*flag, value));
    if (!values_.try_emplace(flag->name, value).second)
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, ": is given twice"));
    return absl::OkStatus();
  }

  const Command& command_;
  std::vector<Flag> known_;
  size_t next_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<std::string> positional_;
};

}  // namespace

bool Arguments::Switch(const std::string& flag) const { return Text(flag) == "true"; }

uint64_t Arguments::Count(const std::string& flag) const {
  uint64_t count = 0;
  return absl::SimpleAtoi(Text(flag), &count) ? count : 0;
}

double Arguments::Number(const std::string& flag) const {
  double number = 0;
  return absl::SimpleAtod(Text(flag), &number) ? number : 0;
}

absl::Duration Arguments::Duration(const std::string& flag) const {
  absl::Duration duration;
  return absl::ParseDuration(Text(flag), &duration) ? duration : absl::ZeroDuration();
}

std::vector<std::string> Arguments::Words(const std::string& flag) const {
  return absl::StrSplit(Text(flag), ',', absl::SkipEmpty());
}

absl::StatusOr<Arguments> ParseArguments(const Command& command,
                                         const std::vector<std::string>& given) {
  Parser parser(command);
  DISTRO_RETURN_IF_ERROR(parser.Parse(given));
  return parser.Finish();
}

}  // namespace distro::tools
