#include <algorithm>

#include "common/model/decoder/decoder.h"
#include "common/model/logit_rows.h"

namespace distro {
namespace {

constexpr int64_t kF32 = 4;

// Tracks the live bytes and their maximum.
class Live {
 public:
  explicit Live(int64_t bytes) : now_(bytes), peak_(bytes) {}
  void Add(int64_t bytes) {
    now_ += bytes;
    peak_ = std::max(peak_, now_);
  }
  void Drop(int64_t bytes) { now_ -= bytes; }
  // Temporaries that exist only for a moment, besides the live bytes.
  void Need(int64_t bytes) { peak_ = std::max(peak_, now_ + bytes); }
  int64_t peak() const { return peak_; }

 private:
  int64_t now_;
  int64_t peak_;
};

struct Sizes {
  // `masked`: attention of a block has a mask.
  Sizes(const DecoderConfig& config, int64_t sequences, int64_t positions, int64_t bytes, bool gpu,
        bool masked)
      : e(bytes),
        fused(gpu),
        normed(config.kind->qk_norm),
        tokens(sequences * positions),
        hidden(tokens * config.hidden_size * e),
        wide(tokens * config.hidden_size * kF32),
        query(tokens * config.heads * config.head_dim * e),
        key(tokens * config.kv_heads * config.head_dim * e),
        repeated(config.heads == config.kv_heads || (e != kF32 && !masked) ? 0 : query),
        inner(tokens * config.intermediate_size * e),
        statistics(tokens * kF32),
        softmax(tokens * config.heads * kF32),
        logits(tokens * config.vocab_size * kF32),
        chunk(std::min(tokens, LogitRows(config.vocab_size))),
        chunk_logits(chunk * config.vocab_size * kF32),
        padded(gpu && config.vocab_size % kLogitAlignment != 0),
        chunked(padded || chunk < tokens),
        square(int64_t{config.hidden_size} * config.heads * config.head_dim * e),
        key_weight(int64_t{config.hidden_size} * config.kv_heads * config.head_dim * e),
        inner_weight(int64_t{config.hidden_size} * config.intermediate_size * e),
        vocabulary_weight(int64_t{config.hidden_size} * config.vocab_size * e),
        norm_weight(config.hidden_size * e),
        head(config.head_dim * e),
        head_vectors((normed ? 2 : 0) +
                     (config.kind->qkv_bias ? config.heads + 2 * config.kv_heads : 0)) {}

  // Bytes that a norm saves: the statistics; unless fused the normalized input, and in bf16 the
  // input in f32; without its result.
  int64_t NormSaved() const {
    return fused ? statistics : statistics + hidden + (e == kF32 ? 0 : wide);
  }
  // Peak of a norm's backward, in f32 unless fused, besides the saved bytes and the incoming
  // gradient.
  int64_t NormBackward() const { return fused ? hidden : 3 * wide; }

  // The same of the norm of queries or keys with so many bytes, if there is one. Its input is saved
  // too, unless fused both in f32; its result is not kept.
  int64_t HeadNormSaved(int64_t bytes) const {
    if (!normed) return 0;
    return bytes / head * kF32 + (fused ? bytes : 2 * bytes / e * kF32);
  }
  int64_t HeadNormBackward(int64_t bytes) const {
    if (!normed) return 0;
    return fused ? bytes : 3 * bytes / e * kF32;
  }

  const int64_t e;
  const bool fused;
  const bool normed;  // whether queries and keys have norms
  const int64_t tokens;
  const int64_t hidden, wide;  // [N, hidden]
  // [N, heads * d], [N, kv_heads * d], in f32 a key or value for every query head
  const int64_t query, key, repeated;
  const int64_t inner;                // [N, intermediate]
  const int64_t statistics, softmax;  // f32 [N], [N, heads]
  const int64_t logits;               // f32 [N, vocabulary]
  const int64_t chunk, chunk_logits;  // tokens that have logits at a time; f32 [chunk, vocabulary]
  const bool padded;                  // whether the head's weight has a copy with more words
  const bool chunked;                 // whether TokenLoss makes the logits itself
  const int64_t square, key_weight, inner_weight, vocabulary_weight, norm_weight;
  const int64_t head, head_vectors;  // [d]; how many biases and norms have, together
};

UnitMemory Embedding(const Sizes& s) {
  return {.output = s.hidden,
          .saved = 0,
          .forward_peak = s.hidden,
          .plain_peak = s.hidden,
          .backward_peak = s.vocabulary_weight,
          .gradients = s.vocabulary_weight};
}

// Starts from `saved`, and follows autograd's order backwards.
int64_t BlockBackward(const Sizes& s, int64_t saved) {
  const int64_t keys = s.repeated > 0 ? s.repeated : s.key;
  Live live(saved);
  live.Add(s.inner + s.inner_weight);   // down: gradients of its input and weight
  live.Drop(s.inner);                   // its input
  live.Add(2 * s.inner);                // product: gradients of both factors
  live.Drop(3 * s.inner);               // the product's gradient, and both factors
  live.Add(s.hidden + s.inner_weight);  // up
  live.Drop(s.inner);
  live.Add(s.inner);  // silu
  live.Drop(2 * s.inner);
  live.Add(s.hidden + s.inner_weight);  // gate
  live.Drop(s.inner + s.hidden);        // m
  live.Need(s.hidden);                  // sum of the two
  live.Drop(s.hidden);
  live.Need(s.NormBackward());
  live.Add(s.hidden);  // gradient of h
  live.Drop(s.hidden + s.NormSaved());
  live.Add(s.query + s.square);  // output projection
  live.Add(s.query + 2 * keys);  // attention: gradients of query, key, value
  live.Drop(3 * s.query + 2 * keys + s.softmax);
  if (s.repeated > 0) {
    live.Add(2 * s.key);  // sums over the copies
    live.Drop(2 * s.repeated);
  }
  live.Add(s.hidden + s.key_weight);  // value
  live.Drop(s.key);
  live.Need(3 * s.key);  // rotation
  live.Need(s.HeadNormBackward(s.key));
  live.Drop(s.HeadNormSaved(s.key));
  live.Add(s.hidden + s.key_weight);  // key
  live.Drop(s.key + s.hidden);
  live.Need(3 * s.query);
  live.Need(s.HeadNormBackward(s.query));
  live.Drop(s.HeadNormSaved(s.query));
  live.Add(s.hidden + s.square);  // query
  live.Drop(s.query + 2 * s.hidden);
  live.Need(s.NormBackward());
  return live.peak();
}

UnitMemory Block(const Sizes& s) {
  const int64_t keys = s.repeated > 0 ? s.repeated : s.key;
  // Both norms with their results, query, key, value, mixed values, softmax statistics, h, and the
  // four of the MLP.
  const int64_t saved = 2 * (s.NormSaved() + s.hidden) + 2 * s.query + 2 * keys + s.softmax +
                        s.hidden + 4 * s.inner + s.HeadNormSaved(s.query) + s.HeadNormSaved(s.key);
  // Attention without a graph: norm, rotated query, key, value, copies, mixed values, projection,
  // h.
  const int64_t attention = 3 * s.hidden + 2 * s.query + 2 * s.key + 2 * s.repeated + s.softmax;
  const int64_t rotation = s.hidden + (s.normed ? 6 : 5) * s.query;
  const int64_t head_norm = s.hidden + s.query + s.HeadNormBackward(s.query);
  // h, norm, result, sum; the expression's temporaries
  const int64_t mlp = 4 * s.hidden + 4 * s.inner;
  return {.output = s.hidden,
          .saved = saved,
          .forward_peak = saved + 2 * s.hidden,
          .plain_peak = std::max({attention, rotation, head_norm, mlp}),
          .backward_peak = BlockBackward(s, saved),
          .gradients = 2 * s.square + 2 * s.key_weight + 3 * s.inner_weight + 2 * s.norm_weight +
                       s.head_vectors * s.head};
}

// The head where TokenLoss makes the logits: gradients are made in the forward pass.
UnitMemory ChunkedHead(const Sizes& s) {
  const int64_t saved = s.NormSaved() + s.hidden + s.vocabulary_weight;
  const int64_t padded_weight = s.padded ? s.vocabulary_weight : 0;
  // The normalized input, its gradient, and the weight's in f32.
  Live forward(s.NormSaved() + 2 * s.hidden + s.vocabulary_weight / s.e * kF32 + padded_weight);
  forward.Need(2 * s.chunk_logits);                            // and log-probabilities
  const int64_t gradient = s.chunk_logits / kF32 * s.e;        // of the logits
  const int64_t chunk_hidden = s.hidden / s.tokens * s.chunk;  // the products with it are as large
  forward.Need(gradient + std::max(chunk_hidden, s.vocabulary_weight));
  if (s.e != kF32) forward.Need(s.vocabulary_weight);
  return {.output = 0,
          .saved = saved,
          .forward_peak = forward.peak(),
          .plain_peak = s.hidden + 2 * s.chunk_logits + padded_weight,
          .backward_peak = saved + s.NormBackward(),
          .gradients = s.vocabulary_weight + s.norm_weight};
}

UnitMemory Head(const Sizes& s) {
  if (s.chunked) return ChunkedHead(s);
  const int64_t narrow = s.e == kF32 ? 0 : s.logits / 2;  // logits in bf16
  const int64_t saved = s.NormSaved() + s.hidden + s.logits;
  Live live(saved);
  live.Add(2 * s.logits);   // gradients of the log-probabilities and of the logits
  live.Drop(2 * s.logits);  // log-probabilities, and their gradient
  live.Add(narrow);
  if (narrow > 0) live.Drop(s.logits);
  live.Add(s.hidden + s.vocabulary_weight);
  live.Drop(narrow > 0 ? narrow : s.logits);
  live.Need(s.NormBackward());
  return {.output = 0,
          .saved = saved,
          .forward_peak = s.NormSaved() + s.hidden + std::max(2 * s.logits, s.logits + narrow),
          .plain_peak = s.hidden + std::max(2 * s.logits, s.logits + narrow),
          .backward_peak = live.peak(),
          .gradients = s.vocabulary_weight + s.norm_weight};
}

}  // namespace

ModelMemory Decoder::Memory(int64_t sequences, int64_t positions, int64_t element_bytes,
                            bool gpu) const {
  const bool masks = config_.window > 0 && positions > config_.window;
  const Sizes sizes(config_, sequences, positions, element_bytes, gpu, /*masked=*/false);
  const Sizes masked(config_, sequences, positions, element_bytes, gpu, masks);
  ModelMemory memory;
  // Cosines and sines, and the mask.
  memory.tables =
      element_bytes * positions * (2 * config_.heads * config_.head_dim + (masks ? positions : 0));
  memory.units.push_back(Embedding(sizes));
  for (int layer = 0; layer < config_.layers; ++layer)
    memory.units.push_back(Block(config_.windowed[layer] ? masked : sizes));
  memory.units.push_back(Head(sizes));
  return memory;
}

}  // namespace distro
