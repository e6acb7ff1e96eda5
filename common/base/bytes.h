// Reads and writes little-endian numbers in byte strings.
//
// ByteReader is for hostile input: every read is checked against the bytes that remain, no length
// that was read causes an allocation, and a failed read does not move the position.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace distro {

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian and so must the machine be");

class ByteReader {
 public:
  // Borrows `bytes`, which must outlive the reader and what it returns.
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  size_t remaining() const { return bytes_.size() - position_; }
  size_t position() const { return position_; }

  // Reads one fixed-size number (or other trivially copyable value). InvalidArgument: too few bytes
  // remain; `what` names the field.
  template <typename T>
  absl::StatusOr<T> Read(absl::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    absl::StatusOr<absl::string_view> bytes = ReadBytes(sizeof(T), what);
    if (!bytes.ok()) return bytes.status();
    T value;
    std::memcpy(&value, bytes->data(), sizeof(T));
    return value;
  }

  // The next `count` bytes, borrowed. InvalidArgument as above.
  absl::StatusOr<absl::string_view> ReadBytes(uint64_t count, absl::string_view what) {
    if (count > remaining()) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": needs ", count, " bytes at offset ",
                                                     position_, ", ", remaining(), " are left"));
    }
    absl::string_view result = bytes_.substr(position_, count);
    position_ += count;
    return result;
  }

 private:
  absl::string_view bytes_;
  size_t position_ = 0;
};

// Appends the bytes of a number to `out`.
template <typename T>
void AppendLittleEndian(std::string* out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

}  // namespace distro
