#include "tools/distroctl/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro::tools {

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading[0] == '>');
    if (right_.back()) heading.erase(0, 1);
  }
  Add(std::move(headings));
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = absl::Utf8SafeCHexEscape(cell);
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

}  // namespace distro::tools
