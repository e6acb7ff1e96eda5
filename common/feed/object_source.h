// Where a follower gets results that the stream only names (v1::SegmentObject).
#pragma once

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "distro/v1/round.pb.h"

namespace distro {

class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // The bytes of the object, whose size and SHA-256 are the announced ones. Blocking. Requires a
  // size that may be allocated. Unavailable: nobody has given them; the stream must be opened again
  // without objects. Cancelled: the follower is ending.
  virtual absl::StatusOr<SharedBytes> Fetch(RoundId round, const v1::SegmentObject& object) = 0;
};

}  // namespace distro
