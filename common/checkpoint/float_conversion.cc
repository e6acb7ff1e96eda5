#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/safetensors.h"

namespace distro {
namespace {

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
