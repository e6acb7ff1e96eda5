// A table for people: columns as wide as their widest cell, two spaces between. Bytes that a
// terminal would obey, or that are not UTF-8, are escaped in every cell: what workers say of
// themselves ends up here. Not thread-safe.
#pragma once

#include <string>
#include <vector>

namespace distro::tools {

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

}  // namespace distro::tools
