#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/model/checkpoint/safetensors.h"
#include "nlohmann/json.hpp"

namespace distro {
namespace {

constexpr uint64_t kHeaderAlignment = 8;

absl::Status Refuse(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": ", what));
}

uint64_t Elements(const FloatTensor& tensor) {
  uint64_t elements = tensor.values.size();
  for (const auto& piece : tensor.rest) elements += piece.size();
  return elements;
}

absl::string_view BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

absl::Status CheckShape(const FloatTensor& tensor) {
  uint64_t elements = 1;
  for (int64_t dimension : tensor.shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(elements, static_cast<uint64_t>(dimension), &elements)) {
      return Refuse(tensor.name, "a dimension is out of range");
    }
  }
  if (elements != Elements(tensor)) {
    return Refuse(tensor.name, absl::StrCat("the shape has ", elements, " elements, ",
                                            Elements(tensor), " values were given"));
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const std::vector<FloatTensor>& tensors) {
  absl::string_view previous;
  for (const FloatTensor& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > 512 || tensor.name == "__metadata__")
      return Refuse(tensor.name, "the name is not allowed");
    if (tensor.name == previous) return Refuse(tensor.name, "the name occurs twice");
    if (!IsValidUtf8(tensor.name)) return Refuse(tensor.name, "the name is not UTF-8");
    DISTRO_RETURN_IF_ERROR(CheckShape(tensor));
    previous = tensor.name;
  }
  return absl::OkStatus();
}

absl::Status CheckMetadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (!IsValidUtf8(key) || !IsValidUtf8(value)) {
      return absl::InvalidArgumentError(absl::StrCat("metadata ", key, ": is not UTF-8"));
    }
  }
  return absl::OkStatus();
}

// Length and header. This JSON type keeps an object's keys in ascending order.
std::string HeaderOf(const std::vector<FloatTensor>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = {{"__metadata__", metadata}};
  uint64_t end = 0;
  for (const FloatTensor& tensor : tensors) {
    const uint64_t begin = end;
    end += Elements(tensor) * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  std::string bytes;
  AppendLittleEndian<uint64_t>(&bytes, text.size());
  return bytes + text;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, std::vector<FloatTensor> tensors,
                              std::map<std::string, std::string> metadata) {
  std::sort(tensors.begin(), tensors.end(),
            [](const FloatTensor& a, const FloatTensor& b) { return a.name < b.name; });
  DISTRO_RETURN_IF_ERROR(Annotate(CheckTensors(tensors), path));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckMetadata(metadata), path));
  metadata["format"] = "pt";  // required by transformers
  const std::string header = HeaderOf(tensors, metadata);
  std::vector<absl::string_view> pieces = {header};
  for (const FloatTensor& tensor : tensors) {
    pieces.push_back(BytesOf(tensor.values));
    for (const auto& piece : tensor.rest) pieces.push_back(BytesOf(piece));
  }
  return WritePiecesAtomically(path, pieces);
}

}  // namespace distro
