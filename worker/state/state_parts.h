// The large parts of a worker's state file: momentum by tensor, then what is pending by segment, then a checksum each
// (docs/files.md, "Files of the worker"). Pure functions; all views are borrowed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/layout/layout.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/pending_update.h"

namespace distro::worker {

// A part as the pieces in which ranks hold it.
using StatePart = std::vector<absl::string_view>;

// The bytes of the parts, in the order of the file.
std::vector<StatePart> PartsOf(const TensorPieces& momentum, const Optimizer& optimizer);

// The sizes that the parts must have; `k` 0: nothing is pending.
std::vector<uint64_t> PartSizes(const Layout& layout, uint32_t k);

// Whether `body` is parts of these sizes, their checksums, and the checksum of those, and nothing else. InvalidArgument
// names the part.
absl::Status CheckParts(absl::string_view body, const std::vector<uint64_t>& sizes);

// Takes the parts that come first, [tensors], off `body`, in which they stay. Requires a body that CheckParts has passed.
std::vector<absl::string_view> TakeMomentum(const Layout& layout, absl::string_view* body);
// Copies. Requires k, and a body that TakeMomentum has shortened. InvalidArgument: a position is none of a block, or not above the one
// before it.
absl::Status TakePending(absl::string_view body, const Layout& layout, PendingUpdate* pending);

}  // namespace distro::worker
