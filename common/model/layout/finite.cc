#include "common/model/layout/finite.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro {
namespace {

std::string PlaceOf(const TensorSpec& tensor, int64_t element) {
  std::vector<int64_t> place(tensor.shape.size());
  for (size_t i = place.size(); i-- > 0; element /= tensor.shape[i])
    place[i] = element % tensor.shape[i];
  return absl::StrCat("[", absl::StrJoin(place, ", "), "]");
}

}  // namespace

absl::Status CheckFinite(const Layout& layout, const TensorBuffer& tensors) {
  for (int t = 0; t < tensors.tensors(); ++t) {
    const absl::Span<const float> values = tensors.tensor(t);
    const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
    if (bad == values.end()) continue;
    const TensorSpec& tensor = layout.manifest().tensors()[t];
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor.name, ": the element ",
                     PlaceOf(tensor, std::distance(values.begin(), bad)), " is ", *bad,
                     ", which is not finite: take weights of before they diverged"));
  }
  return absl::OkStatus();
}

}  // namespace distro
