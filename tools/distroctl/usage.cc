#include "tools/distroctl/usage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/distroctl/exit_code.h"

namespace distro::tools {
namespace {

constexpr size_t kLineWidth = 100;

std::string Usage(const Command& command) {
  return absl::StrCat(command.name, command.arguments.empty() ? "" : " ", command.arguments);
}

std::string Placeholder(const Flag& flag) {
  if (!flag.choices.empty()) return absl::StrJoin(flag.choices, "|");
  switch (flag.value) {
    case Value::kSwitch:
      return "";
    case Value::kText:
      return "TEXT";
    case Value::kFile:
      return "FILE";
    case Value::kFolder:
      return "DIR";
    case Value::kCount:
      return "N";
    case Value::kNumber:
      return "X";
    case Value::kDuration:
      return "10s";
    case Value::kWords:
      return "A,B,...";
  }
  return "";
}

// `text` in lines of at most kLineWidth, each after `indent` blanks.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string out;
  size_t column = kLineWidth;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column + 1 + word.size() > kLineWidth) {
      absl::StrAppend(&out, out.empty() ? "" : "\n", std::string(indent, ' '), word);
      column = indent + word.size();
    } else {
      absl::StrAppend(&out, " ", word);
      column += 1 + word.size();
    }
  }
  return out;
}

void AppendFlags(const std::vector<Flag>& flags, std::string* text) {
  for (const Flag& flag : flags) {
    const std::string value = Placeholder(flag);
    absl::StrAppend(text, "\n  --", flag.name, value.empty() ? "" : " ", value, "\n");
    const std::string by_default =
        flag.default_value.empty() ? "" : absl::StrCat(" Default: ", flag.default_value, ".");
    absl::StrAppend(text, Wrapped(flag.help + by_default, 6));
  }
}

}  // namespace

std::string Overview(const std::vector<Command>& commands) {
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, Usage(command).size());
  std::string text =
      "distroctl: prepares runs, looks at them, and says what they will cost.\n\n"
      "  distroctl COMMAND [ARGUMENTS] [--flag VALUE ...]\n  distroctl help COMMAND\n\n"
      "Commands:";
  for (const Command& command : commands) {
    absl::StrAppendFormat(&text, "\n  %-*s  %s", static_cast<int>(width), Usage(command),
                          command.summary);
  }
  return absl::StrCat(text,
                      "\n\nA command with HOST:PORT also wants --ca FILE and either --token_file "
                      "FILE or --cert FILE "
                      "--key FILE,\nor --insecure. --output json prints for programs. Results go "
                      "to standard output, "
                      "the rest to standard error.\nFor completion in bash: source <(distroctl "
                      "completion bash)\n\n",
                      ExitCodeHelp());
}

std::string CommandHelp(const Command& command) {
  std::string text =
      absl::StrCat("distroctl ", Usage(command), "\n", Wrapped(command.summary, 4), "\n\nFlags:");
  AppendFlags(command.flags, &text);
  AppendFlags(CommonFlags(), &text);
  return absl::StrCat(text, "\n\n", command.help, "\n\n", ExitCodeHelp());
}

}  // namespace distro::tools
