// How the tensors of two manifests differ, for messages and remedies. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/layout/manifest.h"

namespace distro {

// Each list ascends by name.
struct TensorDifferences {
  struct Reshaped {
    TensorSpec expected;
    std::vector<int64_t> shape;  // the actual one
  };
  std::vector<TensorSpec> missing;     // only expected
  std::vector<TensorSpec> unexpected;  // only actual
  std::vector<Reshaped> reshaped;

  bool empty() const { return missing.empty() && unexpected.empty() && reshaped.empty(); }
  // For a message: the first of each list with its shapes, and how many more there are.
  std::string Text() const;
};

TensorDifferences CompareTensors(const Manifest& expected, const Manifest& actual);

}  // namespace distro
