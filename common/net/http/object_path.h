// The names of objects: paths with which results and snapshots are fetched by HTTP
// (docs/protocol.md, "Objects"). Pure; a path is untrusted input.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace distro {

inline constexpr absl::string_view kObjectsPath = "/v1/objects/";

// Whether `text` is a valid run id: 1 to 128 of [a-z0-9-].
bool IsRunId(absl::string_view text);

struct ObjectName {
  struct Result {
    RoundId round;
    SegmentId segment;
  };
  std::string run_id = {};
  std::optional<Result> result = std::nullopt;  // nullopt: a snapshot or a companion
  std::string sha256 = {};                      // 32 bytes
};

// "/v1/objects/RUN/ROUND/SEGMENT-SHA256" or "/v1/objects/RUN/snapshots/SHA256".
std::string ObjectPath(const ObjectName& name);

// The inverse: nullopt for every path that ObjectPath does not make.
std::optional<ObjectName> ParseObjectPath(absl::string_view path);

}  // namespace distro
