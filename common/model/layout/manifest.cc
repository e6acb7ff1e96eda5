#include "common/model/layout/manifest.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/model/layout/tensor_differences.h"

namespace distro {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr size_t kMaxNameBytes = 512;

// The number of elements; 0 when it exceeds kMaxElements.
int64_t BoundedElements(const TensorSpec& tensor) {
  int64_t elements = 1;
  for (int64_t dimension : tensor.shape) {
    if (dimension > kMaxElements / elements) return 0;
    elements *= dimension;
  }
  return elements;
}

absl::Status Validate(const TensorSpec& tensor, const std::string& previous_name) {
  if (tensor.name.empty())
    return absl::InvalidArgumentError("manifest: a tensor has an empty name");
  if (tensor.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: a tensor's name has ",
                                                   tensor.name.size(), " bytes, at most ",
                                                   kMaxNameBytes, " are allowed"));
  }
  if (tensor.name == previous_name) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: tensor ", tensor.name, " occurs twice"));
  }
  if (tensor.shape.empty() || *std::min_element(tensor.shape.begin(), tensor.shape.end()) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest: tensor ", tensor.name, " has no dimensions or one below 1"));
  }
  return absl::OkStatus();
}

Sha256Digest HashOf(const std::vector<TensorSpec>& tensors) {
  std::string bytes;
  for (const TensorSpec& tensor : tensors) {
    AppendLittleEndian<uint32_t>(&bytes, tensor.name.size());
    bytes.append(tensor.name);
    AppendLittleEndian<uint32_t>(&bytes, tensor.shape.size());
    for (int64_t dimension : tensor.shape) AppendLittleEndian<uint64_t>(&bytes, dimension);
  }
  return Sha256(bytes);
}

}  // namespace

absl::StatusOr<Manifest> Manifest::Create(std::vector<TensorSpec> tensors) {
  if (tensors.empty()) return absl::InvalidArgumentError("manifest: there is no tensor");
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSpec& a, const TensorSpec& b) { return a.name < b.name; });
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (absl::Status status = Validate(tensors[i], i == 0 ? "" : tensors[i - 1].name); !status.ok())
      return status;
    const int64_t elements = BoundedElements(tensors[i]);
    if (elements == 0 || elements > kMaxElements - total) {
      return absl::InvalidArgumentError(
          absl::StrCat("manifest: more than 2^40 elements at tensor ", tensors[i].name));
    }
    total += elements;
  }
  Manifest manifest;
  manifest.hash_ = HashOf(tensors);
  manifest.tensors_ = std::move(tensors);
  return manifest;
}

uint64_t Manifest::short_hash() const {
  uint64_t value;
  std::memcpy(&value, hash_.data(), sizeof(value));
  return value;
}

absl::Status CheckSameTensors(const Manifest& expected, const Manifest& actual) {
  const TensorDifferences found = CompareTensors(expected, actual);
  return found.empty() ? absl::OkStatus() : absl::InvalidArgumentError(found.Text());
}

}  // namespace distro
