// What the methods' decoders of a round share.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/base/shared_bytes.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

// The payloads of a round, and the header that has been checked. Borrowed.
struct RoundPayloads {
  const Layout& layout;
  const v1::RoundHeader& header;
  absl::Span<const SharedBytes> bytes;  // [segments]

  RoundId id() const { return RoundId(header.round()); }
  const std::string& Of(SegmentId segment) const { return *bytes[segment.value()]; }
};

// Calls `decode` for each segment on `threads` threads; if there are fewer segments than threads,
// `decode` may use several of its own. The first segment's error, if any, with the segment's name.
template <typename Result>
absl::StatusOr<std::vector<Result>> DecodeSegments(
    const Layout& layout, int threads,
    absl::FunctionRef<absl::StatusOr<Result>(SegmentId segment, int threads)> decode) {
  const auto segments = static_cast<int>(layout.segments());
  const int threads_each = std::max(1, threads / std::max(1, segments));
  std::vector<absl::StatusOr<Result>> decoded(segments);
  RunParallel(threads, segments, [&](int /*thread*/, int64_t i) {
    decoded[i] = decode(SegmentId(static_cast<uint32_t>(i)), threads_each);
  });
  std::vector<Result> results;
  for (int i = 0; i < segments; ++i) {
    DISTRO_RETURN_IF_ERROR(Annotate(decoded[i].status(), absl::StrCat("segment ", i)));
    results.push_back(*std::move(decoded[i]));
  }
  return results;
}

}  // namespace distro
