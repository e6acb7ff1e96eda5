#include "tools/distroctl/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/distroctl/commands.h"

namespace distro::tools {
namespace {

// $command is the command's name, $current the word that is completed, $previous the one before it.
constexpr char kBegin[] = R"(# Completion of distroctl; made by `distroctl completion`.
_distroctl() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local first="${COMP_WORDS[1]}" command="" flags="" words=""
  [ "$COMP_CWORD" -gt 1 ] && command="$first"
  case "$first" in
    )";
constexpr char kEnd[] = R"(  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
  esac
}
complete -F _distroctl distroctl
)";

std::string Flags(const std::vector<Flag>& flags) {
  return absl::StrJoin(flags, " ", [](std::string* out, const Flag& flag) {
    absl::StrAppend(out, "--", flag.name);
  });
}

// A line of `case "$previous"` for a flag with a value; empty for a switch.
std::string ValueCase(const Flag& flag) {
  const std::string pattern = absl::StrCat("        --", flag.name, ") ");
  if (flag.value == Value::kSwitch) return "";
  if (!flag.choices.empty())
    return absl::StrCat(pattern, "words=\"", absl::StrJoin(flag.choices, " "), "\" ;;\n");
  const char* kind = flag.value == Value::kFile ? "-f" : flag.value == Value::kFolder ? "-d" : "";
  if (*kind == 0) return absl::StrCat(pattern, "return ;;\n");
  return absl::StrCat(pattern, "COMPREPLY=($(compgen ", kind, " -- \"$current\")); return ;;\n");
}

std::string CommandCase(const Command& command) {
  std::vector<Flag> flags = command.flags;
  for (Flag& flag : CommonFlags()) flags.push_back(std::move(flag));
  std::string text = absl::StrCat("    \"", command.name, "\")\n      flags=\"", Flags(flags),
                                  "\"\n      case \"$previous\" in\n");
  for (const Flag& flag : flags) absl::StrAppend(&text, ValueCase(flag));
  return absl::StrCat(text, "      esac ;;\n");
}

// First words, and second words of those that have them.
struct Words {
  std::vector<std::string> first;
  std::vector<std::pair<std::string, std::vector<std::string>>> second;
};

Words WordsOf(const std::vector<Command>& commands) {
  Words words;
  for (const Command& command : commands) {
    const size_t blank = command.name.find(' ');
    const std::string first = command.name.substr(0, blank);
    if (words.first.empty() || words.first.back() != first) words.first.push_back(first);
    if (blank == std::string::npos) continue;
    if (words.second.empty() || words.second.back().first != first)
      words.second.push_back({first, {}});
    words.second.back().second.push_back(command.name.substr(blank + 1));
  }
  return words;
}

}  // namespace

std::string CompletionScript(const std::vector<Command>& commands, bool zsh) {
  const Words words = WordsOf(commands);
  std::string text =
      zsh ? "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" : "";
  absl::StrAppend(&text, kBegin,
                  absl::StrJoin(words.second, "|",
                                [](std::string* out, const auto& group) { *out += group.first; }),
                  ")\n      [ \"$COMP_CWORD\" -gt 2 ] && command=\"$first ${COMP_WORDS[2]}\" ;;\n"
                  "  esac\n  case \"$command\" in\n    \"\") words=\"",
                  absl::StrJoin(words.first, " "), " help\" ;;\n    help) words=\"",
                  absl::StrJoin(words.first, " "), "\" ;;\n");
  for (const auto& [first, second] : words.second)
    absl::StrAppend(&text, "    ", first, ") words=\"", absl::StrJoin(second, " "), "\" ;;\n");
  for (const Command& command : commands) absl::StrAppend(&text, CommandCase(command));
  return absl::StrCat(text, kEnd);
}

Command CompletionCommand() {
  return {.name = "completion",
          .arguments = "SHELL",
          .summary = "Prints completion for a shell: bash or zsh.",
          .help = R"(Examples:
  source <(distroctl completion bash)                                    # this shell
  distroctl completion bash > /etc/bash_completion.d/distroctl           # all
  distroctl completion zsh >> ~/.zshrc)",
          .run = [](const Arguments& arguments, const Console&) -> absl::StatusOr<Report> {
            const std::string& shell = arguments.positional()[0];
            if (shell != "bash" && shell != "zsh")
              return absl::InvalidArgumentError(
                  absl::StrCat("SHELL: '", shell, "' is not bash or zsh"));
            std::string script = CompletionScript(Commands(), shell == "zsh");
            return Report{.text = script, .json = {{"script", script}}};
          }};
}

}  // namespace distro::tools
