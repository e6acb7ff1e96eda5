#include "bench/convergence/delta_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "common/method/deltas/scale.h"
#include "kernels/basis.h"
#include "kernels/block_site.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_compress.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::worker {
namespace {

using Block = std::array<float, kBlockElements>;
constexpr MatrixShape kOneBlock = {
    .rows = kBlockSide, .cols = kBlockSide, .elements = kBlockElements};

// Calls function(tensor, site, block number in the model) for each block.
template <typename Function>
void ForEachBlock(const Layout& layout, const Function& function) {
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorLayout& tensor = layout.tensors()[i];
    for (int64_t b = 0; b < tensor.matrix.Blocks(); ++b)
      function(i, SiteOf(tensor.matrix, b), tensor.first_block + b);
  }
}

// Calls function(position in the block, offset in the tensor) for each element of a block.
template <typename Function>
void ForEachElement(const BlockSite& site, const Function& function) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    for (int c = 0; c < cols; ++c) function(r * kBlockSide + c, site.offset + r * site.stride + c);
  }
}

Block BlockAt(const BlockSite& site, absl::Span<const float> elements) {
  Block block{};
  ForEachElement(site, [&](int position, int64_t element) { block[position] = elements[element]; });
  return block;
}

// One block of a message; borrowed.
struct SentBlock {
  absl::Span<const uint16_t> positions;
  absl::Span<const int64_t> values;
};

SentBlock BlockOf(const DeltaMessage& message, int64_t block) {
  const size_t k = message.k, first = block * k;
  return {.positions = absl::MakeSpan(message.positions).subspan(first, k),
          .values = absl::MakeSpan(message.values).subspan(first, k)};
}

// A block has all its frequencies.
BlockExtent ExtentOfBlock(const BlockSite& site, bool transform) {
  return transform ? BlockExtent{} : ExtentOf(site);
}

// The basis [frequency, sample] and its transpose.
struct BasisMatrices {
  Block upright, on_its_side;
  BasisMatrices() {
    for (int i = 0; i < kBlockSide; ++i) {
      for (int j = 0; j < kBlockSide; ++j)
        upright[i * kBlockSide + j] = on_its_side[j * kBlockSide + i] = kBasis.at[i][j];
    }
  }
};
const BasisMatrices& Basis() {
  static const BasisMatrices matrices;
  return matrices;
}

Block Product(const Block& a, const Block& b) {
  static const MatrixKernels& kernels = *SupportedVectorKernels().back().matrix;
  constexpr ProductShape kShape = {
      .rows = kBlockSide, .cols = kBlockSide, .depth = kBlockSide, .symmetric = false};
  Block out;
  kernels.product(kShape, a.data(), b.data(), {.product = 1, .addend = 0}, nullptr, out.data());
  return out;
}
Block Dct(const Block& x) { return Product(Product(Basis().upright, x), Basis().on_its_side); }
Block InverseDct(const Block& c) {
  return Product(Product(Basis().on_its_side, c), Basis().upright);
}

int64_t Units(float x) { return x < 0 ? -ScaleUnits(x) : ScaleUnits(x); }
float FromUnits(int64_t units) {
  return static_cast<float>(std::ldexp(static_cast<double>(units), -kScaleUnitBits));
}
int64_t Signed(float like, int64_t magnitude) { return like < 0 ? -magnitude : magnitude; }

// The scale code M of the mean magnitude of some values; 0 below the smallest scale.
int64_t MeanScale(absl::Span<const float> values) {
  int64_t sum = 0;
  for (const float x : values) sum += ScaleUnits(x);
  if (values.empty()) return 0;
  const auto code = ChooseScale(sum, static_cast<int>(values.size()));
  return code.has_value() ? ScaleOf(*code) : 0;
}

// One sign per value; one scale for the larger half and one for the smaller.
void TwoLevels(absl::Span<const float> chosen, absl::Span<int64_t> values) {
  std::vector<int> order(chosen.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](int i, int j) { return std::abs(chosen[i]) > std::abs(chosen[j]); });
  const size_t half = (chosen.size() + 1) / 2;
  for (const auto& [first, count] :
       {std::pair{size_t{0}, half}, std::pair{half, chosen.size() - half}}) {
    std::vector<float> part;
    for (size_t i = first; i < first + count; ++i) part.push_back(chosen[order[i]]);
    const int64_t scale = MeanScale(part);
    for (size_t i = first; i < first + count; ++i)
      values[order[i]] = Signed(chosen[order[i]], scale);
  }
}

// The values of a block, by settings.values; those of "tensor" are set later.
void EncodeBlock(const DeltasSettings& settings, const Block& c, DeltaMessage* message,
                 std::vector<float>* chosen) {
  DeltaUpdate update{.k = settings.k, .positions = {}, .signs = {}, .codes = {}};
  AppendLargest(kOneBlock, c, kScaleCodes - 1, &update);
  chosen->clear();
  for (const int position : update.positions) chosen->push_back(c[position]);
  std::vector<int64_t> values(settings.k);
  if (settings.values == "two") {
    TwoLevels(*chosen, absl::MakeSpan(values));
  } else {
    for (int i = 0; i < settings.k; ++i) {
      values[i] = settings.values == "float" ? Units((*chosen)[i])
                                             : update.signs[i] * ScaleOf(update.codes.front());
    }
  }
  if (update.empty(0)) std::ranges::fill(values, 0);
  message->positions.insert(message->positions.end(), update.positions.begin(),
                            update.positions.end());
  message->values.insert(message->values.end(), values.begin(), values.end());
}

bool Has(const DeltaMeans& means, int64_t block, uint16_t position) {
  return std::binary_search(means.positions.begin() + means.offsets[block],
                            means.positions.begin() + means.offsets[block + 1], position);
}

}  // namespace

DeltaMessage MessageOf(const DeltaUpdate& update) {
  DeltaMessage message = {.k = update.k, .positions = update.positions, .values = {}};
  for (size_t i = 0; i < update.signs.size(); ++i)
    message.values.push_back(update.signs[i] * ScaleOf(update.codes[i / update.k]));
  return message;
}

BlockForms FormsOf(const DeltasSettings& settings, const Layout& layout,
                   absl::Span<const InnerTensor> tensors) {
  if (settings.transform == "muon")
    return {.layout = &layout, .as_dct = MuonTensors(InnerOf(settings, 0), tensors)};
  return {.layout = &layout,
          .as_dct = std::vector<bool>(tensors.size(), settings.transform == "all")};
}

DeltaMessage EncodeVariant(const DeltasSettings& settings, const BlockForms& forms,
                           const RunSpans& a) {
  DeltaMessage message = {.k = settings.k, .positions = {}, .values = {}};
  std::vector<float> chosen;
  std::vector<std::vector<float>> of_tensor(a.size());
  ForEachBlock(*forms.layout, [&](size_t tensor, const BlockSite& site, int64_t) {
    const Block block = BlockAt(site, a[tensor]);
    EncodeBlock(settings, forms.as_dct[tensor] ? Dct(block) : block, &message, &chosen);
    of_tensor[tensor].insert(of_tensor[tensor].end(), chosen.begin(), chosen.end());
  });
  if (settings.values != "tensor") return message;
  size_t entry = 0;
  for (const std::vector<float>& values : of_tensor) {
    // A scale is calculated from at most 4096 numbers. That of a larger tensor is calculated from
    // their mean.
    double sum = 0;
    for (const float x : values) sum += std::abs(x);
    const int64_t scale = ScaleOf(ScaleCodeOf(sum / static_cast<double>(values.size())));
    for (const float x : values) {
      int64_t& value = message.values[entry++];
      if (value != 0) value = Signed(x, scale);
    }
  }
  return message;
}

double MessageNorm(const DeltaMessage& message) {
  double squares = 0;
  for (const int64_t value : message.values)
    squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

void ScaleBy(double factor, DeltaMessage* message) {
  for (int64_t& value : message->values) value = std::llround(factor * static_cast<double>(value));
}

DeltaMeans CombineMessages(absl::Span<const DeltaMessage* const> messages, const BlockForms& forms,
                           const MeanRule& rule) {
  DeltaMeans means;
  DeltaAccumulator accumulator(rule);
  ForEachBlock(*forms.layout, [&](size_t tensor, const BlockSite& site, int64_t block) {
    const BlockExtent extent = ExtentOfBlock(site, forms.as_dct[tensor]);
    for (const DeltaMessage* message : messages) {
      const SentBlock sent = BlockOf(*message, block);
      if (std::ranges::all_of(sent.values, [](int64_t value) { return value == 0; })) continue;
      accumulator.Add(extent, sent.positions, sent.values, /*weight=*/1);
    }
    accumulator.EmitBlock(&means);
  });
  return means;
}

PairCounts CompareMessages(absl::Span<const DeltaMessage* const> messages,
                           const BlockForms& forms) {
  PairCounts pairs(messages.size());
  std::vector<SentSigns> sent(messages.size());
  std::vector<std::vector<int8_t>> signs(messages.size());  // of the block
  ForEachBlock(*forms.layout, [&](size_t tensor, const BlockSite& site, int64_t block) {
    for (size_t i = 0; i < messages.size(); ++i) {
      const SentBlock of = BlockOf(*messages[i], block);
      signs[i].clear();
      for (const int64_t value : of.values)
        signs[i].push_back(static_cast<int8_t>((value > 0) - (value < 0)));
      sent[i] = {.positions = of.positions, .signs = signs[i]};
    }
    pairs.AddBlock(ExtentOfBlock(site, forms.as_dct[tensor]), sent);
  });
  return pairs;
}

RoundedMeans RoundMeans(const DeltaMeans& means, int levels, double step) {
  RoundedMeans rounded;
  for (int64_t block = 0; block < means.blocks(); ++block) {
    const uint32_t begin = means.offsets[block], end = means.offsets[block + 1];
    int64_t largest = 0, sum = 0;
    for (uint32_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::abs(means.values[i]));
      sum += std::abs(means.values[i]);
    }
    const int code = levels == 1 && end > begin
                         ? ChooseScale(sum, static_cast<int>(end - begin)).value_or(0)
                         : CoveringScale(largest);
    const auto scale = static_cast<double>(ScaleOf(code));
    for (uint32_t i = begin; i < end; ++i) {
      const double octaves = std::log2(scale / static_cast<double>(std::abs(means.values[i])));
      const auto level = levels == 1 ? 0L : std::max(0L, std::lround(octaves / step));
      if (level >= levels) continue;
      const auto magnitude = std::llround(scale * std::exp2(-step * static_cast<double>(level)));
      rounded.means.positions.push_back(means.positions[i]);
      rounded.means.values.push_back(means.values[i] < 0 ? -magnitude : magnitude);
      rounded.levels.push_back(static_cast<uint8_t>(level));
    }
    rounded.codes.push_back(static_cast<uint8_t>(code));
    rounded.means.offsets.push_back(static_cast<uint32_t>(rounded.means.positions.size()));
  }
  return rounded;
}

RoundedMeans MeansOf(const DeltaResult& result) {
  RoundedMeans rounded = {
      .means = {.offsets = result.offsets, .positions = result.positions, .values = {}},
      .levels = result.levels,
      .codes = result.codes};
  for (int64_t block = 0; block < result.blocks(); ++block) {
    for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i) {
      rounded.means.values.push_back(result.signs[i] *
                                     LevelMagnitude(result.codes[block], result.levels[i]));
    }
  }
  return rounded;
}

DeltaMeans AllSent(absl::Span<const DeltaMessage* const> messages, int64_t blocks) {
  DeltaMeans sent;
  for (int64_t block = 0; block < blocks; ++block) {
    std::vector<uint16_t> positions;
    for (const DeltaMessage* message : messages) {
      const auto first = message->positions.begin() + block * message->k;
      positions.insert(positions.end(), first, first + message->k);
    }
    std::ranges::sort(positions);
    positions.erase(std::ranges::unique(positions).begin(), positions.end());
    sent.positions.insert(sent.positions.end(), positions.begin(), positions.end());
    sent.values.resize(sent.positions.size());
    sent.offsets.push_back(static_cast<uint32_t>(sent.positions.size()));
  }
  return sent;
}

DeltaMeans Without(const DeltaMeans& of, const DeltaMeans& without) {
  DeltaMeans rest;
  for (int64_t block = 0; block < of.blocks(); ++block) {
    for (uint32_t i = of.offsets[block]; i < of.offsets[block + 1]; ++i) {
      if (Has(without, block, of.positions[i])) continue;
      rest.positions.push_back(of.positions[i]);
      rest.values.push_back(of.values[i]);
    }
    rest.offsets.push_back(static_cast<uint32_t>(rest.positions.size()));
  }
  return rest;
}

void SubtractMessage(const DeltaMessage& message, const DeltaMeans& returned,
                     const BlockForms& forms, const RunSpans& e) {
  ForEachBlock(*forms.layout, [&](size_t tensor, const BlockSite& site, int64_t block) {
    Block q{};
    for (int64_t i = block * message.k; i < (block + 1) * message.k; ++i) {
      if (Has(returned, block, message.positions[i]))
        q[message.positions[i]] = FromUnits(message.values[i]);
    }
    if (forms.as_dct[tensor]) q = InverseDct(q);
    ForEachElement(site, [&](int position, int64_t element) { e[tensor][element] -= q[position]; });
  });
}

void SpreadMeans(const DeltaMeans& means, const BlockForms& forms, TensorBuffer* out) {
  ForEachBlock(*forms.layout, [&](size_t tensor, const BlockSite& site, int64_t block) {
    Block delta{};
    for (uint32_t i = means.offsets[block]; i < means.offsets[block + 1]; ++i)
      delta[means.positions[i]] = FromUnits(means.values[i]);
    if (forms.as_dct[tensor]) delta = InverseDct(delta);
    ForEachElement(site, [&](int position, int64_t element) {
      out->tensor(static_cast<int>(tensor))[element] = delta[position];
    });
  });
}

}  // namespace distro::worker
