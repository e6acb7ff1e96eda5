// The large parts of a worker's state file: the rule's elements by tensor, then what is pending by
// segment, then a checksum each (docs/files.md, "Files of the worker"). Pure functions; all views
// are borrowed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/update_rule.h"

namespace distro::worker {

// A part as the pieces in which ranks hold it.
using StatePart = std::vector<absl::string_view>;

// The bytes of the parts, in the order of the file.
std::vector<StatePart> PartsOf(absl::Span<const TensorPieces> elements, const Optimizer& optimizer);

// The sizes that the parts must have; `k` 0: nothing is pending.
std::vector<uint64_t> PartSizes(const Layout& layout, const UpdateRuleKind& rule, uint32_t k);

// Whether `body` is parts of these sizes, their checksums, and the checksum of those, and nothing
// else. InvalidArgument names the part.
absl::Status CheckParts(absl::string_view body, const std::vector<uint64_t>& sizes);

// The bytes of f32 arrays as large as the model, [arrays][tensors].
using ElementBytes = std::vector<std::vector<absl::string_view>>;

// Takes the parts that come first off `body`, in which they stay. Requires a body that CheckParts
// has passed.
ElementBytes TakeElements(const Layout& layout, const UpdateRuleKind& rule,
                          absl::string_view* body);
// Copies. Requires k, and a body that TakeElements has shortened. InvalidArgument: as
// UpdateRuleKind::check.
absl::Status TakePending(absl::string_view body, const Layout& layout, const UpdateRuleKind& rule,
                         PendingUpdate* pending);

}  // namespace distro::worker
