#include "common/base/xxh3_stream.h"

#include <xxhash.h>

namespace distro {

struct Xxh3Stream::State {
  State() { XXH3_64bits_reset(state); }
  ~State() { XXH3_freeState(state); }
  XXH3_state_t* const state = XXH3_createState();
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {}
Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::Update(absl::string_view bytes) {
  XXH3_64bits_update(state_->state, bytes.data(), bytes.size());
}

uint64_t Xxh3Stream::Digest() const { return XXH3_64bits_digest(state_->state); }

}  // namespace distro
