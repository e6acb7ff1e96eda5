// A run of tests/golden/deltas: its run.json, the model's layout, its arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/model/layout/layout.h"
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

// One such run, completely loaded.
class GoldenDeltas {
 protected:
  explicit GoldenDeltas(const std::string& set)
      : data_(LoadGolden("deltas/" + set)),
        run_(GoldenDeltasRun(set)),
        layout_(GoldenDeltasLayout(run_)) {
    const nlohmann::json names = run_.value("frequencies", nlohmann::json::array());
    for (const nlohmann::json& tensor : run_["tensors"])
      as_dct_.push_back(std::ranges::find(names, tensor[0]) != names.end());
  }

  template <typename T>
  absl::Span<const T> Row(const std::string& name, int64_t row, int64_t size) const {
    return data_.at(name).As<T>().subspan(row * size, size);
  }
  template <typename T>
  T At(const std::string& name, int64_t i) const {
    return data_.at(name).As<T>().at(i);
  }

  const std::map<std::string, GoldenArray> data_;
  const nlohmann::json run_;
  const Layout layout_;
  std::vector<bool> as_dct_;  // [tensors]: whether sent as DCT
  const int64_t rounds_ = data_.at("index").shape[0];
  const int64_t workers_ = data_.at("index").shape[1];
  const int64_t blocks_ = data_.at("index").shape[2];
  const int k_ = static_cast<int>(data_.at("index").shape[3]);
};

}  // namespace distro::testing
