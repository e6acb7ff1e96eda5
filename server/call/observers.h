// Interfaces through which the services report events to metrics. Without gRPC, so that metrics do
// not depend on it. Thread-safe, quick.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro::server {

enum class TransferKind { kUpdate, kResult, kSnapshot, kControl };

// Receives the bytes that the services transfer, and the uploads that they refuse.
class TransferObserver {
 public:
  virtual ~TransferObserver() = default;
  virtual void OnReceived(TransferKind kind, uint64_t bytes) = 0;
  virtual void OnSent(TransferKind kind, uint64_t bytes) = 0;
  // `reason` is one of kRejectReasons.
  virtual void OnUploadRejected(absl::string_view reason) = 0;
  // Readings of a worker that were dropped.
  virtual void OnDroppedValues(int values) = 0;
  // Busy seconds of a phase: collect, validate.
  virtual void OnPhase(absl::string_view phase, absl::Duration time) = 0;
};

// Receives the result of every call of our services.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // The number that identifies the method with this path ("/package.Service/Method") in the other
  // functions; -1: the method is not ours, and its calls are not observed.
  virtual int MethodOf(absl::string_view path) const = 0;
  virtual void OnCallStarted(int method) = 0;
  virtual void OnMessageReceived(int method) = 0;
  virtual void OnMessageSent(int method) = 0;
  // `code` is gRPC's, 0 to 16.
  virtual void OnCallHandled(int method, int code, absl::Duration time) = 0;
};

}  // namespace distro::server
