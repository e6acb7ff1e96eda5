// The output of a command, for people and for programs: reports, tables, and the formats of numbers
// and names.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "google/protobuf/duration.pb.h"
#include "nlohmann/json.hpp"

namespace distro::tools {

// Plain data.
struct Report {
  std::string text;     // lines, no newline at the end
  nlohmann::json json;  // the same facts; hashes as 16 hex digits, times in seconds, sizes in bytes
  std::string helm = {};  // of `plan`: values of the chart, YAML, no newline at the end
  // The command did its work. Aborted: what it looked at is not as it should be (exit code 5).
  absl::Status verdict = absl::OkStatus();
};

// Where a command writes while it runs, and how. Not thread-safe.
struct Console {
  std::function<void(absl::string_view line)> progress;  // for people, standard error
  std::ostream* out = nullptr;                           // borrowed
  std::string output = "text";                           // --output

  bool json() const { return output == "json"; }
  // Writes the report. 0, or the status that it has, or came instead of it.
  absl::StatusOr<int> Show(const absl::StatusOr<Report>& report) const;
};

// A table for people: columns as wide as their widest cell, two spaces between. Bytes that a
// terminal would obey, or that are not UTF-8, are escaped in every cell: what workers say of
// themselves ends up here. Not thread-safe.
class Table {
 public:
  // Headings; one that begins with '>' stands to the right, and so do its cells.
  explicit Table(std::vector<std::string> headings);

  // Requires as many cells as headings.
  void Add(std::vector<std::string> cells);
  // Lines, the headings first; no newline at the end, no blanks at the end of a line.
  std::string Text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// MEMBER_STATE_ACTIVE -> "active", RUN_STATE_TRAINING -> "training".
std::string Word(v1::MemberState state);
std::string Word(v1::RunState state);

double SecondsOf(const google::protobuf::Duration& duration);

// 1770000 -> "1.77 MB"; decimal units, three digits.
std::string Bytes(double bytes);

}  // namespace distro::tools
