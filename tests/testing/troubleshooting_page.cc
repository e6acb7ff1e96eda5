#include "tests/testing/troubleshooting_page.h"

#include <fstream>
#include <iterator>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace distro::testing {
namespace {

// What differs from case to case, and what the page writes for it.
struct Placeholder {
  const char* pattern;
  const char* written;
};
constexpr Placeholder kPlaceholders[] = {
    {R"(\d{4}-\d\d-\d\d \d\d:\d\d UTC)", "DATE"},
    {R"(within \d+m?s)", "within TIME"},
    {R"(was issued by [^,]+,)", "was issued by NAME,"},
    {R"(is for [^;]*, not for [^;]*;)", "is for NAMES, not for NAME;"},
    {R"(the name \S+ does not resolve \([^)]*\))", "the name HOST does not resolve (REASON)"},
    {R"(no connection: \S+: connection refused)", "no connection: ADDRESS: connection refused"},
    {R"(answers on it: [^;]*;)", "answers on it: REASON;"},
    {R"((does not know|of this name) \([^)]*\);)", "$1 (REASON);"},
    {R"(begins with [^;]*;)", "begins with BYTES;"},
    {R"(the proxy \S+ that \w+ names: .*; to call)",
     "the proxy URL that VARIABLE names: REASON; to call"},
    {R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", "DATE"},
    {R"(\d+\.\dMB)", "SIZE"},
    {R"(can use it: [^;]*;)", "can use it: REASON;"},
};

}  // namespace

bool TroubleshootingPageHas(absl::string_view message, absl::string_view address,
                            const std::string& folder) {
  std::ifstream file(DISTRO_SOURCE_DIR "/docs/troubleshooting.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  std::string words = absl::StrReplaceAll(message, {{address, "HOST:PORT"}});
  words = std::regex_replace(words, std::regex(folder + "[^ ]+"), "FILE");
  for (const auto& [pattern, written] : kPlaceholders)
    words = std::regex_replace(words, std::regex(pattern), written);
  return absl::StrContains(page, words);
}

}  // namespace distro::testing
