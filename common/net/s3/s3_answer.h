// What this program reads of S3's answers in XML. Pure; the bytes are untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// The text of the first element of that name, up to the next markup; empty: there is none.
std::string ElementOf(absl::string_view xml, absl::string_view name);

struct S3Listed {
  std::string key;
  uint64_t bytes = 0;
};

struct S3Page {
  std::vector<S3Listed> objects;
  bool more = false;  // another page begins after the last object
};

// An answer to ListObjectsV2. Unavailable: an object has no key or size, a key does not begin with
// `prefix` or is not behind `after` and the one before it, or the list goes on behind no object.
absl::StatusOr<S3Page> ParsePage(absl::string_view xml, absl::string_view prefix,
                                 absl::string_view after);

}  // namespace distro
