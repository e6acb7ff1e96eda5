// Measures every operation of every backend that this CPU supports, on one thread;
// deltas_benchmark.cc measures the other operations of a deltas worker. items_per_second counts
// parameters; the bytes are those of the element arrays, each read or written once.
//
//   kernels_benchmark --benchmark_filter=Compress/avx2 --benchmark_format=json
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/kernel_inputs.h"
#include "common/base/random.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"
#include "common/method/signs/votes.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/deltas_view.h"

namespace distro::bench {
namespace {

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

// `entries` votes of +-1 per block, spread evenly over the positions.
Votes RandomVotes(int64_t blocks, int entries) {
  Votes votes;
  const int step = kBlockElements / entries;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < entries; ++i) {
      const uint64_t random = SplitMix64(7, static_cast<uint64_t>(b * entries + i));
      votes.positions.push_back(
          static_cast<uint16_t>(i * step + static_cast<int>(random % static_cast<uint64_t>(step))));
      votes.values.push_back(random >> 63 ? 1 : -1);
    }
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  return votes;
}

void Report(benchmark::State& state, int64_t parameters, int64_t bytes_each) {
  state.SetItemsProcessed(state.iterations() * parameters);
  state.SetBytesProcessed(state.iterations() * parameters * bytes_each);
}

void Compress(benchmark::State& state, const BackendFactory& make) {
  const int k = static_cast<int>(state.range(0));
  const std::unique_ptr<Backend> backend = make();
  const std::vector<float> gradient = RandomFloats(1, kMatrix.elements);
  std::vector<float> momentum = RandomFloats(2, kMatrix.elements);
  std::vector<uint16_t> positions(kBlocks.count * k);
  std::vector<float> values(kBlocks.count * k);
  for (auto _ : state) {
    backend->CompressSigns({.beta = 0.999f, .eta = 4e-4f, .gradient_scale = 0.5f, .k = k},
                           {{.matrix = kMatrix,
                             .blocks = kBlocks,
                             .gradient = gradient,
                             .momentum = absl::MakeSpan(momentum),
                             .positions = absl::MakeSpan(positions),
                             .values = absl::MakeSpan(values)}});
  }
  Report(state, kMatrix.elements, 12);
}

void Feedback(benchmark::State& state, const BackendFactory& make) {
  const int k = static_cast<int>(state.range(0));
  const std::unique_ptr<Backend> backend = make();
  const Votes votes = RandomVotes(kBlocks.count, k);
  const std::vector<float> values = RandomFloats(3, votes.positions.size());
  std::vector<float> momentum = RandomFloats(2, kMatrix.elements);
  for (auto _ : state) {
    backend->FeedbackSigns(kMatrix, kBlocks, k, votes.positions, values, absl::MakeSpan(momentum));
  }
  Report(state, kMatrix.elements, 8);
}

void Apply(benchmark::State& state, const BackendFactory& make) {
  const std::unique_ptr<Backend> backend = make();
  const Votes votes = RandomVotes(kBlocks.count, static_cast<int>(state.range(0)));
  std::vector<float> parameters = RandomFloats(2, kMatrix.elements);
  uint32_t invalid = kAllBlocksValid;
  for (auto _ : state) {
    backend->ApplyVotes(kMatrix, kBlocks, {.eta = 4e-4f, .eta_lambda = 4e-5f},
                        {votes.offsets, votes.positions, votes.values}, absl::MakeSpan(parameters),
                        &invalid);
  }
  if (invalid != kAllBlocksValid) state.SkipWithError("Apply failed");
  Report(state, kMatrix.elements, 8);
}

void Lookahead(benchmark::State& state, const BackendFactory& make) {
  const std::unique_ptr<Backend> backend = make();
  const std::vector<float> parameters = RandomFloats(1, kMatrix.elements);
  const std::vector<float> momentum = RandomFloats(2, kMatrix.elements);
  std::vector<float> out(kMatrix.elements);
  for (auto _ : state) backend->Lookahead(4e-4f, parameters, momentum, absl::MakeSpan(out));
  Report(state, kMatrix.elements, 12);
}

void StateHash(benchmark::State& state, const BackendFactory& make) {
  const std::unique_ptr<Backend> backend = make();
  const std::vector<float> parameters = RandomFloats(1, kMatrix.elements);
  uint64_t sum = 0;
  for (auto _ : state) backend->StateHash(0, parameters, &sum);
  benchmark::DoNotOptimize(sum);
  Report(state, kMatrix.elements, 4);
}

void RowSums(benchmark::State& state, const BackendFactory& make) {
  const std::unique_ptr<Backend> backend = make();
  const std::vector<float> gradient = RandomFloats(1, kMatrix.elements);
  std::vector<double> sums(kMatrix.BlocksDown());
  for (auto _ : state) {
    backend->RowSums(kMatrix, gradient, /*workspace=*/nullptr, absl::MakeSpan(sums));
    benchmark::ClobberMemory();
  }
  Report(state, kMatrix.elements, 4);
}

// Of elements only those with an entry move; of frequencies every element of the block does.
void ApplyDeltas(benchmark::State& state, const BackendFactory& make, bool as_dct) {
  const std::unique_ptr<Backend> backend = make();
  const Votes votes = RandomVotes(kBlocks.count, static_cast<int>(state.range(0)));
  DeltaResult result = {.offsets = votes.offsets,
                        .positions = votes.positions,
                        .signs = {votes.values.begin(), votes.values.end()},
                        .levels = {},
                        .codes = std::vector<uint8_t>(kBlocks.count, 90)};
  for (size_t i = 0; i < result.positions.size(); ++i)
    result.levels.push_back(static_cast<uint8_t>(i % kLevels));
  std::vector<float> parameters = RandomFloats(2, kMatrix.elements);
  uint32_t invalid = kAllBlocksValid;
  for (auto _ : state) {
    backend->ApplyDeltas(kMatrix, kBlocks, {.alpha = 1, .as_dct = as_dct}, ViewOf(result, kBlocks),
                         absl::MakeSpan(parameters), &invalid);
  }
  if (invalid != kAllBlocksValid) state.SkipWithError("ApplyDeltas failed");
  Report(state, kMatrix.elements, 8);
}

void RegisterBackend(const std::string& name, const BackendFactory& make) {
  const auto add = [&](const char* operation, auto body) {
    return benchmark::RegisterBenchmark(
               (operation + ("/" + name)).c_str(),
               [body, make](benchmark::State& state) { body(state, make); })
        ->Unit(benchmark::kMillisecond);
  };
  add("Compress", Compress)->ArgName("k")->Arg(4)->Arg(32);
  add("Feedback", Feedback)->ArgName("k")->Arg(4)->Arg(32);
  add("Apply", Apply)->ArgName("votes")->Arg(16)->Arg(128)->Arg(1024);
  for (const bool as_dct : {false, true}) {
    add(as_dct ? "ApplyDeltas/dct" : "ApplyDeltas/elements",
        [=](benchmark::State& state, const BackendFactory& factory) {
          ApplyDeltas(state, factory, as_dct);
        })
        ->ArgName("entries")
        ->Arg(32)
        ->Arg(256);
  }
  add("Lookahead", Lookahead);
  add("StateHash", StateHash);
  add("RowSums", RowSums);
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  distro::bench::RegisterBackend("reference", distro::MakeReferenceBackend);
  for (const distro::VectorKernels& kernels : distro::SupportedVectorKernels()) {
    distro::bench::RegisterBackend(kernels.name,
                                   [kernels] { return distro::MakeVectorBackend(kernels); });
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
