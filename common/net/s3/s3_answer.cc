#include "common/net/s3/s3_answer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace distro {

std::string ElementOf(absl::string_view xml, absl::string_view name) {
  const std::string open = absl::StrCat("<", name, ">");
  const size_t begin = xml.find(open);
  if (begin == absl::string_view::npos) return "";
  xml.remove_prefix(begin + open.size());
  return std::string(xml.substr(0, xml.find('<')));
}

absl::StatusOr<S3Page> ParsePage(absl::string_view xml, absl::string_view prefix,
                                 absl::string_view after) {
  S3Page page;
  page.more = ElementOf(xml, "IsTruncated") == "true";
  for (size_t at; (at = xml.find("<Contents>")) != absl::string_view::npos;) {
    xml.remove_prefix(at + 1);
    const absl::string_view object = xml.substr(0, xml.find("</Contents>"));
    S3Listed listed{.key = ElementOf(object, "Key")};
    const absl::string_view before =
        page.objects.empty() ? after : absl::string_view(page.objects.back().key);
    if (!absl::StartsWith(listed.key, prefix) || listed.key <= before ||
        !absl::SimpleAtoi(ElementOf(object, "Size"), &listed.bytes))
      return absl::UnavailableError("a list of objects that is not understood");
    page.objects.push_back(std::move(listed));
  }
  if (page.more && page.objects.empty())
    return absl::UnavailableError("a list of objects that goes on without one");
  return page;
}

}  // namespace distro
