#include <cmath>
#include <cstring>

#include "common/model/checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

std::vector<float> Widen(const std::string& dtype, const std::vector<uint16_t>& bits) {
  const SafetensorsTensor tensor{
      .name = "t",
      .dtype = dtype,
      .shape = {static_cast<int64_t>(bits.size())},
      .bytes = {reinterpret_cast<const char*>(bits.data()), 2 * bits.size()}};
  std::vector<float> out(bits.size());
  const absl::Status status = CopyToFloat(tensor, absl::MakeSpan(out));
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

std::vector<uint16_t> AllPatterns() {
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  return bits;
}

// The value by its definition, in double.
double ValueOf(int bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

void ExpectAllPatterns(const std::string& dtype, int exponent_bits, int fraction_bits) {
  const std::vector<float> wide = Widen(dtype, AllPatterns());
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const double value = ValueOf(bits, exponent_bits, fraction_bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(wide[bits])) << bits;
    } else {
      EXPECT_EQ(wide[bits], value) << bits;
      EXPECT_EQ(std::signbit(wide[bits]), std::signbit(value)) << bits;
    }
  }
}

TEST(FloatConversionTest, KeepsValuesOfHalfs) { ExpectAllPatterns("F16", 5, 10); }

TEST(FloatConversionTest, KeepsValuesOfBfloats) { ExpectAllPatterns("BF16", 8, 7); }

TEST(FloatConversionTest, FloatsKeepTheirBitsAtAnyAlignment) {
  const uint32_t bits[2] = {0x7FC01234, 0x80000001};
  std::string bytes(1 + sizeof(bits), '\0');
  std::memcpy(bytes.data() + 1, bits, sizeof(bits));
  float out[2];
  const SafetensorsTensor tensor{
      .name = "t", .dtype = "F32", .shape = {2}, .bytes = absl::string_view(bytes).substr(1)};
  ASSERT_TRUE(CopyToFloat(tensor, absl::MakeSpan(out)).ok());
  EXPECT_EQ(std::memcmp(out, bits, sizeof(bits)), 0);
}

TEST(FloatConversionTest, RefusesOtherTypesAndSizes) {
  float out[2];
  const std::string bytes(8, '\0');
  for (const char* dtype : {"I32", "F64", "U8", "BOOL", "F8_E4M3"}) {
    const absl::Status status = CopyToFloat({"weight", dtype, {2}, bytes}, absl::MakeSpan(out));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("weight"));
  }
  EXPECT_EQ(CopyToFloat({"weight", "BF16", {4}, bytes}, absl::MakeSpan(out)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
