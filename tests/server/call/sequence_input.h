// The bytes that drive a sequence of calls, and the check that aborts it. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace distro::testing {

inline void Require(bool condition, absl::string_view what) {
  if (condition) return;
  std::cerr << "violated: " << what << "\n";
  std::abort();
}

inline void RequireCode(const absl::Status& status, std::initializer_list<absl::StatusCode> codes,
                        absl::string_view call) {
  const bool known = status.ok() || std::ranges::find(codes, status.code()) != codes.end();
  Require(known, absl::StrCat(call, ": ", status.ToString()));
}

// The calls, read from the bytes; zeros at the end.
class Input {
 public:
  Input(const uint8_t* bytes, size_t size) : bytes_(bytes), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *bytes_++;
  }
  uint32_t Below(uint32_t n) { return Byte() % n; }

 private:
  const uint8_t* bytes_;
  size_t left_;
};

}  // namespace distro::testing
