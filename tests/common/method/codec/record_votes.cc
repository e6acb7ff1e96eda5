// Makes tests/common/method/codec/recorded_votes.payload: one round's votes of eight workers that
// train a small model on text, for the gap codec's test. Not a test; nothing else depends on it.
//
//   record_votes TEXT OUTPUT      (TEXT was LICENSE)
//
// The model predicts a byte from the four before it: embedding e [256, 64], hidden tanh layer a
// [2048, 256], output b [256, 2048]: 260 blocks. Each step is the one of the design in plain float:
// momentum, DCT, the K largest, votes, and the sign of their inverse DCT; what was sent is
// subtracted from the momentum.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "bench/wire/random_updates.h"
#include "common/base/file.h"
#include "common/method/signs/payload.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using ::distro::testing::Combine;
using ::distro::testing::WeightedUpdate;

constexpr int kWorkers = 8, kKept = 16, kSteps = 12, kBatch = 32;
constexpr int kContext = 4, kEmbedding = 64, kHidden = 2048, kBytes = 256;
constexpr int kInput = kContext * kEmbedding;
constexpr float kRate = 1e-3f, kBeta = 0.95f;

struct Matrix {
  Matrix(int rows_in, int cols_in)
      : rows(rows_in), cols(cols_in), data(size_t(rows_in) * cols_in) {}
  float* row(int r) { return data.data() + size_t(r) * cols; }
  int rows, cols;
  std::vector<float> data;
};
using Model = std::vector<Matrix>;  // e, a, b

Model MakeModel() {
  return {Matrix(kBytes, kEmbedding), Matrix(kHidden, kInput), Matrix(kBytes, kHidden)};
}

// Adds the gradient of the cross-entropy at text[at] to `gradient`; returns the loss in nats.
float AddGradient(const std::string& text, size_t at, Model* model, Model* gradient) {
  std::vector<float> x(kInput), h(kHidden), p(kBytes), dh(kHidden), dx(kInput);
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (int i = 0; i < kInput; ++i)
    x[i] = (*model)[0].row(byte(at - 1 - i / kEmbedding))[i % kEmbedding];
  for (int i = 0; i < kHidden; ++i)
    h[i] = std::tanh(std::inner_product(x.begin(), x.end(), (*model)[1].row(i), 0.0f));
  float sum = 0;
  for (int i = 0; i < kBytes; ++i)
    sum += p[i] = std::exp(std::inner_product(h.begin(), h.end(), (*model)[2].row(i), 0.0f));
  const float loss = std::log(sum / p[byte(at)]);
  for (int i = 0; i < kBytes; ++i) {
    const float d = p[i] / sum - (i == byte(at) ? 1.0f : 0.0f);
    for (int j = 0; j < kHidden; ++j) {
      (*gradient)[2].row(i)[j] += d * h[j];
      dh[j] += d * (*model)[2].row(i)[j];
    }
  }
  for (int i = 0; i < kHidden; ++i) {
    const float d = dh[i] * (1 - h[i] * h[i]);
    for (int j = 0; j < kInput; ++j) {
      (*gradient)[1].row(i)[j] += d * x[j];
      dx[j] += d * (*model)[1].row(i)[j];
    }
  }
  for (int i = 0; i < kInput; ++i)
    (*gradient)[0].row(byte(at - 1 - i / kEmbedding))[i % kEmbedding] += dx[i];
  return loss;
}

using Block = std::vector<float>;  // [64 * 64]

// basis[f][s], orthonormal.
float Basis(int f, int s) {
  static const std::vector<float> table = [] {
    std::vector<float> t(kBlockElements);
    for (int i = 0; i < kBlockElements; ++i) {
      t[i] = static_cast<float>(std::cos(M_PI * (i % 64 + 0.5) * (i / 64) / 64) *
                                std::sqrt((i < 64 ? 1.0 : 2.0) / 64));
    }
    return t;
  }();
  return table[f * 64 + s];
}

// The DCT-II of a block, or its inverse: both axes in turn.
Block Transform(const Block& in, bool inverse) {
  Block half(kBlockElements), out(kBlockElements);
  const auto weight = [&](int to, int from) { return inverse ? Basis(from, to) : Basis(to, from); };
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 64; ++c)
      for (int i = 0; i < 64; ++i) half[r * 64 + c] += in[r * 64 + i] * weight(c, i);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 64; ++c)
      for (int i = 0; i < 64; ++i) out[r * 64 + c] += half[i * 64 + c] * weight(r, i);
  return out;
}

// Calls function(rows of the block as pointers' starts) for every block of a model, in order.
template <typename Function>
void ForEachBlock(Model* model, Function function) {
  for (Matrix& matrix : *model) {
    for (int r = 0; r < matrix.rows; r += 64) {
      for (int c = 0; c < matrix.cols; c += 64)
        function([&, r, c](int i) { return matrix.row(r + i / 64) + c + i % 64; });
    }
  }
}

// Takes the strongest coefficients of the momentum out of it.
SignUpdate Compress(Model* momentum) {
  SignUpdate update{.k = kKept, .positions = {}, .signs = {}};
  ForEachBlock(momentum, [&](auto at) {
    Block block(kBlockElements);
    for (int i = 0; i < kBlockElements; ++i) block[i] = *at(i);
    const Block coefficients = Transform(block, false);
    std::vector<int> order(kBlockElements);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::abs(coefficients[a]) > std::abs(coefficients[b]);
    });
    std::sort(order.begin(), order.begin() + kKept);
    Block sent(kBlockElements);
    for (int i = 0; i < kKept; ++i) {
      sent[order[i]] = coefficients[order[i]];
      update.positions.push_back(static_cast<uint16_t>(order[i]));
      update.signs.push_back(coefficients[order[i]] < 0 ? -1 : 1);
    }
    const Block back = Transform(sent, true);
    for (int i = 0; i < kBlockElements; ++i) *at(i) -= back[i];
  });
  return update;
}

void Apply(const Votes& votes, Model* model) {
  int64_t number = 0;
  ForEachBlock(model, [&](auto at) {
    Block block(kBlockElements);
    for (uint32_t i = votes.offsets[number]; i < votes.offsets[number + 1]; ++i)
      block[votes.positions[i]] = votes.values[i];
    const Block direction = Transform(block, true);
    for (int i = 0; i < kBlockElements; ++i)
      *at(i) -= kRate * static_cast<float>((direction[i] > 0) - (direction[i] < 0));
    ++number;
  });
}

Votes Record(const std::string& text) {
  Model model = MakeModel();
  bench::RandomStream random(1);
  for (Matrix& matrix : model) {
    for (float& value : matrix.data)
      value = (static_cast<float>(random.Below(2001)) - 1000.0f) * 5e-5f;
  }
  std::vector<Model> momenta(kWorkers, MakeModel());
  Votes votes;
  for (int step = 0; step < kSteps; ++step) {
    float loss = 0;
    std::vector<SignUpdate> updates;
    for (Model& momentum : momenta) {
      for (Matrix& matrix : momentum) {
        for (float& value : matrix.data) value *= kBeta;
      }
      for (int i = 0; i < kBatch; ++i)
        loss +=
            AddGradient(text, kContext + random.Below(text.size() - kContext), &model, &momentum);
      updates.push_back(Compress(&momentum));
    }
    std::vector<WeightedUpdate> weighted;
    for (const SignUpdate& update : updates) weighted.push_back({&update, 1});
    votes = Combine(weighted);
    Apply(votes, &model);
    std::cout << "step " << step << " loss " << loss / (kWorkers * kBatch) << "\n";
  }
  return votes;
}

}  // namespace
}  // namespace distro

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: record_votes TEXT OUTPUT\n";
    return 1;
  }
  const absl::StatusOr<std::string> text = distro::ReadFile(argv[1]);
  if (!text.ok()) {
    std::cerr << text.status() << "\n";
    return 1;
  }
  const absl::Status written =
      distro::WriteFileAtomically(argv[2], distro::EncodeVotes({}, distro::Record(*text)));
  if (!written.ok()) std::cerr << written << "\n";
  return written.ok() ? 0 : 1;
}
