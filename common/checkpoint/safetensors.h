// Safetensors files (docs/checkpoints.md): an 8-byte little-endian header length, a JSON header
// that places every tensor, the data. The reader is strict, because files come from peers: every
// byte of the data belongs to exactly one tensor, nothing is reserved by a length that was read,
// names are unique, and what is wrong is said in one word first
// ("header_length", "json", "name", "duplicate", "fields", "metadata", "dtype", "shape", "offsets",
// "truncated", "trailing").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file.h"

namespace distro {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  std::string dtype;           // a name of the format: "F32", "BF16", "I64" ...
  std::vector<int64_t> shape;  // empty: one element
  absl::string_view bytes;     // row-major, little-endian, borrowed, of any alignment

  int64_t elements() const;
};

struct SafetensorsContents {
  std::vector<SafetensorsTensor> tensors;       // ascending by name, bytewise
  std::map<std::string, std::string> metadata;  // of "__metadata__"; empty when there is none
};

// Borrows `bytes` in the result. InvalidArgument: the file breaks the format; the message begins
// with the word above.
absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes);

// A mapped file. The tensors' bytes live as long as the object, also when it moves.
class SafetensorsFile {
 public:
  // InvalidArgument as above, after "path: "; the statuses of MappedFile::Open.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  absl::Span<const SafetensorsTensor> tensors() const { return contents_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }
  // Null when there is none.
  const SafetensorsTensor* Find(absl::string_view name) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}
  MappedFile file_;
  SafetensorsContents contents_;
};

// True of F32, BF16 and F16, which CopyToFloat can read.
bool IsConvertibleToFloat(absl::string_view dtype);

// Widens exactly to f32: F32 bits stay, BF16 and F16 keep their value, denormals and infinities
// too. InvalidArgument names the tensor: another dtype, or out.size() is not its number of
// elements.
absl::Status CopyToFloat(const SafetensorsTensor& tensor, absl::Span<float> out);

struct FloatTensor {
  std::string name;
  std::vector<int64_t> shape;
  absl::Span<const float> values;  // borrowed
  // What follows them, where a tensor lies in several places. Together the product of `shape`
  // elements.
  std::vector<absl::Span<const float>> rest = {};
};

// Writes the canonical file of these f32 tensors: names ascending, data in that order without gaps,
// compact header padded with spaces to a multiple of 8, "format": "pt" added to `metadata`. The
// same contents always give the same bytes. Durable and atomic as WriteFileAtomically; the values
// are written from where they are. InvalidArgument: a name is empty, over 512 bytes, repeated,
// "__metadata__" or not UTF-8; a shape does not match its values.
absl::Status WriteSafetensors(const std::string& path, std::vector<FloatTensor> tensors,
                              std::map<std::string, std::string> metadata);

}  // namespace distro
