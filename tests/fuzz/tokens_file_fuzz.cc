// The tokens file: any bytes are a table or InvalidArgument, and a table knows no empty token.
#include <cstdint>
#include <cstdlib>

#include "server/auth/tokens/tokens_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = distro::server::TokenTable::Parse(text);
  if (!table.ok()) {
    if (table.status().code() != absl::StatusCode::kInvalidArgument) abort();
    return 0;
  }
  if (table->Find("").has_value() && text.find("e3b0c44298fc1c14") == absl::string_view::npos)
    abort();
  if (const auto without = distro::server::WithoutName(text, "a"); without.ok()) {
    const auto fewer = distro::server::TokenTable::Parse(*without);
    if (!fewer.ok() || fewer->size() >= table->size()) abort();
  }
  return 0;
}
