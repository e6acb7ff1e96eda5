// Safetensors files (docs/checkpoints.md): an 8-byte little-endian header length, a JSON header
// with the place of every tensor, the data. The reader is strict, because files come from peers:
// every byte of the data belongs to exactly one tensor, no memory is reserved by a length from the
// file, and names are unique. An error message begins with one of these words: "header_length",
// "json", "name", "duplicate", "fields", "metadata", "dtype", "shape", "offsets", "truncated",
// "trailing".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"

namespace distro {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  std::string dtype;           // as in the format: "F32", "BF16", "I64" ...
  std::vector<int64_t> shape;  // empty: one element
  absl::string_view bytes;     // row-major, little-endian, borrowed, of any alignment

  int64_t elements() const;
};

struct SafetensorsContents {
  std::vector<SafetensorsTensor> tensors;       // ascending by name, bytewise
  std::map<std::string, std::string> metadata;  // of "__metadata__"; empty when there is none
};

// The result borrows `bytes`. InvalidArgument: the file breaks the format; the message begins with
// one of the words above.
absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes);

// A mapped file. The tensors' bytes are valid as long as the object, even when it is moved.
class SafetensorsFile {
 public:
  // InvalidArgument as above, after "path: ", or what lies there instead (foreign_file.h); the
  // statuses of MappedFile::Open.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  absl::Span<const SafetensorsTensor> tensors() const { return contents_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }
  // nullptr if there is none.
  const SafetensorsTensor* Find(absl::string_view name) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}
  MappedFile file_;
  SafetensorsContents contents_;
};

// True for F32, BF16 and F16, which CopyToFloat can read.
bool IsConvertibleToFloat(absl::string_view dtype);

// Widens exactly to f32: F32 bits stay; BF16 and F16 keep their values, including denormals and
// infinities. InvalidArgument names the tensor: another dtype, or out.size() is not its number of
// elements.
absl::Status CopyToFloat(const SafetensorsTensor& tensor, absl::Span<float> out);

struct FloatTensor {
  std::string name;
  std::vector<int64_t> shape;
  absl::Span<const float> values;  // borrowed
  // Further elements, for a tensor stored in several pieces. Together `shape`'s number of elements.
  std::vector<absl::Span<const float>> rest = {};
};

// Writes the canonical file of these f32 tensors: names ascending, data in that order without gaps,
// compact header padded with spaces to a multiple of 8, "format": "pt" added to `metadata`. The
// same contents give the same bytes. Durable and atomic as WriteFileAtomically; the values are not
// copied. InvalidArgument: a name is empty, over 512 bytes, repeated, "__metadata__" or not UTF-8;
// a shape does not match its values.
absl::Status WriteSafetensors(const std::string& path, std::vector<FloatTensor> tensors,
                              std::map<std::string, std::string> metadata);

}  // namespace distro
