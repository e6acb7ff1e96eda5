// The format of small files of aggregator and archiver: magic, version, one message, checksum
// (docs/files.md). Pure functions. The files are on the own disk, so every fault is DataLoss.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"

namespace distro {

// magic[8] u32 version=1 message u64 XXH3-64 of all bytes before it. `magic` has 8 bytes.
std::string EncodeFramedMessage(absl::string_view magic,
                                const google::protobuf::MessageLite& message);

// DataLoss: not the output of EncodeFramedMessage. FailedPrecondition: undamaged and of a newer
// version; magic, version and checksum are at the same place in all versions.
absl::Status ParseFramedMessage(absl::string_view bytes, absl::string_view magic,
                                google::protobuf::MessageLite* message);

// Checks the version of a file with a valid checksum. DataLoss: version 0. FailedPrecondition
// (reason "version"): newer than `known`; the message says that a newer program is needed.
absl::Status CheckFormatVersion(uint64_t version, uint64_t known);

}  // namespace distro
