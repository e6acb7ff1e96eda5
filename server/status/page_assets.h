// The files of server/status/page, embedded into the program at build time
// (cmake/EmbedFiles.cmake).
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro::server {

struct PageAsset {
  absl::string_view name;  // "page.css"
  absl::string_view bytes;
};

// All files; never destroyed.
absl::Span<const PageAsset> PageAssets();

}  // namespace distro::server
