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
  std::string helm = {};  // of `plan`: the chart's values as YAML, no newline at the end
  // OK: the command found no fault. Aborted: what it checked is faulty (exit code 5).
  absl::Status verdict = absl::OkStatus();
};

// Where a command writes, and in which format. Not thread-safe.
struct Console {
  std::function<void(absl::string_view line)> progress;  // for people, standard error
  std::ostream* out = nullptr;                           // borrowed
  std::string output = "text";                           // --output

  bool json() const { return output == "json"; }
  // Writes the report. Returns 0, the report's verdict if that is an error, or the error in its
  // place.
  absl::StatusOr<int> Show(const absl::StatusOr<Report>& report) const;
};

// A table for people: columns as wide as their widest cell, with two spaces between. Cells are
// untrusted (workers choose some of their text): control bytes and bytes that are not UTF-8 are
// escaped. Not thread-safe.
class Table {
 public:
  // A heading that begins with '>' is right-aligned, and so are its cells.
  explicit Table(std::vector<std::string> headings);

  // Requires as many cells as headings.
  void Add(std::vector<std::string> cells);
  // The table as lines, headings first; no newline at the end, no trailing spaces.
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
