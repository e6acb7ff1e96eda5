// The manifest: the trainable tensors of a run, ordered by name (bytewise). The aggregator knows
// nothing else about a model. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/checksum.h"

namespace distro {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  bool operator==(const TensorSpec&) const = default;
};

class Manifest {
 public:
  // Sorts by name. InvalidArgument: no tensor, an empty or repeated name, a name over 512 bytes, a
  // shape without dimensions or with one below 1, more than 2^40 elements in all.
  static absl::StatusOr<Manifest> Create(std::vector<TensorSpec> tensors);

  absl::Span<const TensorSpec> tensors() const { return tensors_; }

  // SHA-256 of, for each tensor in order: u32 length of the name, the name, u32 number of
  // dimensions, u64 each dimension; all little-endian. The layout hash that both ends compare.
  const Sha256Digest& hash() const { return hash_; }
  // The first 8 bytes of hash() as a little-endian number; every segment payload contains it.
  uint64_t short_hash() const;

 private:
  Manifest() = default;
  std::vector<TensorSpec> tensors_;
  Sha256Digest hash_{};
};

// InvalidArgument: the tensors differ; names the first that is missing, unexpected or of another
// shape.
absl::Status CheckSameTensors(const Manifest& expected, const Manifest& actual);

}  // namespace distro
