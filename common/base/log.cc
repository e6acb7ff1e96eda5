#include "common/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/base/output.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr absl::string_view kLevelNames[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};

bool NeedsQuotes(absl::string_view value) {
  return std::any_of(value.begin(), value.end(), [](char c) {
    return c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f;
  });
}

// A value may be a peer's, of any length.
constexpr size_t kMaxValueBytes = 2000;

void AppendField(std::string* line, const LogField& field) {
  const absl::string_view value = absl::string_view(field.value).substr(0, kMaxValueBytes);
  if (value.empty()) return;
  absl::StrAppend(line, " ", field.key, "=");
  if (NeedsQuotes(value)) {
    const std::string quoted = absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}});
    absl::StrAppend(line, "\"", ShownText(quoted, /*max_bytes=*/SIZE_MAX), "\"");
  } else {
    absl::StrAppend(line, value);
  }
  const size_t bytes = field.value.size();
  if (bytes > value.size()) absl::StrAppend(line, "...(", bytes, " bytes)");
}

// On a terminal the line overwrites the live progress line instead of continuing it.
Log::Sink StandardError() {
  return [lines = OutputLines(STDERR_FILENO)](absl::string_view line) mutable {
    lines.Write(isatty(STDERR_FILENO) ? absl::StrCat("\r\x1b[K", line) : std::string(line));
  };
}

}  // namespace

absl::Status ParseLogLevel(absl::string_view text, LogLevel* level) {
  constexpr std::pair<absl::string_view, LogLevel> kNames[] = {{"debug", LogLevel::kDebug},
                                                               {"info", LogLevel::kInfo},
                                                               {"warning", LogLevel::kWarning},
                                                               {"error", LogLevel::kError}};
  for (const auto& [name, value] : kNames) {
    if (name == text) {
      *level = value;
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log level '", text, "' is not one of debug, info, warning, error"));
}

Log::Log(LogLevel level, const Clock* clock) : Log(level, clock, StandardError()) {}

Log::Log(LogLevel level, const Clock* clock, Sink sink)
    : level_(level), clock_(clock), sink_(std::move(sink)) {}

void Log::Debug(absl::string_view event, std::initializer_list<LogField> fields) {
  Write(LogLevel::kDebug, event, fields);
}
void Log::Info(absl::string_view event, std::initializer_list<LogField> fields) {
  Write(LogLevel::kInfo, event, fields);
}
void Log::Warning(absl::string_view event, std::initializer_list<LogField> fields) {
  Write(LogLevel::kWarning, event, fields);
}
void Log::Error(absl::string_view event, std::initializer_list<LogField> fields) {
  Write(LogLevel::kError, event, fields);
}

void Log::Write(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  if (level < level_) return;
  std::string line =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_->WallNow(), absl::UTCTimeZone());
  absl::StrAppend(&line, " ", kLevelNames[static_cast<int>(level)], " ", event);
  for (const LogField& field : fields) AppendField(&line, field);
  line.push_back('\n');
  absl::MutexLock lock(&mu_);
  sink_(line);
}

}  // namespace distro
