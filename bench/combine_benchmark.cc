// Combines a segment of the report's layout as the aggregator does after its last update: decode,
// sum, cut, encode. K = 4, random votes, wall time; items are the coefficients sent by all workers.
// Run: combine_benchmark
#include <memory>
#include <string>
#include <vector>

#include "bench/wire/random_updates.h"
#include "benchmark/benchmark.h"
#include "common/base/clock.h"
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

}  // namespace
}  // namespace distro::server

BENCHMARK_MAIN();
