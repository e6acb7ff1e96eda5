#include "bench/gpu/cuda_deltas.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/squares.h"

namespace distro::bench {
namespace {

constexpr float kBeta = 0.8f;
constexpr int kWorkers = 8;  // all their entries are returned, because none agree

template <typename T>
std::vector<T> Download(const T* device, int64_t count) {
  std::vector<T> host(count);
  Check(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

class DeltasBench {
 public:
  DeltasBench(const Layout& layout, const DeltaArrays& arrays, int k, bool as_dct, Timer* timer)
      : layout_(layout),
        arrays_(arrays),
        k_(k),
        as_dct_(as_dct),
        timer_(*timer),
        sent_(Allocate<uint16_t>(layout.blocks() * k)),
        sent_signs_(Allocate<int8_t>(layout.blocks() * k)),
        sent_codes_(Allocate<uint8_t>(layout.blocks())),
        invalid_(Upload<uint32_t>({kAllBlocksValid})),
        returned_(Upload<uint64_t>({0})) {}
  ~DeltasBench() {
    for (void* array :
         std::initializer_list<void*>{sent_, sent_signs_, sent_codes_, invalid_, returned_,
                                      offsets_, positions_, signs_, levels_, codes_})
      Check(cudaFree(array));
  }
  DeltasBench(const DeltasBench&) = delete;

  void Run() {
    const double record = (3.0 * k_ + 1) / kBlockElements;
    Report("compress deltas", 16 + record, [&](const TensorLayout& tensor, int64_t start) {
      Check(cuda::CompressDeltas({.matrix = tensor.matrix,
                                  .blocks = All(tensor),
                                  .beta = kBeta,
                                  .k = k_,
                                  .as_dct = as_dct_,
                                  .begin = arrays_.begin + start,
                                  .x = arrays_.x + start,
                                  .error = arrays_.error + start,
                                  .positions = sent_ + tensor.first_block * k_,
                                  .signs = sent_signs_ + tensor.first_block * k_,
                                  .codes = sent_codes_ + tensor.first_block},
                                 timer_.stream()));
    });
    Check(cudaStreamSynchronize(timer_.stream()));
    MakeResult();
    const double entries = static_cast<double>(host_offsets_.back()) / layout_.blocks();
    // A moved element reads a sector of 32 bytes.
    const double moved = as_dct_ ? 8 : 36.0 * k_ / kBlockElements;
    Report("feedback deltas", record + moved + (2 * entries + 4) / kBlockElements,
           [&](const TensorLayout& tensor, int64_t start) { Feedback(tensor, start); });
    const double applied = as_dct_ ? 8 : 36.0 * entries / kBlockElements;
    Report("apply deltas", applied + (4 * entries + 5) / kBlockElements,
           [&](const TensorLayout& tensor, int64_t start) { Apply(tensor, start); });
  }

 private:
  static BlockRange All(const TensorLayout& tensor) {
    return {.first = 0, .count = tensor.matrix.Blocks()};
  }

  template <typename F>
  void Report(const std::string& operation, double bytes, const F& each) {
    const std::string name =
        operation + (as_dct_ ? ", DCT, k=" : ", elements, k=") + std::to_string(k_);
    timer_.Report(name, layout_.elements(), bytes, [&] {
      int64_t start = 0;
      for (const TensorLayout& tensor : layout_.tensors()) {
        each(tensor, start);
        start += tensor.matrix.elements;
      }
    });
  }

  // All sent positions are returned, among those of seven other workers, spread over the
  // frequencies or over the block's elements in the tensor.
  void MakeResult() {
    const std::vector<uint16_t> sent = Download(sent_, layout_.blocks() * k_);
    std::vector<uint16_t> positions;
    std::vector<int8_t> signs;
    std::vector<uint8_t> levels;
    for (const TensorLayout& tensor : layout_.tensors()) {
      for (int64_t b = 0; b < tensor.matrix.Blocks(); ++b) {
        const auto own = sent.begin() + (tensor.first_block + b) * k_;
        const BlockExtent extent = as_dct_ ? BlockExtent{} : ExtentOf(tensor.matrix, b);
        AppendUnion({own, own + k_}, extent, &positions);
        host_offsets_.push_back(static_cast<uint32_t>(positions.size()));
      }
    }
    for (size_t i = 0; i < positions.size(); ++i) {
      signs.push_back(SplitMix64(2, i) >> 63 ? int8_t{1} : int8_t{-1});
      levels.push_back(static_cast<uint8_t>(i % kLevels));
    }
    offsets_ = Upload(host_offsets_);
    positions_ = Upload(positions);
    signs_ = Upload(signs);
    levels_ = Upload(levels);
    codes_ = Upload(std::vector<uint8_t>(layout_.blocks(), 90));
  }
  void AppendUnion(const std::vector<uint16_t>& own, const BlockExtent& extent,
                   std::vector<uint16_t>* positions) {
    const int others = (kWorkers - 1) * k_, step = kBlockElements / others;
    std::vector<uint16_t> spread, all;
    for (int i = 0; i < others; ++i) {
      const uint64_t random = SplitMix64(7, positions->size() + static_cast<size_t>(i));
      spread.push_back(
          static_cast<uint16_t>(i * step + static_cast<int>(random % static_cast<uint64_t>(step))));
    }
    std::set_union(own.begin(), own.end(), spread.begin(), spread.end(), std::back_inserter(all));
    std::copy_if(all.begin(), all.end(), std::back_inserter(*positions),
                 [&](uint16_t position) { return extent.Contains(position); });
  }

  void Feedback(const TensorLayout& tensor, int64_t start) {
    Check(cuda::FeedbackDeltas({.matrix = tensor.matrix,
                                .blocks = All(tensor),
                                .as_dct = as_dct_,
                                .sent = {.k = k_,
                                         .positions = sent_ + tensor.first_block * k_,
                                         .signs = sent_signs_ + tensor.first_block * k_,
                                         .codes = sent_codes_ + tensor.first_block},
                                .offsets = offsets_ + tensor.first_block,
                                .positions = positions_ + host_offsets_[tensor.first_block],
                                .error = arrays_.error + start,
                                .returned = returned_},
                               timer_.stream()));
  }

  void Apply(const TensorLayout& tensor, int64_t start) {
    const int64_t first = host_offsets_[tensor.first_block];
    Check(cuda::ApplyDeltas({.matrix = tensor.matrix,
                             .blocks = All(tensor),
                             .options = {.alpha = 1, .as_dct = as_dct_},
                             .offsets = offsets_ + tensor.first_block,
                             .positions = positions_ + first,
                             .signs = signs_ + first,
                             .levels = levels_ + first,
                             .codes = codes_ + tensor.first_block,
                             .parameters = arrays_.begin + start,
                             .invalid = invalid_},
                            timer_.stream()));
  }

  const Layout& layout_;
  const DeltaArrays arrays_;
  const int k_;
  const bool as_dct_;
  Timer& timer_;
  std::vector<uint32_t> host_offsets_ = {0};
  // On the device: the sent update, and the result.
  uint16_t* const sent_;
  int8_t* const sent_signs_;
  uint8_t* const sent_codes_;
  uint32_t* const invalid_;
  uint64_t* const returned_;
  uint32_t* offsets_ = nullptr;
  uint16_t* positions_ = nullptr;
  int8_t* signs_ = nullptr;
  uint8_t* levels_ = nullptr;
  uint8_t* codes_ = nullptr;
};

}  // namespace

void TimeDeltas(const Layout& layout, const DeltaArrays& arrays, Timer* timer) {
  auto* not_finite = Upload<uint32_t>({0});
  timer->Report("find not finite", layout.elements(), 12, [&] {
    Check(cuda::FindNotFinite(kBeta, arrays.begin, arrays.x, arrays.error, layout.elements(),
                              not_finite, timer->stream()));
  });
  Check(cudaFree(not_finite));
  auto* moved = Allocate<double>(PiecesOf(layout.elements()));
  auto* buffer = Allocate<double>(PiecesOf(layout.elements()));
  timer->Report("delta squares", layout.elements(), 12, [&] {
    Check(cuda::DeltaSquares(arrays.begin, arrays.x, arrays.error, layout.elements(), moved, buffer,
                             timer->stream()));
  });
  Check(cudaFree(moved));
  Check(cudaFree(buffer));
  for (const bool as_dct : {false, true}) {
    for (const int k : {8, 32}) DeltasBench(layout, arrays, k, as_dct, timer).Run();
  }
}

}  // namespace distro::bench
