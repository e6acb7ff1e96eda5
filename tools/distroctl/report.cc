#include "tools/distroctl/report.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace distro::tools {

absl::StatusOr<int> Console::Show(const absl::StatusOr<Report>& report) const {
  DISTRO_RETURN_IF_ERROR(report.status());
  if (json()) {
    *out << ShownLines(WriteJson(report->json));
  } else {
    *out << ShownLines(output == "helm" ? report->helm : report->text) << "\n";
  }
  out->flush();
  DISTRO_RETURN_IF_ERROR(report->verdict);
  return 0;
}

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading[0] == '>');
    if (right_.back()) heading.erase(0, 1);
  }
  Add(std::move(headings));
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = ShownText(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", right_[i] ? blanks : "", row[i],
                      right_[i] ? "" : blanks);
    }
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(line));
  }
  return absl::StrJoin(lines, "\n");
}

std::string Word(v1::MemberState state) {
  const std::string& name = v1::MemberState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "MEMBER_STATE_"));
}

std::string Word(v1::RunState state) {
  const std::string& name = v1::RunState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "RUN_STATE_"));
}

double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

std::string Bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; unit < 5 && bytes >= 999.5; ++unit) bytes /= 1000;
  const int decimals = unit == 0 ? 0 : bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, bytes, kUnits[unit]);
}

}  // namespace distro::tools
