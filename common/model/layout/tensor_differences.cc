#include "common/model/layout/tensor_differences.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

std::string TensorDifferences::Text() const {
  std::vector<std::string> texts;
  const auto and_more = [](size_t count) {
    return count == 1 ? "" : absl::StrCat(", and ", count - 1, " more");
  };
  const auto add = [&](const std::vector<TensorSpec>& list, absl::string_view what) {
    if (list.empty()) return;
    texts.push_back(absl::StrCat("tensor ", absl::Utf8SafeCHexEscape(list[0].name), what,
                                 " (shape ", ShapeText(list[0].shape), and_more(list.size()), ")"));
  };
  add(missing, " is missing");
  add(unexpected, " is not part of the model");
  if (!reshaped.empty()) {
    const Reshaped& first = reshaped[0];
    texts.push_back(absl::StrCat("tensor ", absl::Utf8SafeCHexEscape(first.expected.name),
                                 " has shape ", ShapeText(first.shape), ", expected ",
                                 ShapeText(first.expected.shape), and_more(reshaped.size())));
  }
  return absl::StrJoin(texts, "; ");
}

TensorDifferences CompareTensors(const Manifest& expected, const Manifest& actual) {
  const auto want = expected.tensors(), have = actual.tensors();
  TensorDifferences found;
  for (size_t w = 0, h = 0; w < want.size() || h < have.size();) {
    if (h == have.size() || (w < want.size() && want[w].name < have[h].name)) {
      found.missing.push_back(want[w++]);
    } else if (w == want.size() || have[h].name < want[w].name) {
      found.unexpected.push_back(have[h++]);
    } else {
      if (want[w].shape != have[h].shape) found.reshaped.push_back({want[w], have[h].shape});
      ++w, ++h;
    }
  }
  return found;
}

}  // namespace distro
