// All methods. To add one, add its folder; its number in proto/distro/v1/run.proto and the
// parameters of its step in round.proto; a line in each function here; and what it decodes to in
// decoded_round.h. The compiler and methods_test find what is missing.
#pragma once

#include "absl/types/span.h"
#include "common/method/base/method.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The method of a new run whose run.json names none.
inline constexpr v1::Method kDefaultMethod = v1::METHOD_DELTAS;
// The method of stored runs that name none: versions that wrote them had no other.
inline constexpr v1::Method kFirstMethod = v1::METHOD_SIGNS;

// Requires a method that is specified.
const Method& MethodOf(v1::Method method);
const Method& MethodOf(const v1::RunConfig& config);
// The method of a round, from its record or Open.
v1::Method MethodNumberOf(const v1::StepParameters& step);
const Method& MethodOf(const v1::StepParameters& step);

absl::Span<const Method* const> AllMethods();

}  // namespace distro
