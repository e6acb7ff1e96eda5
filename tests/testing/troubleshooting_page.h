// docs/troubleshooting.md has the exact messages of programs: tests that make a fault compare them
// with the page.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace distro::testing {

// Whether the page has this message of a fault, with the variable parts in capitals: HOST:PORT for
// `address`, FILE for a file of `folder`, which ends with a slash, and those of the table in the
// .cc file.
bool TroubleshootingPageHas(absl::string_view message, absl::string_view address,
                            const std::string& folder);

}  // namespace distro::testing
