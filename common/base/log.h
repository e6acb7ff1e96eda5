// Structured log lines on standard error: one line per change of state, `key=value`, ids first.
//
//   log->Info("round published", {{"round", 42}, {"workers", "7/8"}, {"reason", "deadline"}});
//   2026-01-31T12:00:00.123Z INFO  round published round=42 workers=7/8 reason=deadline
//
// Values with spaces, quotes or control characters are quoted and escaped, so a line is always one
// line; a field with an empty value is left out. Thread-safe; logging never fails and never changes
// control flow.
#pragma once

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"

namespace distro {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// InvalidArgument: not one of debug, info, warning, error.
absl::Status ParseLogLevel(absl::string_view text, LogLevel* level);

struct LogField {
  LogField(absl::string_view key_in, const absl::AlphaNum& value_in)
      : key(key_in), value(value_in.Piece()) {}
  LogField(absl::string_view key_in, const absl::Status& status)
      : key(key_in), value(status.ToString()) {}
  std::string key;
  std::string value;
};

class Log {
 public:
  // `sink` receives whole lines with their newline, one call at a time.
  using Sink = std::function<void(absl::string_view line)>;

  // Writes to standard error; on a terminal, replaces a live progress line.
  explicit Log(LogLevel level, const Clock* clock = Clock::Real());
  Log(LogLevel level, const Clock* clock, Sink sink);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Debug(absl::string_view event, std::initializer_list<LogField> fields = {});
  void Info(absl::string_view event, std::initializer_list<LogField> fields = {});
  void Warning(absl::string_view event, std::initializer_list<LogField> fields = {});
  void Error(absl::string_view event, std::initializer_list<LogField> fields = {});

 private:
  void Write(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);

  // Constant after construction.
  const LogLevel level_;
  const Clock* const clock_;

  absl::Mutex mu_;
  const Sink sink_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
