// Ranges and options of the operations in backend.h: plain data without dependencies, so that files compiled for one
// instruction set can include it.
#pragma once

#include <cstdint>

namespace distro {

struct BlockRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Momentum and step of one round.
struct CompressOptions {
  float beta = 0;
  float eta = 0;             // learning rate
  float gradient_scale = 1;  // min(1, clip / ||g||)
  int k = 0;                 // 1..4096
};

struct UpdateOptions {
  float eta = 0;
  float eta_lambda = 0;  // +0 for tensors that do not decay
};

}  // namespace distro
