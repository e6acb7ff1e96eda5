// What a run of tests/golden/deltas is: its run.json, and the model's layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/layout/layout.h"
#include "tests/testing/golden.h"

namespace distro::testing {

inline nlohmann::json GoldenDeltasRun(const std::string& set) {
  return ParseJson(ReadFile(absl::StrCat(GoldenDir(), "/deltas/", set, "/run.json")).value())
      .value();
}

inline Layout GoldenDeltasLayout(const nlohmann::json& run) {
  std::vector<TensorSpec> tensors;
  for (const nlohmann::json& tensor : run["tensors"]) {
    tensors.push_back(
        {.name = tensor[0].get<std::string>(), .shape = tensor[1].get<std::vector<int64_t>>()});
  }
  return Layout::Create(Manifest::Create(tensors).value(), run["segment_blocks"].get<int>())
      .value();
}

}  // namespace distro::testing
