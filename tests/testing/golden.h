// Reads golden arrays: raw little-endian C-order files listed in a folder's index.txt ("<file>
// <dtype> <dim0> ..."). Tests that use it link distro::golden_main, whose flag --golden_dir names
// the folder (default: tests/golden of the source tree), so that the same binaries check any other
// data of the same format.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace distro::testing {

// The folder given by --golden_dir.
std::string GoldenDir();

struct GoldenArray {
  std::string dtype;  // i8 i16 i32 i64 u8 u16 u32 u64 f32 f64
  std::vector<int64_t> shape;
  std::string bytes;

  // The elements; aborts the test binary when sizeof(T) does not fit the dtype.
  template <typename T>
  absl::Span<const T> As() const {
    static_assert(std::is_arithmetic_v<T>);
    if (dtype.substr(1) != std::to_string(8 * sizeof(T))) {
      ADD_FAILURE() << "dtype " << dtype << " read as " << 8 * sizeof(T) << " bits";
      std::abort();
    }
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// The arrays of GoldenDir()/folder by name (the file name up to ".<dtype>.bin", with its
// subfolder). A missing file or one whose size differs from the index fails the test and ends the
// binary.
std::map<std::string, GoldenArray> LoadGolden(const std::string& folder);

// List i of an array that holds lists of different lengths, one after the other. `offsets` says
// where each begins, and at last where the array ends.
template <typename T>
absl::Span<const T> GoldenList(const GoldenArray& array, const GoldenArray& offsets, int64_t i) {
  const absl::Span<const uint32_t> begins = offsets.As<uint32_t>();
  return array.As<T>().subspan(begins.at(i), begins.at(i + 1) - begins.at(i));
}

}  // namespace distro::testing
