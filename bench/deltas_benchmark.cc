// The operations of a deltas worker on its error buffer, on one thread, with signs' Compress and
// Feedback for comparison, and their floors: plain loops that move the same bytes. All arrays are
// larger than the caches, as a model's are. Muon's step is bound by arithmetic and has no such
// floor; its operations are counted. deltas_table.py makes the table, and assigns the floors.
// Encode, of the payloads, runs on several threads and is not in the table.
//
//   deltas_benchmark --benchmark_filter=AppendLargest
//
// items_per_second counts parameters.
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/kernel_inputs.h"
#include "bench/wire/random_deltas.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_compress.h"
#include "kernels/cpu/deltas_transform.h"
#include "worker/rules/deltas/inner_optimizer.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/optimizer.h"

namespace distro::bench {
namespace {

// 64 MiB an array: a matrix of the feed-forward part of a 1.2 B model.
constexpr MatrixShape kWide = {.rows = 4 * kSide, .cols = kSide, .elements = 4 * kSide * kSide};
constexpr BlockRange kWideBlocks = {.first = 0, .count = kWide.Blocks()};
constexpr uint8_t kAnyCode = 255;
constexpr int kWorkers = 8;  // whose updates make the result that comes back

using Body = std::function<void(benchmark::State&)>;

const VectorKernels& Fastest() { return SupportedVectorKernels().back(); }

std::vector<float> Elements(uint64_t seed) { return RandomFloats(seed, kWide.elements); }

void Add(const std::string& name, const Body& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond);
}

void AddWithK(const std::string& name, const std::vector<int64_t>& ks,
              const std::function<void(benchmark::State&, int k)>& body) {
  benchmark::internal::Benchmark* const added = benchmark::RegisterBenchmark(
      name.c_str(),
      [body](benchmark::State& state) { body(state, static_cast<int>(state.range(0))); });
  for (const int64_t k : ks) added->Arg(k);
  added->ArgName("k")->Unit(benchmark::kMillisecond);
}

void ReportWide(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kWide.elements);
}

// Fills the caches with other data, outside the measured time: for operations that touch so little
// memory that it would stay in the cache.
void EvictCaches(benchmark::State& state, const std::vector<float>& other) {
  state.PauseTiming();
  float sum = 0;
  for (size_t i = 0; i < other.size(); i += 16) sum += other[i];
  benchmark::DoNotOptimize(sum);
  state.ResumeTiming();
}

// Bytes per parameter: 4, one array is read; 8, one is read and written; 12 and 16, one and two
// more are read. Integers, so that the compiler may reorder the additions.
void Floor(benchmark::State& state) {
  const int64_t bytes = state.range(0);
  const std::vector<uint32_t> first(kWide.elements, 1), second(kWide.elements, 2);
  std::vector<uint32_t> out(kWide.elements, 3);
  const auto each = [&](auto work) {
    for (size_t i = 0; i < out.size(); ++i) work(i);
  };
  for (auto _ : state) {
    uint32_t sum = 0;
    if (bytes == 4) each([&](size_t i) { sum += out[i]; });
    if (bytes == 8) each([&](size_t i) { out[i] += 5; });
    if (bytes == 12) each([&](size_t i) { out[i] += first[i]; });
    if (bytes == 16) each([&](size_t i) { out[i] += first[i] - second[i]; });
    benchmark::DoNotOptimize(sum);
    benchmark::ClobberMemory();
  }
  ReportWide(state);
  state.SetBytesProcessed(state.iterations() * kWide.elements * bytes);
}

// K elements of each block, at positions as in an update, each read and written.
void ScatteredFloor(benchmark::State& state, int k) {
  const DeltaUpdate update = RandomDelta(k, kWideBlocks.count, 1);
  std::vector<uint32_t> elements;
  for (int64_t b = 0; b < kWideBlocks.count; ++b) {
    const int64_t corner =
        b / kWide.BlocksAcross() * kBlockSide * kSide + b % kWide.BlocksAcross() * kBlockSide;
    for (const uint16_t position : update.PositionsOf(b)) {
      elements.push_back(
          static_cast<uint32_t>(corner + position / kBlockSide * kSide + position % kBlockSide));
    }
  }
  const std::vector<float> other = Elements(2);
  std::vector<float> e = Elements(1);
  for (auto _ : state) {
    EvictCaches(state, other);
    for (const uint32_t i : elements) e[i] -= 1e-6f;
    benchmark::ClobberMemory();
  }
  ReportWide(state);
}

void SignsCompress(benchmark::State& state, int k) {
  const std::unique_ptr<Backend> backend = MakeVectorBackend(Fastest());
  const std::vector<float> gradient = Elements(1);
  std::vector<float> momentum = Elements(2);
  std::vector<uint16_t> positions(kWideBlocks.count * k);
  std::vector<float> values(kWideBlocks.count * k);
  for (auto _ : state) {
    backend->CompressSigns({.beta = 0.999f, .eta = 4e-4f, .gradient_scale = 0.5f, .k = k},
                           {{.matrix = kWide,
                             .blocks = kWideBlocks,
                             .gradient = gradient,
                             .momentum = absl::MakeSpan(momentum),
                             .positions = absl::MakeSpan(positions),
                             .values = absl::MakeSpan(values)}});
  }
  ReportWide(state);
}

void SignsFeedback(benchmark::State& state, int k) {
  const std::unique_ptr<Backend> backend = MakeVectorBackend(Fastest());
  const SignUpdate update = RandomUpdate(k, kWideBlocks.count, 1);
  const std::vector<float> values = RandomFloats(3, update.positions.size());
  std::vector<float> momentum = Elements(2);
  for (auto _ : state)
    backend->FeedbackSigns(kWide, kWideBlocks, k, update.positions, values,
                           absl::MakeSpan(momentum));
  ReportWide(state);
}

void IsFinite(benchmark::State& state) {
  const std::vector<float> begin = Elements(1), x = Elements(2), e = Elements(3);
  for (auto _ : state) benchmark::DoNotOptimize(DeltaIsFinite(0.8f, begin, x, e));
  ReportWide(state);
}

void Form(benchmark::State& state) {
  const std::vector<float> begin = Elements(1), x = Elements(2);
  std::vector<float> e = Elements(3);
  for (auto _ : state) {
    FormDelta(0.8f, begin, x, absl::MakeSpan(e));
    benchmark::ClobberMemory();
  }
  ReportWide(state);
}

void AppendLargestOf(benchmark::State& state, int k, bool as_dct) {
  const std::vector<float> a = Elements(1);
  DeltaTransform transform;
  for (auto _ : state) {
    DeltaUpdate update{.k = k, .positions = {}, .signs = {}, .codes = {}};
    if (as_dct)
      transform.AppendLargest(kWide, a, kAnyCode, &update);
    else
      AppendLargest(kWide, a, kAnyCode, &update);
    benchmark::DoNotOptimize(update.codes.data());
  }
  ReportWide(state);
}

// The returned part for the first of eight workers without agreement: all positions except those at
// which another worker's value cancelled its own.
void Subtract(benchmark::State& state, int k, bool as_dct) {
  const DeltaResult result = RandomDeltaResult(kWorkers, k, kWideBlocks.count, /*seed=*/1);
  const DeltaUpdate update = RandomDelta(k, kWideBlocks.count, /*worker=*/1000);
  const DeltasView returned = ViewOf(result, kWideBlocks);
  const DeltaRecordsView sent = ViewOf(update, kWideBlocks);
  const std::vector<float> other = Elements(2);
  std::vector<float> e = Elements(1);
  DeltaTransform transform;
  for (auto _ : state) {
    EvictCaches(state, other);
    if (as_dct)
      transform.SubtractReturned(kWide, kWideBlocks, sent, returned, absl::MakeSpan(e));
    else
      SubtractReturned(kWide, kWideBlocks, sent, returned, absl::MakeSpan(e));
    benchmark::ClobberMemory();
  }
  ReportWide(state);
}

template <typename T>
std::string BytesOf(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// The payloads of a round of 1.2 B parameters, K = 32, in wall time: 18 segments, which threads
// share.
void Encode(benchmark::State& state) {
  constexpr int kKept = 32;
  constexpr MatrixShape kModel = {.rows = 18 * 8192, .cols = 8192, .elements = 18LL * 8192 * 8192};
  const Layout layout =
      *Layout::Create(*Manifest::Create({{.name = "matrix", .shape = {kModel.rows, kModel.cols}}}),
                      kDefaultSegmentBlocks);
  const worker::UpdateRuleKind kind = worker::LocalDeltas(
      v1::RunConfig(), &layout, std::vector<bool>{true}, worker::LocalStepsBy::kCaller);
  worker::PendingUpdate pending = {.round = RoundId(1), .k = kKept, .segments = {}};
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const DeltaUpdate update = RandomDelta(kKept, layout.SegmentBlocks(SegmentId(i)), i);
    pending.segments.push_back(
        {BytesOf(update.positions), BytesOf(update.signs), BytesOf(update.codes)});
  }
  const worker::HostBackends host;
  const worker::RuleShard shard = host.Of({.layout = &layout, .runs = worker::WholeRuns(layout)});
  // Without its error buffer, which is not read.
  const auto rule = kind.make(shard, {{absl::Span<float>()}});
  if (!rule->RestorePending(pending).ok()) return state.SkipWithError("pending");
  worker::Optimizer optimizer(&layout, &kind, {{.rule = rule.get(), .runs = shard.runs}});
  optimizer.SetPending({.round = pending.round, .k = kKept});
  for (auto _ : state) benchmark::DoNotOptimize(optimizer.Encode(static_cast<int>(state.range(0))));
  state.SetItemsProcessed(state.iterations() * kModel.elements);
}

// Multiplications and additions of the Newton-Schulz products; A is symmetric, so half of it is
// computed.
void MuonStep(benchmark::State& state) {
  const worker::InnerSettings settings;
  std::vector<float> gradient = RandomFloats(3, kMatrix.elements);
  std::vector<float> buffer(kMatrix.elements), x = RandomFloats(2, kMatrix.elements);
  const Layout layout = *Layout::Create(
      *Manifest::Create({{.name = "matrix", .shape = {kMatrix.rows, kMatrix.cols}}}),
      kDefaultSegmentBlocks);
  const worker::HostBackends host;
  worker::InnerOptimizer inner(settings, {{.matrix = kMatrix, .decays = true, .inside = true}},
                               host.Of({.layout = &layout, .runs = worker::WholeRuns(layout)}),
                               {absl::MakeSpan(buffer)}, {absl::Span<float>()});
  for (auto _ : state) {
    const absl::Status alone =
        inner.Step(1e-4f, 1, {absl::MakeSpan(gradient)}, {absl::MakeSpan(x)});
    benchmark::DoNotOptimize(alone.ok());
  }
  state.SetItemsProcessed(state.iterations() * kMatrix.elements);
  const double product = 2.0 * kSide * kSide * kSide;
  state.counters["flops"] = benchmark::Counter(
      settings.newton_schulz * 2 * product,  // halves of A and A A, and one whole
      benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterFloors() {
  benchmark::RegisterBenchmark("Floor", Floor)
      ->ArgName("bytes")
      ->Arg(4)
      ->Arg(8)
      ->Arg(12)
      ->Arg(16)
      ->Unit(benchmark::kMillisecond);
  AddWithK("ScatteredFloor", {32, 128}, ScatteredFloor);
}

void RegisterOperations() {
  AddWithK("signs, Compress", {4, 32}, SignsCompress);
  AddWithK("signs, Feedback", {4, 32}, SignsFeedback);
  Add("DeltaIsFinite", IsFinite);
  Add("FormDelta", Form);
  for (const bool as_dct : {false, true}) {
    const std::string form = as_dct ? ", DCT" : ", elements";
    AddWithK("AppendLargest" + form, {32, 128},
             [=](benchmark::State& state, int k) { AppendLargestOf(state, k, as_dct); });
    AddWithK("SubtractReturned" + form, {32, 128},
             [=](benchmark::State& state, int k) { Subtract(state, k, as_dct); });
  }
  benchmark::RegisterBenchmark("Encode", Encode)
      ->ArgName("threads")
      ->RangeMultiplier(2)
      ->Range(1, 16)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  Add("Muon", MuonStep);
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  distro::bench::RegisterFloors();
  distro::bench::RegisterOperations();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
