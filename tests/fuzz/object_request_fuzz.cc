// What comes from peers of objects, as one text: the path and the Range of a request, the
// Content-Range of a response, the URL of a mirror. Each is refused, or has the meaning that its
// own text form says.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/net/http/http_range.h"
#include "common/net/http/http_url.h"
#include "common/net/http/object_path.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace distro;
  using testing::Require;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = ParseObjectPath(text)) Require(ObjectPath(*name) == text);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{1000}, UINT64_MAX}) {
    const auto range = ParseRange(text, bytes);
    if (range) Require(range->begin <= range->end && range->end <= bytes);
  }
  if (BeginOfContentRange(text)) Require(text.substr(0, 6) == "bytes ");
  const auto url = ParseHttpUrl(text);
  Require(url.ok() || url.status().code() == absl::StatusCode::kInvalidArgument);
  if (url.ok()) {
    const auto again = ParseHttpUrl(url->Text());
    Require(again.ok() && again->Text() == url->Text() && url->port >= 1 && url->port <= 65535);
  }
  return 0;
}
