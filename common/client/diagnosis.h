// Why a client cannot talk with its aggregator: the probe below gRPC (probe/probe.h), and at its
// end gRPC itself, which asks whether the server serves. Blocking; thread-safe.
//
//   const absl::Status status = CallSomething();
//   if (MayBeTheConnection(status)) DISTRO_RETURN_IF_ERROR(Explain(status, {.channel = channel}));
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/client/probe/probe.h"

namespace distro {

// The look with its last step, "health", when those before it succeeded. A server that does not
// serve (it drains, or is about to start) is found all the same, so that is no fault. Errors as
// Probe and OpenChannel.
absl::StatusOr<ConnectionLook> Diagnose(const ProbeOptions& options);

// Whether a call that ended so may not have reached an aggregator: what it says itself of a refusal
// has a reason or a code of its own.
bool MayBeTheConnection(const absl::Status& status);

// What a look found, as a status (connection_fault.h); `failed`, the status of a call, where that
// may not be the connection, where all is well, or where the look could not be.
absl::Status Explain(const absl::Status& failed, const ProbeOptions& options);

}  // namespace distro
