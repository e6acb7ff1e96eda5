#include "worker/python/module_tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/torch/device_streams.h"

namespace distro::worker {
namespace {

constexpr absl::string_view kWhat = "the module's tensors";
// Of copies between a device and pinned memory; others are done when the call returns.
constexpr bool kEnqueued = true;

absl::Status Refuse(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\": ", why));
}

// A run has no tensors without dimensions: a scalar is one of one element.
std::vector<int64_t> ShapeOf(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? std::vector<int64_t>{1} : tensor.sizes().vec();
}

absl::Status CheckKind(const TensorSpec& spec, const at::Tensor& tensor) {
  if (tensor.is_meta())
    return Refuse(spec.name, "is on meta and has no values: model.to_empty(device=...) first");
  if (tensor.layout() != at::kStrided)
    return Refuse(spec.name, "is sparse; only dense parameters are trained here");
  const at::ScalarType type = tensor.scalar_type();
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf) {
    return Refuse(spec.name, absl::StrCat("is ", at::toString(type),
                                          "; float32, bfloat16 and float16 are trained here: "
                                          "model.float()"));
  }
  if (tensor.requires_grad()) return absl::OkStatus();
  return Refuse(spec.name, "does not require a gradient: leave it out, or requires_grad_()");
}

// Compares a tensor with its earlier description.
absl::Status CheckSame(const TensorSpec& spec, const at::Tensor& tensor, const at::Tensor& master) {
  DISTRO_RETURN_IF_ERROR(CheckKind(spec, tensor));
  if (tensor.device() != master.device()) {
    return Refuse(
        spec.name,
        absl::StrCat("is on ", tensor.device().str(), " and was on ", master.device().str(),
                     " when the run was joined: move the model before connect"));
  }
  if (ShapeOf(tensor) == spec.shape) return absl::OkStatus();
  return Refuse(spec.name,
                absl::StrCat("has shape [", absl::StrJoin(tensor.sizes(), ", "), "] and had [",
                             absl::StrJoin(spec.shape, ", "), "] when the run was joined"));
}

bool IsHostMemory(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

// Returns `tensor` if it has f32 on the host, otherwise `twin`, which is allocated when needed. It
// is pinned for a device, which copies to and from other memory by way of its driver's buffers.
const at::Tensor& HostOf(const at::Tensor& tensor, at::Tensor* twin) {
  if (IsHostMemory(tensor)) return tensor;
  if (!twin->defined()) {
    const auto f32 = at::TensorOptions(at::kFloat);
    *twin = at::empty(tensor.sizes(), f32.pinned_memory(!tensor.is_cpu()));
  }
  return *twin;
}

absl::Span<float> SpanOf(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

at::Tensor MasterOf(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return tensor;
  const at::NoGradGuard no_grad;
  at::Tensor master = at::empty(tensor.sizes(), tensor.options().dtype(at::kFloat));
  master.copy_(tensor);
  return master.set_requires_grad(true);
}

int64_t BytesOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

// Torch rounds the size of pinned memory up to a power of two.
int64_t BytesOfTwin(const at::Tensor& twin) {
  const int64_t bytes = BytesOf(twin);
  if (bytes == 0 || !twin.is_pinned()) return bytes;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
}

}  // namespace

ModuleTensors::ModuleTensors(Manifest manifest, std::vector<at::Tensor> tensors)
    : manifest_(std::move(manifest)),
      tensors_(std::move(tensors)),
      host_(tensors_.size()),
      host_gradients_(tensors_.size()) {
  for (const at::Tensor& tensor : tensors_) masters_.push_back(MasterOf(tensor));
}

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
    specs.push_back({.name = names[i], .shape = ShapeOf(tensors[i])});
    DISTRO_RETURN_IF_ERROR(CheckKind(specs.back(), tensors[i]));
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
  return CatchTorch(kWhat, [&]() -> absl::StatusOr<ModuleTensors> {
    return ModuleTensors(std::move(manifest), std::move(ordered));
  });
}

ModuleTensors::Memory ModuleTensors::MemoryOf(size_t i) const {
  return {.module = BytesOf(tensors_[i]),
          .master = HasMaster(i) ? BytesOf(masters_[i]) : 0,
          .host = BytesOfTwin(host_[i]) + BytesOfTwin(host_gradients_[i])};
}

int64_t ModuleTensors::GradientBytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    bytes += BytesOf(tensors_[i].grad());
    if (HasMaster(i)) bytes += BytesOf(masters_[i].grad());
  }
  return bytes;
}

absl::Status ModuleTensors::Check() const {
  for (size_t i = 0; i < tensors_.size(); ++i)
    DISTRO_RETURN_IF_ERROR(CheckSame(manifest_.tensors()[i], tensors_[i], masters_[i]));
  return absl::OkStatus();
}

absl::Status ModuleTensors::Finish() const {
  return CatchTorch(kWhat, [&] {
    at::Device finished(at::kCPU);  // tensors of one device are adjacent
    for (const at::Tensor& tensor : tensors_) {
      const at::Device device = std::exchange(finished, tensor.device());
      if (finished.is_cpu() || finished == device) continue;
      // A VirtualGuardImpl would call the virtual function that had this place in the version that
      // we were built with.
      at::accelerator::synchronizeDevice(finished.index());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<RunSpans> ModuleTensors::Elements() {
  DISTRO_RETURN_IF_ERROR(Check());
  return CatchTorch(kWhat, [&]() -> absl::StatusOr<RunSpans> {
    RunSpans spans;
    for (size_t i = 0; i < masters_.size(); ++i)
      spans.push_back(SpanOf(HostOf(masters_[i], &host_[i])));
    return spans;
  });
}

absl::Status ModuleTensors::ShowElements() {
  const at::NoGradGuard no_grad;
  const absl::Status status = CatchTorch(kWhat, [&] {
    for (size_t i = 0; i < masters_.size(); ++i) {
      if (!IsHostMemory(masters_[i])) masters_[i].copy_(host_[i], kEnqueued);
    }
    return absl::OkStatus();
  });
  return status.ok() ? ShowMasters() : status;
}

absl::StatusOr<RunSpans> ModuleTensors::ReadElements() {
  const at::NoGradGuard no_grad;
  DISTRO_ASSIGN_OR_RETURN(RunSpans spans, Elements());
  DISTRO_RETURN_IF_ERROR(CatchTorch(kWhat, [&] {
    for (size_t i = 0; i < masters_.size(); ++i) {
      if (!IsHostMemory(masters_[i])) host_[i].copy_(masters_[i], kEnqueued);
    }
    return Finish();
  }));
  return spans;
}

absl::Status ModuleTensors::ShowMasters() {
  const at::NoGradGuard no_grad;
  DISTRO_RETURN_IF_ERROR(Check());
  return CatchTorch(kWhat, [&] {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (HasMaster(i)) tensors_[i].copy_(masters_[i]);
    }
    return Finish();
  });
}

absl::StatusOr<at::Tensor> ModuleTensors::GradientOf(size_t i) const {
  at::Tensor& gradient = tensors_[i].mutable_grad();
  if (!gradient.defined()) gradient = at::zeros(tensors_[i].sizes(), tensors_[i].options());
  if (gradient.layout() == at::kStrided) return gradient;
  return Refuse(manifest_.tensors()[i].name,
                "its gradient is sparse: leave sparse=True out of the embedding");
}

absl::StatusOr<double> ModuleTensors::GradientNorm() {
  const at::NoGradGuard no_grad;
  DISTRO_RETURN_IF_ERROR(Check());
  return CatchTorch(kWhat, [&]() -> absl::StatusOr<double> {
    std::vector<at::Tensor> norms;  // of all tensors, before the first is waited for
    for (size_t i = 0; i < tensors_.size(); ++i) {
      DISTRO_ASSIGN_OR_RETURN(const at::Tensor gradient, GradientOf(i));
      norms.push_back(gradient.norm(2, at::kFloat));
    }
    double squares = 0;
    for (const at::Tensor& norm : norms) squares += std::pow(double{norm.item<float>()}, 2);
    return std::sqrt(squares);
  });
}

absl::StatusOr<double> ModuleTensors::ClipGradients(float clip_norm) {
  const at::NoGradGuard no_grad;
  DISTRO_ASSIGN_OR_RETURN(const double norm, GradientNorm());
  if (!std::isfinite(norm)) return norm;
  const float scale = ClipScale(norm, clip_norm);
  return CatchTorch(kWhat, [&]() -> absl::StatusOr<double> {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      DISTRO_ASSIGN_OR_RETURN(at::Tensor gradient, GradientOf(i));
      if (HasMaster(i)) {
        at::Tensor& of_master = masters_[i].mutable_grad();
        if (!of_master.defined()) of_master = at::empty(masters_[i].sizes(), masters_[i].options());
        of_master.copy_(gradient);
        gradient = of_master;
      }
      if (scale != 1) gradient.mul_(scale);
    }
    DISTRO_RETURN_IF_ERROR(Finish());
    return norm;
  });
}

absl::StatusOr<RunSpans> ModuleTensors::Gradients() {
  const at::NoGradGuard no_grad;
  DISTRO_RETURN_IF_ERROR(Check());
  return CatchTorch(kWhat, [&]() -> absl::StatusOr<RunSpans> {
    RunSpans spans;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      DISTRO_ASSIGN_OR_RETURN(const at::Tensor gradient, GradientOf(i));
      const at::Tensor& host = HostOf(gradient, &host_gradients_[i]);
      if (!host.is_same(gradient)) host.copy_(gradient, kEnqueued);
      spans.push_back(SpanOf(host));
    }
    DISTRO_RETURN_IF_ERROR(Finish());
    return spans;
  });
}

}  // namespace distro::worker
