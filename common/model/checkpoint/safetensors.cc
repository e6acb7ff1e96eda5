#include "common/model/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/foreign_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/model/checkpoint/safetensors_header.h"

namespace distro {
namespace {

absl::StatusOr<absl::string_view> ReadHeaderText(ByteReader& reader) {
  const absl::StatusOr<uint64_t> length = reader.Read<uint64_t>("header length");
  if (!length.ok()) return SafetensorsError("header_length", length.status().message());
  if (*length > std::min<uint64_t>(kMaxSafetensorsHeaderBytes, reader.remaining())) {
    return SafetensorsError(
        "header_length",
        absl::StrCat(*length, " bytes; ", reader.remaining(), " follow and at most ",
                     kMaxSafetensorsHeaderBytes, " are allowed"));
  }
  return reader.ReadBytes(*length, "header");
}

// InvalidArgument unless the tensors, sorted by offset, cover `size` bytes without gap or overlap.
absl::Status CheckPlaces(const std::vector<SafetensorsEntry>& entries, uint64_t size) {
  std::vector<const SafetensorsEntry*> by_place;
  for (const SafetensorsEntry& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(),
            [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
              return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
            });
  uint64_t end = 0;
  for (const SafetensorsEntry* entry : by_place) {
    if (entry->begin != end) {
      return SafetensorsError("offsets",
                              absl::StrCat("tensor ", ShownText(entry->name, 200), ": begins at ",
                                           entry->begin, ", the one before it ends at ", end));
    }
    end = entry->end;
  }
  if (end > size) {
    return SafetensorsError("truncated",
                            absl::StrCat("the data has ", size, " bytes, the tensors need ", end,
                                         ": a part is missing; copy or download it again"));
  }
  if (end < size) {
    return SafetensorsError("trailing",
                            absl::StrCat("the data has ", size, " bytes, the tensors end at ", end,
                                         ": another file was appended; copy or download it again"));
  }
  return absl::OkStatus();
}

bool NameBefore(const SafetensorsTensor& tensor, absl::string_view name) {
  return tensor.name < name;
}

float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// IEEE 754 binary16: 1 sign bit, 5 of exponent (bias 15), 10 of fraction.
float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 0) {  // zero and denormals: fraction * 2^-24, exact in f32
    return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f) |
                                sign);
  }
  const uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

template <typename Widen>
void WidenAll(absl::string_view bytes, Widen widen, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof(bits));
    out[i] = widen(bits);
  }
}

}  // namespace

int64_t SafetensorsTensor::elements() const {
  int64_t elements = 1;
  for (int64_t dimension : shape) elements *= dimension;
  return elements;
}

absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes) {
  ByteReader reader(bytes);
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view text, ReadHeaderText(reader));
  DISTRO_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(text));
  const absl::string_view data = bytes.substr(reader.position());
  DISTRO_RETURN_IF_ERROR(CheckPlaces(header.entries, data.size()));
  SafetensorsContents contents{.tensors = {}, .metadata = std::move(header.metadata)};
  for (SafetensorsEntry& entry : header.entries) {
    contents.tensors.push_back({.name = std::move(entry.name),
                                .dtype = std::move(entry.dtype),
                                .shape = std::move(entry.shape),
                                .bytes = data.substr(entry.begin, entry.end - entry.begin)});
  }
  std::sort(contents.tensors.begin(), contents.tensors.end(),
            [](const SafetensorsTensor& a, const SafetensorsTensor& b) { return a.name < b.name; });
  return contents;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  absl::StatusOr<SafetensorsContents> contents = ParseSafetensors(file.bytes());
  if (!contents.ok()) {
    if (ForeignFormat(file.bytes()) == kIsSafetensors) return Annotate(contents.status(), path);
    const bool json = !file.bytes().empty() && file.bytes()[0] == '{';
    const absl::Status refused =
        json ? absl::InvalidArgumentError("is JSON, not safetensors: another file has this name")
             : contents.status();
    return Annotate(ExplainForeign(refused, file.bytes()), path);
  }
  return SafetensorsFile(std::move(file), *std::move(contents));
}

const SafetensorsTensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = std::lower_bound(tensors().begin(), tensors().end(), name, NameBefore);
  return found == tensors().end() || found->name != name ? nullptr : &*found;
}

bool IsConvertibleToFloat(absl::string_view dtype) {
  return dtype == "F32" || dtype == "BF16" || dtype == "F16";
}

absl::Status CopyToFloat(const SafetensorsTensor& tensor, absl::Span<float> out) {
  if (!IsConvertibleToFloat(tensor.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": dtype ", tensor.dtype,
                                                   " cannot be trained; use F32, BF16 or F16"));
  }
  const size_t element_bytes = tensor.dtype == "F32" ? 4 : 2;
  if (out.size() != tensor.bytes.size() / element_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": has ",
                                                   tensor.bytes.size() / element_bytes,
                                                   " elements, expected ", out.size()));
  }
  if (tensor.dtype == "F32") {
    if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  } else if (tensor.dtype == "BF16") {
    WidenAll(tensor.bytes, FromBfloat16, out);
  } else {
    WidenAll(tensor.bytes, FromFloat16, out);
  }
  return absl::OkStatus();
}

}  // namespace distro
