// Damaged payloads, for tests of their readers.
#pragma once

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "gtest/gtest.h"

namespace distro::testing {

// Corrects the payload's checksum.
inline std::string FixChecksum(std::string bytes) {
  const uint64_t checksum = Xxh3(absl::string_view(bytes).substr(0, bytes.size() - 8));
  std::memcpy(bytes.data() + bytes.size() - 8, &checksum, 8);
  return bytes;
}

inline std::string WithByte(std::string bytes, size_t at, int value) {
  bytes[at] = static_cast<char>(value);
  return bytes;
}

// Expects that `validate` returns InvalidArgument for every shorter payload.
template <typename Validate>
void ExpectTruncationsAreRefused(const std::string& bytes, Validate validate) {
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::Status status = validate(absl::string_view(bytes).substr(0, size));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

// Expects that every flipped byte is detected. With a corrected checksum, the payload must be
// refused, or be the canonical encoding of other contents.
template <typename Decode, typename Encode>
void ExpectFlipsAreCaught(const std::string& bytes, Decode decode, Encode encode) {
  int accepted = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int mask : {0x01, 0x10, 0x80, 0xff}) {
      const std::string flipped = WithByte(bytes, i, bytes[i] ^ mask);
      ASSERT_EQ(decode(flipped).status().code(), absl::StatusCode::kInvalidArgument) << i;
      if (i >= bytes.size() - 8) continue;
      const std::string fixed = FixChecksum(flipped);
      const auto decoded = decode(fixed);
      if (decoded.ok()) {
        ++accepted;
        ASSERT_EQ(encode(*decoded), fixed) << i;
      } else {
        ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace distro::testing
