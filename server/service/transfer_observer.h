// Bytes that the services move and uploads that they refuse, for metrics. Thread-safe, quick.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro::server {

enum class TransferKind { kUpdate, kResult, kSnapshot, kControl };

class TransferObserver {
 public:
  virtual ~TransferObserver() = default;
  virtual void OnReceived(TransferKind kind, uint64_t bytes) = 0;
  virtual void OnSent(TransferKind kind, uint64_t bytes) = 0;
  // `reason` is one of kRejectReasons.
  virtual void OnUploadRejected(absl::string_view reason) = 0;
  // Readings of a worker that are not finite: they are not shown.
  virtual void OnDroppedValues(int values) = 0;
  // Busy seconds of a phase: collect, validate.
  virtual void OnPhase(absl::string_view phase, absl::Duration time) = 0;
};

}  // namespace distro::server
