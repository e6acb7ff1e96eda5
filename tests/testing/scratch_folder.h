// An empty folder for a test; the destructor removes it with its content.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace distro::testing {

class ScratchFolder {
 public:
  ScratchFolder() : path_(::testing::TempDir() + "/distro_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      ADD_FAILURE() << "cannot create " << path_;
      std::abort();
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace distro::testing
