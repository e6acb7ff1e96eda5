#include "common/base/checksum.h"

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

// Published vectors: FIPS 180-4 for SHA-256, the xxHash specification for XXH3-64 of nothing.
TEST(ChecksumTest, KnownVectors) {
  EXPECT_EQ(ToHex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Xxh3("")), "2d06800538d394c2");
}

TEST(ChecksumTest, Xxh3OfPiecesIsThatOfTheWhole) {
  const std::string bytes(1000, 'x');
  const absl::string_view whole = bytes;
  EXPECT_EQ(Xxh3({whole.substr(0, 1), whole.substr(1, 0), whole.substr(1)}), Xxh3(whole));
  EXPECT_EQ(Xxh3(absl::Span<const absl::string_view>()), Xxh3(""));
}

TEST(ChecksumTest, Xxh3OfAStreamIsThatOfTheWhole) {
  const std::string whole(1000, 'x');
  Xxh3Stream stream;
  EXPECT_EQ(stream.Digest(), Xxh3(""));
  for (const size_t piece : {0, 1, 399, 600}) stream.Update(std::string(piece, 'x'));
  EXPECT_EQ(stream.Digest(), Xxh3(whole));
}

TEST(ChecksumTest, Xxh3SeesEveryByte) {
  const std::string bytes(300, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = 'y';
    EXPECT_NE(Xxh3(changed), Xxh3(bytes)) << i;
  }
}

TEST(Sha256StreamTest, PiecesGiveTheHashOfTheWhole) {
  Sha256Stream stream;
  stream.Update("a");
  stream.Update("");
  stream.Update("bc");
  EXPECT_EQ(stream.Finish(), Sha256("abc"));
}

TEST(ChecksumTest, HexKeepsLeadingZeros) { EXPECT_EQ(ToHex(uint64_t{0xab}), "00000000000000ab"); }

// The first outputs of the reference SplitMix64 with seed 1234567.
TEST(SplitMix64Test, ReferenceSequence) {
  EXPECT_EQ(SplitMix64(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(SplitMix64(1234567, 2), 9817491932198370423u);
}

}  // namespace
}  // namespace distro
