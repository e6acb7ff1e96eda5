// The loss of a head: logits and their mean cross entropy. Logits of many tokens need much memory,
// in f32: of 32 samples of 1024 tokens and a vocabulary of 32000 words 4.2 GB, three times in the
// backward pass. So at most LogitRows tokens have logits at a time, and their gradients are
// computed at once, in the forward pass. On GPUs their products have a padded number of words,
// which Torch's own operators do not do.
//
// Throws Torch's exceptions.
#pragma once

#include <cstdint>

#include "worker/torch/torch.h"

namespace distro::worker {

// hidden weight^T, in f32: [..., V] of [..., H] and [V, H].
at::Tensor Logits(const at::Tensor& hidden, const at::Tensor& weight);

struct LogitChunks {
  int64_t rows = 0;       // tokens that have logits at a time
  int64_t alignment = 1;  // of the number of words in products
};

// The mean over N tokens of the cross entropy of softmax(Logits): f32 []. By Torch's own operators
// where one chunk has all tokens and the words are aligned as they are.
//
//   hidden  [N, H]  f32 or bf16
//   weight  [V, H]  of the same type
//   labels  i64 [N]
//
// The gradient of `weight` is the sum of those of the chunks, in f32, in the order of the tokens.
at::Tensor TokenLoss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
                     const LogitChunks& chunks);

}  // namespace distro::worker
