#include "common/base/bytes.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(BytesTest, NumbersAreLittleEndian) {
  std::string bytes;
  AppendLittleEndian(&bytes, uint32_t{0x04030201});
  AppendLittleEndian(&bytes, int16_t{-2});
  EXPECT_EQ(bytes, std::string("\x01\x02\x03\x04\xfe\xff", 6));
}

TEST(ByteReaderTest, ReadsWhatWasAppended) {
  std::string bytes;
  AppendLittleEndian(&bytes, uint64_t{1} << 60);
  AppendLittleEndian(&bytes, 1.5f);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Read<uint64_t>("a").value(), uint64_t{1} << 60);
  EXPECT_EQ(reader.Read<float>("b").value(), 1.5f);
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteReaderTest, NamesFieldOfReadPastEnd) {
  ByteReader reader("abc");
  ASSERT_TRUE(reader.Read<uint8_t>("first").ok());
  EXPECT_EQ(reader.Read<uint32_t>("length").status(),
            absl::InvalidArgumentError("length: needs 4 bytes at offset 1, 2 are left"));
  EXPECT_EQ(reader.position(), 1u);
  EXPECT_EQ(reader.ReadBytes(2, "rest").value(), "bc");
}

TEST(ByteReaderTest, RefusesLengthNear2To64) {
  ByteReader reader("abc");
  ASSERT_TRUE(reader.Read<uint8_t>("first").ok());
  EXPECT_EQ(reader.ReadBytes(UINT64_MAX, "name").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.remaining(), 2u);
}

}  // namespace
}  // namespace distro
