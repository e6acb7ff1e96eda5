// A list of objects of a bucket, as a store answers. What is read of it continues the list.
#include <cstdint>
#include <string>

#include "common/net/s3/s3_answer.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace distro;
  using testing::Require;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Require(ElementOf(text, "Code").find('<') == std::string::npos);
  std::string last = "p/a";
  const auto page = ParsePage(text, "p/", last);
  if (!page.ok()) return 0;
  for (const S3Listed& object : page->objects) {
    Require(object.key.substr(0, 2) == "p/" && object.key > last);
    last = object.key;
  }
  Require(!page->more || !page->objects.empty());
  return 0;
}
