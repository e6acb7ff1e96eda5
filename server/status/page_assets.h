// The files of server/status/page, put into the program when it is built (cmake/EmbedFiles.cmake).
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro::server {

struct PageAsset {
  absl::string_view name;  // "page.css"
  absl::string_view bytes;
};

// All of them; they live for ever.
absl::Span<const PageAsset> PageAssets();

}  // namespace distro::server
