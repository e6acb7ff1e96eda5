#include "tests/testing/golden.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/process/command_line.h"

namespace distro::testing {
namespace {

// Set by main, before any test.
std::string& Folder() {
  static std::string* const folder = new std::string(DISTRO_SOURCE_DIR "/tests/golden");
  return *folder;
}

std::string ReadOrDie(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) {
    std::cerr << bytes.status() << "\n";
    std::exit(1);
  }
  return *std::move(bytes);
}

GoldenArray ReadArray(const std::string& path, const std::vector<std::string>& words) {
  GoldenArray array{.dtype = words[1], .shape = {}, .bytes = ReadOrDie(path)};
  int64_t bits = std::atoi(words[1].c_str() + 1);
  for (size_t i = 2; i < words.size(); ++i) {
    array.shape.push_back(std::atoll(words[i].c_str()));
    bits *= array.shape.back();
  }
  if (bits != static_cast<int64_t>(array.bytes.size()) * 8) {
    std::cerr << path << ": " << array.bytes.size() << " bytes do not match index.txt\n";
    std::exit(1);
  }
  return array;
}

}  // namespace

std::string GoldenDir() { return Folder(); }

std::map<std::string, GoldenArray> LoadGolden(const std::string& folder) {
  const std::string root = GoldenDir() + "/" + folder + "/";
  std::map<std::string, GoldenArray> arrays;
  const std::string index = ReadOrDie(root + "index.txt");
  for (absl::string_view line : absl::StrSplit(index, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const std::string name(absl::StripSuffix(words[0], "." + words[1] + ".bin"));
    arrays.emplace(name, ReadArray(root + words[0], words));
  }
  return arrays;
}

int Main(int argc, char** argv) {
  return RunProgram({.name = "golden_test",
                     .summary = "tests against golden data.",
                     .commands = {{.flags = {{.name = "golden_dir",
                                              .value = &Folder(),
                                              .help = "Folder of the golden data.",
                                              .takes = Takes::kFolder}},
                                   .run = [] { return RUN_ALL_TESTS(); }}}},
                    argc, argv);
}

}  // namespace distro::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return distro::testing::Main(argc, argv);
}
