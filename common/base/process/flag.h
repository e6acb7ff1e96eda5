// One flag of a program: its name, help text, and the variable that it sets. Parsing, --help and
// completion (command_line.h) use only tables of flags. A flag's default is the variable's initial
// value, so it is written once, in the options.
//
//   AggregatorOptions options;
//   std::vector<Flag> flags = {
//       {.name = "data_dir", .value = &options.data_dir, .help = "Folder of the run. Required.",
//        .takes = Takes::kFolder},
//       {.name = "lease", .value = &options.lease, .help = "Silence that ends a session."},
//       {.name = "ring_bytes", .value = ByteSize{&options.ring_bytes}, .help = "Kept in memory."}};
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/log.h"

namespace distro {

// A number of bytes: "268435456", "256MiB", "256 MiB"; B, kB, MB, GB and TB are powers of 1000,
// KiB, MiB, GiB and TiB of 1024.
struct ByteSize {
  uint64_t* bytes;
};

// A value of another type, or with its own parser.
struct ParsedText {
  std::function<absl::Status(absl::string_view)> parse;
  std::string by_default;  // as the flag would be given
};

// The variable, which outlives the parse; its initial value is the default. Durations are absl's
// ("500ms", "1h30m"); lists are separated by commas, and repeating the flag appends to the list.
using FlagValue = std::variant<std::string*, bool*, int*, int64_t*, uint64_t*, double*,
                               absl::Duration*, std::vector<std::string>*, ByteSize, ParsedText>;

// The kind of a text value, for completion.
enum class Takes { kText, kFile, kFolder };

struct Flag {
  std::string name;  // without dashes
  FlagValue value;
  std::string help = {};  // one sentence, or more
  Takes takes = Takes::kText;
  std::vector<std::string> choices = {};  // allowed values of a text; empty: any
};

// InvalidArgument names the flag and the expected kind of value.
absl::Status SetFlag(const Flag& flag, const std::string& text);

// The default, as it would be given on the command line; empty if not worth showing.
std::string DefaultText(const Flag& flag);
// The placeholder for the value in --help: "FILE", "10s"; empty for a switch.
std::string Placeholder(const Flag& flag);

inline bool IsSwitch(const Flag& flag) { return std::holds_alternative<bool*>(flag.value); }

// `parse` returns a StatusOr<T>; `by_default` is the text of the initial `value`.
template <typename T>
ParsedText ParsedAs(T* value, absl::StatusOr<T> (*parse)(absl::string_view),
                    absl::string_view by_default) {
  return {[value, parse](absl::string_view text) {
            absl::StatusOr<T> parsed = parse(text);
            if (parsed.ok()) *value = *std::move(parsed);
            return parsed.status();
          },
          std::string(by_default)};
}

// --log_level, the same in every program that logs.
Flag LogLevelFlag(LogLevel* level);

}  // namespace distro
