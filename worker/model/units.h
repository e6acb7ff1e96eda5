// Makes the units of a model, and the tables for them. This is the Torch half of an architecture's
// interface; common/model/architecture.h is the other half (docs/decisions/0017). An architecture
// that is no row of common/model/decoder/kinds.h is a folder beside decoder/ and a line in
// units.cc.
//
// Pure. Functions that make tensors throw Torch's exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/architecture.h"
#include "common/model/layout/manifest.h"
#include "worker/model/model.h"
#include "worker/model/unit.h"

namespace distro::worker {

// The architectures with units: the keys of distro::ModelTypes().
std::vector<absl::string_view> TypesWithUnits();

// In the order of model.Units(). Unimplemented: an architecture without units. Requires a manifest
// that holds exactly model.Tensors().
absl::StatusOr<std::vector<std::unique_ptr<Unit>>> MakeUnits(const Architecture& model,
                                                             const Manifest& manifest);

// InvalidArgument: not a whole number of sequences, `labels` tokens more than 1 to max_positions
// positions, a token outside the vocabulary; names it.
absl::Status CheckBatch(const Architecture& model, const TokenBatch& batch, int64_t labels);

// The tables of a batch for positions from 0 on, f32 [positions, ...], in host memory. A row
// depends only on its position. Requires an architecture that has units.
std::vector<at::Tensor> MakeTables(const Architecture& model, int positions);

}  // namespace distro::worker
