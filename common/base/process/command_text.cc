#include "common/base/process/command_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace distro {
namespace {

constexpr size_t kLineWidth = 100;

std::string FirstWord(const std::string& name) { return name.substr(0, name.find(' ')); }

const Command* Unnamed(const Program& program) {
  const auto found = std::find_if(program.commands.begin(), program.commands.end(),
                                  [](const Command& command) { return command.name.empty(); });
  return found == program.commands.end() ? nullptr : &*found;
}

// Wraps `text` into lines of at most kLineWidth, each indented by `indent` spaces.
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
    const std::string by_default = DefaultText(flag);
    absl::StrAppend(text, "\n  --", flag.name, value.empty() ? "" : " ", value, "\n");
    std::string help = flag.help;
    if (!by_default.empty()) absl::StrAppend(&help, " Default: ", by_default);
    if (IsSwitch(flag) && !by_default.empty()) absl::StrAppend(&help, "; --no", flag.name, ": not");
    if (!by_default.empty()) help += '.';
    absl::StrAppend(text, Wrapped(help, 6));
  }
}

void AppendAllFlags(const std::vector<Flag>& flags, std::string* text) {
  absl::StrAppend(text, "\n\nFlags:");
  AppendFlags(flags, text);
  AppendFlags(CommonFlags(), text);
}

std::string ExitCodes(const Program& program) {
  std::string text = "Exit codes:";
  for (const auto& [code, meaning] : program.exit_codes) {
    absl::StrAppendFormat(&text, "\n%s",
                          Wrapped(meaning, 7).replace(0, 5, absl::StrFormat("%5d", code)));
  }
  return text;
}

// Paragraphs, with an empty line between those that are not empty.
std::string Paragraphs(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return absl::StrJoin(parts, "\n\n");
}

// $command is the command's name, $current the word that is completed, $previous the one before it.
constexpr char kBegin[] = R"(# Completion of PROGRAM; made by `PROGRAM completion`.
_FUNCTION() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local first="${COMP_WORDS[1]}" command="" flags="" words=""
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "$first" in
      FIRST) command="$first" ;;
    esac
  fi
  case "$first" in
    )";
constexpr char kEnd[] = R"(  esac
  case "$current" in
    -*) [ -n "$words" ] || words="$flags" ;;
  esac
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _FUNCTION PROGRAM
)";

std::string FlagWords(const std::vector<Flag>& flags) {
  return absl::StrJoin(flags, " ", [](std::string* out, const Flag& flag) {
    absl::StrAppend(out, "--", flag.name);
    if (IsSwitch(flag) && !DefaultText(flag).empty()) absl::StrAppend(out, " --no", flag.name);
  });
}

// A line of `case "$previous"` for a flag with a value; empty for a switch.
std::string ValueCase(const Flag& flag) {
  const std::string pattern = absl::StrCat("        --", flag.name, ") ");
  if (IsSwitch(flag)) return "";
  if (!flag.choices.empty())
    return absl::StrCat(pattern, "words=\"", absl::StrJoin(flag.choices, " "), "\" ;;\n");
  const char* kind = flag.takes == Takes::kFile ? "-f" : flag.takes == Takes::kFolder ? "-d" : "";
  if (*kind == 0) return absl::StrCat(pattern, "return ;;\n");
  return absl::StrCat(pattern, "COMPREPLY=($(compgen ", kind, " -- \"$current\")); return ;;\n");
}

// The completions after a command, or without one.
std::string CommandCase(const Command& command) {
  std::vector<Flag> flags = command.flags;
  for (Flag& flag : CommonFlags()) flags.push_back(std::move(flag));
  std::string text = absl::StrCat("      flags=\"", FlagWords(flags), "\"\n");
  std::string values;
  for (const Flag& flag : flags) values += ValueCase(flag);
  if (values.empty()) return text + "      ;;\n";
  return absl::StrCat(text, "      case \"$previous\" in\n", values, "      esac ;;\n");
}

// First words, and second words of those that have them.
struct Words {
  std::vector<std::string> first;
  std::vector<std::pair<std::string, std::vector<std::string>>> second;
};

Words WordsOf(const Program& program) {
  Words words;
  for (const Command& command : Family(program, "")) {
    const std::string first = FirstWord(command.name);
    if (words.first.empty() || words.first.back() != first) words.first.push_back(first);
    if (first == command.name) continue;
    if (words.second.empty() || words.second.back().first != first)
      words.second.push_back({first, {}});
    words.second.back().second.push_back(command.name.substr(first.size() + 1));
  }
  return words;
}

}  // namespace

std::vector<Flag> CommonFlags() {
  bool* const nothing = nullptr;  // no variable: these flags end the parse
  return {{.name = "help", .value = nothing, .help = "Prints this."},
          {.name = "version", .value = nothing, .help = "Prints the program's version."}};
}

std::vector<Command> Family(const Program& program, absl::string_view first) {
  std::vector<Command> family;
  for (const Command& command : program.commands) {
    if (!command.name.empty() && (first.empty() || FirstWord(command.name) == first))
      family.push_back(command);
  }
  return family;
}

std::string Usage(const Command& command) {
  std::string usage = command.name;
  for (const Argument& argument : command.arguments) {
    absl::StrAppend(&usage, " ", argument.required ? "" : "[", argument.name,
                    argument.required ? "" : "]");
  }
  return usage;
}

std::string Overview(const Program& program, absl::string_view first) {
  const std::vector<Command> commands = Family(program, first);
  const Command* unnamed = first.empty() ? Unnamed(program) : nullptr;
  std::string text = absl::StrCat(program.name, ": ", program.summary, "\n");
  if (unnamed != nullptr)
    absl::StrAppend(&text, "\n  ", program.name, Usage(*unnamed), " [--flag VALUE ...]");
  absl::StrAppend(&text, "\n  ", program.name, " COMMAND [ARGUMENTS] [--flag VALUE ...]\n  ",
                  program.name, " help COMMAND\n\nCommands:");
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, Usage(command).size());
  for (const Command& command : commands) {
    absl::StrAppendFormat(&text, "\n  %-*s  %s", static_cast<int>(width), Usage(command),
                          command.summary);
  }
  if (unnamed != nullptr) AppendAllFlags(unnamed->flags, &text);
  return Paragraphs(
      {std::move(text), unnamed == nullptr ? "" : unnamed->help, program.help, ExitCodes(program)});
}

std::string CommandHelp(const Program& program, const Command& command) {
  std::string text =
      absl::StrCat(program.name, " ", Usage(command), "\n", Wrapped(command.summary, 4));
  AppendAllFlags(command.flags, &text);
  return Paragraphs({std::move(text), command.help, ExitCodes(program)});
}

std::string CompletionScript(const Program& program, bool zsh) {
  const Words words = WordsOf(program);
  const std::string first = absl::StrJoin(words.first, " ");
  std::string text = kBegin;
  absl::StrAppend(&text,
                  absl::StrJoin(words.second, "|",
                                [](std::string* out, const auto& group) { *out += group.first; }),
                  words.second.empty() ? "\"\"" : "",
                  ")\n      [ \"$COMP_CWORD\" -gt 2 ] && command=\"$first ${COMP_WORDS[2]}\" ;;\n"
                  "  esac\n  case \"$command\" in\n    \"\")\n"
                  "      [ \"$COMP_CWORD\" -eq 1 ] && [[ \"$current\" != -* ]] && words=\"",
                  first, " help\"\n");
  const Command* unnamed = Unnamed(program);
  absl::StrAppend(&text, unnamed == nullptr ? CommandCase({}) : CommandCase(*unnamed),
                  "    help) words=\"", first, "\" ;;\n");
  for (const auto& [word, second] : words.second)
    absl::StrAppend(&text, "    ", word, ") words=\"", absl::StrJoin(second, " "), "\" ;;\n");
  for (const Command& command : Family(program, ""))
    absl::StrAppend(&text, "    \"", command.name, "\")\n", CommandCase(command));
  text += kEnd;
  return absl::StrCat(
      zsh ? "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" : "",
      absl::StrReplaceAll(text, {{"FIRST", absl::StrCat(absl::StrJoin(words.first, "|"), "|help")},
                                 {"FUNCTION", absl::StrReplaceAll(program.name, {{"-", "_"}})},
                                 {"PROGRAM", program.name}}));
}

}  // namespace distro
