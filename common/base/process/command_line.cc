#include "common/base/process/command_line.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/exceptions.h"
#include "common/base/process/command_text.h"
#include "common/base/process/prepare_process.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/base/version.h"

namespace distro {
namespace {

// A command as CLI11 options.
struct Parsed {
  const Command* command;
  std::vector<CLI::Option*> flags;      // in the command's order
  std::vector<CLI::Option*> arguments;  // likewise
};

CLI::Option* AddFlag(const Flag& flag, CLI::App* app) {
  CLI::Option* option =
      IsSwitch(flag) ? app->add_flag(absl::StrCat("--", flag.name, ",!--no", flag.name))
                     : app->add_option(absl::StrCat("--", flag.name))->type_name(Placeholder(flag));
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Sets the options that all apps share.
void Prepare(CLI::App* app) {
  app->set_help_flag();  // CLI11 would check its own only after reporting errors
  app->add_flag_callback("-h,--help", [] { throw CLI::CallForHelp(); })->trigger_on_parse();
  app->add_flag_callback("--version", [] { throw CLI::CallForVersion(); })->trigger_on_parse();
  app->allow_extras();
  app->require_subcommand(0, 1);
}

// The app of a command below `root`: "log show" is a nested app.
CLI::App* AppOf(const std::string& name, CLI::App* root) {
  CLI::App* app = root;
  for (const absl::string_view word : absl::StrSplit(name, ' ', absl::SkipEmpty())) {
    const auto there =
        app->get_subcommands([word](const CLI::App* below) { return below->get_name() == word; });
    if (!there.empty()) {
      app = there[0];
    } else {
      app = app->add_subcommand(std::string(word));
      Prepare(app);
    }
  }
  return app;
}

class Parser {
 public:
  explicit Parser(const Program& program) : program_(program), root_(program.summary) {
    Prepare(&root_);
    for (const Command& command : program.commands) Add(command);
  }

  // Sets the flags and arguments of the command and returns it; or returns nullptr and sets `*text`
  // to the requested help. InvalidArgument names the error.
  absl::StatusOr<const Command*> Parse(const std::vector<std::string>& words, std::string* text) {
    try {
      root_.parse(Reversed(words));
    } catch (const CLI::CallForHelp&) {
      *text = Help();
      return nullptr;
    } catch (const CLI::CallForVersion&) {
      *text = absl::StrCat(program_.name, " ", Version());
      return nullptr;
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    const CLI::App* const app = Found();
    DISTRO_RETURN_IF_ERROR(CheckRest(*app));
    const Parsed& parsed = apps_.at(app);
    DISTRO_RETURN_IF_ERROR(SetFlags(parsed));
    DISTRO_RETURN_IF_ERROR(SetArguments(parsed));
    return parsed.command;
  }

 private:
  // CLI11 reads words from the end of a vector. It also treats "--name=" as a flag whose value is
  // the next word.
  static std::vector<std::string> Reversed(const std::vector<std::string>& words) {
    std::vector<std::string> reversed;
    bool flags_end = false;
    for (const std::string& word : words) {
      flags_end = flags_end || word == "--";
      if (!flags_end && absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) {
        reversed.push_back(word.substr(0, word.size() - 1));
        reversed.emplace_back();
      } else {
        reversed.push_back(word);
      }
    }
    return {reversed.rbegin(), reversed.rend()};
  }

  void Add(const Command& command) {
    CLI::App* app = AppOf(command.name, &root_);
    Parsed& parsed = apps_[app];
    parsed.command = &command;
    for (const Flag& flag : command.flags) parsed.flags.push_back(AddFlag(flag, app));
    for (const Argument& argument : command.arguments)
      parsed.arguments.push_back(app->add_option(argument.name));
  }

  // The innermost command that was named, which may be a family or the root.
  const CLI::App* Found() {
    const CLI::App* app = &root_;
    for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands())
      app = below[0];
    return app;
  }

  std::string Help() {
    const CLI::App* const app = Found();
    const auto parsed = apps_.find(app);
    if (app == &root_ || parsed == apps_.end())
      return Overview(program_, app == &root_ ? "" : app->get_name());
    return CommandHelp(program_, *parsed->second.command);
  }

  // Reports words that no command accepted.
  absl::Status CheckRest(const CLI::App& app) {
    for (const std::string& word : root_.remaining(/*recurse=*/true)) {
      if (word != "--") return Unknown(app, word);
    }
    return apps_.contains(&app) ? absl::OkStatus() : Unknown(app, "");
  }

  absl::Status Unknown(const CLI::App& app, const std::string& word) {
    const bool known = apps_.contains(&app);
    const std::string help = &app == &root_
                                 ? absl::StrCat("'", program_.name, " --help'")
                                 : absl::StrCat("'", program_.name, " help ", NameOf(app), "'");
    if (absl::StartsWith(word, "-")) {
      return absl::InvalidArgumentError(absl::StrCat(
          word.substr(0, word.find('=')), ": is no flag", &app == &root_ ? "" : " of '",
          NameOf(app), &app == &root_ ? "" : "'", "; ", help, " lists them"));
    }
    if (known && &app != &root_) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(app), ": '", word, "' is one argument too many"));
    }
    if (&app == &root_) {
      return absl::InvalidArgumentError(
          absl::StrCat(word.empty() ? "no command" : absl::StrCat("unknown command '", word, "'"),
                       "; ", help, " lists them"));
    }
    std::vector<std::string> names;
    for (const Command& command : Family(program_, app.get_name())) names.push_back(command.name);
    return absl::InvalidArgumentError(absl::StrCat("'", app.get_name(), word.empty() ? "" : " ",
                                                   word, "': is none of ",
                                                   absl::StrJoin(names, ", ")));
  }

  std::string NameOf(const CLI::App& app) const {
    return &app == &root_         ? ""
           : apps_.contains(&app) ? apps_.at(&app).command->name
                                  : app.get_name();
  }

  absl::Status SetFlags(const Parsed& parsed) {
    const std::vector<Flag>& flags = parsed.command->flags;
    for (size_t i = 0; i < flags.size(); ++i) {
      if (!parsed.command->name.empty()) DISTRO_RETURN_IF_ERROR(SetFromBefore(flags[i]));
      for (const std::string& text : parsed.flags[i]->results())
        DISTRO_RETURN_IF_ERROR(SetFlag(flags[i], text));
    }
    return absl::OkStatus();
  }

  // Sets a command's flag that was given before the command.
  absl::Status SetFromBefore(const Flag& flag) {
    const CLI::Option* const before = root_.get_option_no_throw("--" + flag.name);
    if (before == nullptr) return absl::OkStatus();
    for (const std::string& text : before->results()) DISTRO_RETURN_IF_ERROR(SetFlag(flag, text));
    return absl::OkStatus();
  }

  static absl::Status SetArguments(const Parsed& parsed) {
    const Command& command = *parsed.command;
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const Argument& argument = command.arguments[i];
      const CLI::Option& given = *parsed.arguments[i];
      if (given.count() > 0) {
        *argument.value = given.results()[0];
      } else if (argument.required) {
        return absl::InvalidArgumentError(
            absl::StrCat(command.name, ": ", argument.name, " is missing"));
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  CLI::App root_;
  std::map<const CLI::App*, Parsed> apps_;
};

Command CompletionCommand(std::string* shell, const Program& program, std::ostream* out) {
  return {.name = "completion",
          .arguments = {{.name = "SHELL", .value = shell}},
          .summary = "Prints completion for a shell: bash or zsh.",
          .help = absl::StrReplaceAll(R"(Examples:
  source <(PROGRAM completion bash)                              # this shell
  PROGRAM completion bash > /etc/bash_completion.d/PROGRAM       # all
  PROGRAM completion zsh >> ~/.zshrc)",
                                      {{"PROGRAM", program.name}}),
          .run = [shell, &program, out]() -> absl::StatusOr<int> {
            if (*shell != "bash" && *shell != "zsh")
              return absl::InvalidArgumentError(
                  absl::StrCat("SHELL: '", *shell, "' is not bash or zsh"));
            *out << CompletionScript(program, *shell == "zsh") << std::flush;
            return 0;
          }};
}

// Whoever ends before the output does has read enough: `| head -1`.
bool ReaderHasEnded() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

// `help log show` is `log show --help`.
std::vector<std::string> HelpAsFlag(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

}  // namespace

int RunProgram(const Program& program, const std::vector<std::string>& words, std::ostream* out,
               std::ostream* error) {
  Program whole = program;
  std::string shell;
  whole.commands.push_back(CompletionCommand(&shell, whole, out));
  std::string text;
  const auto run = [&]() -> absl::StatusOr<int> {
    Parser parser(whole);
    DISTRO_ASSIGN_OR_RETURN(const Command* command, parser.Parse(HelpAsFlag(words), &text));
    const bool is_service = command != nullptr && command->name.empty();
    if (is_service) DISTRO_RETURN_IF_ERROR(CheckThreadsCanStart());
    if (command == nullptr) *out << text << "\n";
    DISTRO_ASSIGN_OR_RETURN(const int code, command == nullptr ? 0 : command->run());
    if (is_service || out->flush().good() || ReaderHasEnded()) return code;
    return absl::ResourceExhaustedError("standard output could not be written whole");
  };
  const absl::StatusOr<int> code = CatchExceptions(run);
  if (code.ok()) return *code;
  *error << program.name << ": " << ShownLines(code.status().message()) << std::endl;
  return program.exit_code(code.status());
}

int RunProgram(const Program& program, int argc, char** argv) {
  PrepareProcess();
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  return RunProgram(program, words, &std::cout, &std::cerr);
}

}  // namespace distro
