// Stores the decisions of operators that must survive a restart: pause and quarantines
// (docs/files.md, "admission.pb").
//
// Not thread-safe: used by the owner of the decisions. Write() blocks on the disk.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/store.pb.h"
#include "server/log/disk.h"

namespace distro::server {

class AdmissionStore {
 public:
  // Reads the file; if there is none, there are no decisions. DataLoss: damaged; the message names
  // the remedy. `disk` is borrowed.
  static absl::StatusOr<std::unique_ptr<AdmissionStore>> Open(const std::string& path, Disk* disk);

  // As last written.
  const v1::StoredAdmission& value() const { return value_; }

  // Makes `value` durable before it returns. After an error (reason "disk") value() does not
  // change; a restart may find either value.
  absl::Status Write(const v1::StoredAdmission& value);

 private:
  AdmissionStore(std::string path, Disk* disk) : path_(std::move(path)), disk_(disk) {}

  const std::string path_;
  Disk* const disk_;
  v1::StoredAdmission value_;
};

std::string EncodeAdmission(const v1::StoredAdmission& value);

// DataLoss: not the output of EncodeAdmission. FailedPrecondition: of a newer version.
absl::StatusOr<v1::StoredAdmission> ParseAdmission(absl::string_view bytes);

}  // namespace distro::server
