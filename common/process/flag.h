// One flag of a program: its name, its words, and the variable that it sets. A table of flags is
// data; parsing, --help and completion (command_line.h) read nothing else, so that a flag's default
// is written once, in the options it belongs to.
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

// A value of another type, or with rules of its own.
struct ParsedText {
  std::function<absl::Status(absl::string_view)> parse;
  std::string by_default;  // as the flag would be given
};

// The variable, which outlives the parse; what it holds before is the default. Durations are absl's
// ("500ms", "1h30m"), lists are words between commas, and a list that is given again goes on.
using FlagValue = std::variant<std::string*, bool*, int*, int64_t*, uint64_t*, double*,
                               absl::Duration*, std::vector<std::string>*, ByteSize, ParsedText>;

// What a text is, for completion.
enum class Takes { kText, kFile, kFolder };

struct Flag {
  std::string name;  // without dashes
  FlagValue value;
  std::string help = {};  // one sentence, or more
  Takes takes = Takes::kText;
  std::vector<std::string> choices = {};  // of a text: no other value is taken
};

// InvalidArgument names the flag and what it wants.
absl::Status SetFlag(const Flag& flag, const std::string& text);

// As it would be given; empty: nothing that a person need know.
std::string DefaultText(const Flag& flag);
// What --help shows as the value: "FILE", "10s"; empty for a switch.
std::string Placeholder(const Flag& flag);

inline bool IsSwitch(const Flag& flag) { return std::holds_alternative<bool*>(flag.value); }

// `parse` gives a StatusOr<T>; `by_default` is what `value` holds, as the flag would be given.
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
