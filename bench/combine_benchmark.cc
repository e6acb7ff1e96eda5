// Combines a segment as the aggregator does after its last update: decode, sum, cut, encode. Of the
// report's layout with signs and K = 4, of 1024 blocks with deltas; random values, wall time. Items
// are the coefficients sent by all workers, in DecodeDeltas the entries of the result.
// Run: combine_benchmark
#include <memory>
#include <string>
#include <vector>

#include "bench/wire/random_deltas.h"
#include "bench/wire/random_updates.h"
#include "benchmark/benchmark.h"
#include "common/base/clock.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/rounds.h"
#include "common/method/methods.h"
#include "common/method/signs/payload.h"

namespace distro::server {
namespace {

constexpr int64_t kRows = 8192;  // of a matrix of 16384 blocks
constexpr int kKept = 4;

Layout OneSegment() {
  return *Layout::Create(*Manifest::Create({{"matrix", {kRows, kRows}}}), kDefaultSegmentBlocks);
}

std::vector<SharedBytes> Updates(const Layout& layout, int workers) {
  std::vector<SharedBytes> payloads;
  for (int worker = 0; worker < workers; ++worker) {
    payloads.push_back(std::make_shared<const std::string>(EncodeSignUpdate(
        {.layout_hash = layout.manifest().short_hash(), .round = {}, .segment = {}},
        bench::RandomUpdate(kKept, layout.SegmentBlocks(SegmentId()), worker))));
  }
  return payloads;
}

void BM_CombineSegment(benchmark::State& state) {
  const auto workers = static_cast<int>(state.range(0));
  const auto strongest = static_cast<int>(state.range(1));
  const auto threads = static_cast<int>(state.range(2));
  const auto layout = std::make_shared<const Layout>(OneSegment());
  std::vector<SentPayload> payloads;
  for (const SharedBytes& payload : Updates(*layout, workers)) payloads.push_back({payload});
  v1::RunConfig config;
  config.set_kept_per_block(kKept);
  if (strongest > 0) {
    config.set_download(v1::DOWNLOAD_MODE_TOP);
    config.set_kept_votes_per_block(strongest);
  }
  const auto method = *MethodOf(config).MakeRounds(config, layout, "");
  for (auto _ : state) {
    const auto result = method->Combine({}, payloads, threads, *Clock::Real());
    if (!result.ok()) return state.SkipWithError(result.status().ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * workers * kKept *
                          layout->SegmentBlocks(SegmentId()));
}
BENCHMARK(BM_CombineSegment)
    ->ArgNames({"workers", "strongest", "threads"})
    ->ArgsProduct({{8, 32, 128}, {0, 32}, {1, 2, 4}})
    ->UseRealTime();

// Deltas: a matrix of 1024 blocks, one thread.
class DeltaSegment {
 public:
  explicit DeltaSegment(int k) {
    v1::RunConfig config;
    config.set_kept_per_block(static_cast<uint32_t>(k));
    method_ = MakeDeltaRounds(config, layout_, {true});
  }

  int64_t blocks() const { return layout_->SegmentBlocks(SegmentId()); }
  const RoundMethod& method() const { return *method_; }
  PayloadExpectation Expected(int k) const { return ExpectPayload(*layout_, {}, {}, k); }
  SharedBytes Update(int k, int worker) const {
    return std::make_shared<const std::string>(EncodeDeltaUpdate(
        IdentifyPayload(*layout_, {}, {}), bench::RandomDelta(k, blocks(), worker)));
  }
  std::vector<SentPayload> Updates(int k, int workers) const {
    std::vector<SentPayload> payloads;
    for (int worker = 0; worker < workers; ++worker) payloads.push_back({Update(k, worker)});
    return payloads;
  }

 private:
  std::shared_ptr<const Layout> layout_ = std::make_shared<const Layout>(
      *Layout::Create(*Manifest::Create({{"matrix", {2048, 2048}}}), kDefaultSegmentBlocks));
  std::shared_ptr<const RoundMethod> method_;
};

void BM_CheckDeltaUpdate(benchmark::State& state) {
  const auto k = static_cast<int>(state.range(0));
  const DeltaSegment segment(k);
  const SharedBytes payload = segment.Update(k, 0);
  v1::StepParameters step;
  step.mutable_deltas()->set_caps("\xff");
  for (auto _ : state) {
    const absl::Status status = segment.method().CheckUpdate(*payload, {}, step);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * k * segment.blocks());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(payload->size()));
}
BENCHMARK(BM_CheckDeltaUpdate)->ArgName("K")->Arg(32)->Arg(128)->Arg(4096);

void BM_CombineDeltas(benchmark::State& state) {
  const auto workers = static_cast<int>(state.range(0)), k = static_cast<int>(state.range(1));
  const DeltaSegment segment(k);
  const std::vector<SentPayload> payloads = segment.Updates(k, workers);
  for (auto _ : state) {
    const auto result = segment.method().Combine({}, payloads, 1, *Clock::Real());
    if (!result.ok()) return state.SkipWithError(result.status().ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations() * workers * k * segment.blocks());
}
BENCHMARK(BM_CombineDeltas)
    ->ArgNames({"workers", "K"})
    ->ArgsProduct({{3, 8, 32}, {32, 128, 4096}})
    ->UseRealTime();

// At a worker.
void BM_DecodeDeltas(benchmark::State& state) {
  const auto workers = static_cast<int>(state.range(0)), k = static_cast<int>(state.range(1));
  const DeltaSegment segment(k);
  const SharedBytes result =
      segment.method().Combine({}, segment.Updates(k, workers), 1, *Clock::Real())->payload;
  int64_t entries = 0;
  for (auto _ : state) {
    const auto decoded = DecodeDeltaResult(*result, segment.Expected(k));
    if (!decoded.ok()) return state.SkipWithError(decoded.status().ToString().c_str());
    entries += static_cast<int64_t>(decoded->positions.size());
  }
  state.SetItemsProcessed(entries);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(result->size()));
}
BENCHMARK(BM_DecodeDeltas)
    ->ArgNames({"workers", "K"})
    ->ArgsProduct({{3, 8}, {128, 4096}})
    ->UseRealTime();

}  // namespace
}  // namespace distro::server

BENCHMARK_MAIN();
