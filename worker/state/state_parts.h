// The large parts of a worker's state file: the rule's elements by tensor, the pending update by
// segment, and a checksum of each (docs/files.md, "Files of the worker"). Pure functions; all views
// are borrowed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/shard_rule.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// A part as the consecutive pieces held by ranks.
using StatePart = std::vector<absl::string_view>;

// The bytes of the parts, in the order of the file.
std::vector<StatePart> PartsOf(absl::Span<const TensorPieces> elements, const Optimizer& optimizer);

// The sizes that the parts must have; `k` 0: nothing is pending.
std::vector<uint64_t> PartSizes(const Layout& layout, const UpdateRuleKind& rule, uint32_t k);

// Checks that `body` consists of parts of these sizes, their checksums, and the checksum of the
// checksums. InvalidArgument names the part.
absl::Status CheckParts(absl::string_view body, const std::vector<uint64_t>& sizes);

// Removes the elements' parts from the front of `body` and returns views of them. Requires a body
// accepted by CheckParts.
ElementBytes TakeElements(const Layout& layout, const UpdateRuleKind& rule,
                          absl::string_view* body);
// Copies the pending update from `body`, after TakeElements. Requires pending->k. InvalidArgument:
// as UpdateRuleKind::check.
absl::Status TakePending(absl::string_view body, const Layout& layout, const UpdateRuleKind& rule,
                         PendingUpdate* pending);

}  // namespace distro::worker
