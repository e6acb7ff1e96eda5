// All methods. To add one, add its folder; its number in proto/distro/v1/run.proto and the
// parameters of its step in round.proto; a line in each function here, and what a round of it
// decodes to. The compiler and methods_test find what is missing.
#pragma once

#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/shared_bytes.h"
#include "common/method/base/method.h"
#include "common/method/deltas/update.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The method of a new run whose run.json names none.
inline constexpr v1::Method kDefaultMethod = v1::METHOD_DELTAS;
// The method of stored runs that name none: versions that wrote them had no other.
inline constexpr v1::Method kFirstMethod = v1::METHOD_SIGNS;

// Requires a method that is specified and known (CheckValuesAreKnown of common/run/run_config.h).
const Method& MethodOf(v1::Method method);
const Method& MethodOf(const v1::RunConfig& config);
// The method of a round, from its record or Open.
v1::Method MethodNumberOf(const v1::StepParameters& step);
const Method& MethodOf(const v1::StepParameters& step);

absl::Span<const Method* const> AllMethods();

// The decoded result of a round, for replicas to apply and for error feedback: the results of all
// segments [segments], in the type of the round's method. Without segments: no round was decoded.
using DecodedRound = std::variant<std::vector<DeltaResult>, std::vector<Votes>>;

// Decodes the payloads [segments] of a checked header on `threads` threads, at least one.
// InvalidArgument: a payload does not decode. DataLoss: a deltas result is impossible in this
// round; the message names the block. Both name the first such segment.
absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const v1::RoundHeader& header,
                                         absl::Span<const SharedBytes> payloads, int threads);

}  // namespace distro
