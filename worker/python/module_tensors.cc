#include "worker/python/module_tensors.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

absl::Status Refuse(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\": ", why));
}

absl::Status Check(const TensorSpec& spec, const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    return Refuse(spec.name, absl::StrCat("is on ", tensor.device().str(),
                                          "; only CPUs train here: model.cpu()"));
  }
  if (tensor.scalar_type() != at::kFloat) {
    return Refuse(spec.name, absl::StrCat("is ", at::toString(tensor.scalar_type()),
                                          "; only float32 is trained here: model.float() "
                                          "(autocast computes in bfloat16 without it)"));
  }
  if (!tensor.is_contiguous()) {
    return Refuse(spec.name,
                  "is not contiguous: parameter.data = parameter.data.contiguous() before connect");
  }
  if (!tensor.requires_grad()) {
    return Refuse(spec.name, "does not require a gradient: leave it out, or requires_grad_()");
  }
  if (tensor.sizes() == at::IntArrayRef(spec.shape)) return absl::OkStatus();
  return Refuse(spec.name,
                absl::StrCat("has shape [", absl::StrJoin(tensor.sizes(), ", "), "] and had [",
                             absl::StrJoin(spec.shape, ", "), "] when the run was joined"));
}

absl::Span<float> SpanOf(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

absl::StatusOr<ModuleTensors> ModuleTensors::Create(std::vector<std::string> names,
                                                    std::vector<at::Tensor> tensors) {
  if (names.size() != tensors.size())
    return absl::InvalidArgumentError(
        absl::StrCat(names.size(), " names for ", tensors.size(), " parameters"));
  if (names.empty()) {
    return absl::InvalidArgumentError(
        "the model has no parameter that requires a gradient: requires_grad_() on what is to be "
        "trained");
  }
  std::vector<TensorSpec> specs;
  std::map<std::string, at::Tensor> by_name;
  for (size_t i = 0; i < names.size(); ++i) {
    specs.push_back({.name = names[i], .shape = tensors[i].sizes().vec()});
    DISTRO_RETURN_IF_ERROR(Check(specs.back(), tensors[i]));
    const auto twin = std::ranges::find_if(
        by_name, [&](const auto& one) { return one.second.data_ptr() == tensors[i].data_ptr(); });
    if (twin != by_name.end())
      return Refuse(names[i], absl::StrCat("has the memory of \"", twin->first,
                                           "\": name tied tensors once"));
    by_name[names[i]] = tensors[i];
  }
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(std::move(specs)));
  std::vector<at::Tensor> ordered;
  for (const TensorSpec& spec : manifest.tensors()) ordered.push_back(by_name[spec.name]);
  return ModuleTensors(std::move(manifest), std::move(ordered));
}

absl::StatusOr<RunSpans> ModuleTensors::Elements() const {
  RunSpans spans;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(Check(manifest_.tensors()[i], tensors_[i]));
    spans.push_back(SpanOf(tensors_[i]));
  }
  return spans;
}

absl::StatusOr<RunSpans> ModuleTensors::Gradients() const {
  const at::NoGradGuard no_grad;
  RunSpans spans;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& spec = manifest_.tensors()[i];
    DISTRO_RETURN_IF_ERROR(Check(spec, tensors_[i]));
    at::Tensor& gradient = tensors_[i].mutable_grad();
    if (!gradient.defined()) gradient = at::zeros(tensors_[i].sizes(), tensors_[i].options());
    if (gradient.layout() != at::kStrided)
      return Refuse(spec.name, "its gradient is sparse: leave sparse=True out of the embedding");
    if (!gradient.is_contiguous()) gradient = gradient.contiguous();
    spans.push_back(SpanOf(gradient));
  }
  return spans;
}

}  // namespace distro::worker
