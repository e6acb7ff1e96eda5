// Explains why a client cannot reach its aggregator: runs the probe below gRPC (probe/probe.h),
// then asks the aggregator's gRPC health service. Blocking; thread-safe.
//
//   const absl::Status status = CallSomething();
//   if (MayBeTheConnection(status)) DISTRO_RETURN_IF_ERROR(Explain(status, {.channel = channel}));
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/client/probe/probe.h"

namespace distro {

// Runs the probe, and its last step, "health", if the others succeeded or calls go through a proxy,
// which the others go past: then only what "health" finds is a fault. A server that answers but
// does not serve (it is draining or starting) is no fault. Errors as Probe and OpenChannel.
absl::StatusOr<ConnectionLook> Diagnose(const ProbeOptions& options);

// Whether a call with this status may not have reached an aggregator. A refusal by the aggregator
// itself has a reason or a code of its own.
bool MayBeTheConnection(const absl::Status& status);

// The fault that a diagnosis finds, as a status (connection_fault.h). Returns `failed`, the status
// of a call, unchanged if the connection cannot be its cause, or if the diagnosis finds no fault or
// cannot run.
absl::Status Explain(const absl::Status& failed, const ProbeOptions& options);

}  // namespace distro
