// XXH3-64 (checksum.h) of bytes that arrive in pieces. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

namespace distro {

class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();

  void Update(absl::string_view bytes);
  // Of all that came so far.
  uint64_t Digest() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace distro
