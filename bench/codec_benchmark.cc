// The codecs on one segment: 4096 blocks of the default K = 4 (items are records, coefficients or
// votes; bytes are payload bytes). Run: codec_benchmark
#include "bench/wire/random_deltas.h"
#include "bench/wire/random_updates.h"
#include "benchmark/benchmark.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/payload.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/record_codec.h"
#include "common/method/signs/update_reader.h"

namespace distro {
namespace {

constexpr uint32_t kBlocks = 4096;
constexpr PayloadIdentity kIdentity = {};

PayloadExpectation Expect(int k) {
  return {.layout_hash = 0, .round = RoundId(), .segment = SegmentId(), .blocks = kBlocks, .k = k};
}

void BM_Rank(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const SignUpdate update = bench::RandomUpdate(k, kBlocks, 0);
  for (auto _ : state) {
    std::string body;
    EncodeRecords(update, &body);
    benchmark::DoNotOptimize(body.data());
  }
  state.SetItemsProcessed(state.iterations() * kBlocks);
}
BENCHMARK(BM_Rank)->ArgName("K")->Arg(1)->Arg(4)->Arg(8);

void BM_Unrank(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  std::string body;
  EncodeRecords(bench::RandomUpdate(k, kBlocks, 0), &body);
  std::vector<uint16_t> positions(size_t{kBlocks} * k);
  std::vector<int8_t> signs(size_t{kBlocks} * k);
  for (auto _ : state) {
    benchmark::DoNotOptimize(DecodeRecords(body, k, 0, kBlocks, positions.data(), signs.data()));
  }
  state.SetItemsProcessed(state.iterations() * kBlocks);
}
BENCHMARK(BM_Unrank)->ArgName("K")->Arg(1)->Arg(2)->Arg(3)->Arg(4)->Arg(5)->Arg(6)->Arg(8);

// The cost of a worker's payload at the aggregator: decode and add. Items are coefficients.
void BM_DecodeAccumulate(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const std::string bytes = EncodeSignUpdate(kIdentity, bench::RandomUpdate(k, kBlocks, 0));
  VoteAccumulator accumulator;
  for (auto _ : state) {
    SignUpdateReader reader = *SignUpdateReader::Create(bytes, Expect(k));
    absl::Span<const uint16_t> positions;
    absl::Span<const int8_t> signs;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (!reader.NextBlock(&positions, &signs).ok()) return state.SkipWithError("payload");
      accumulator.Add(positions, signs, 1);
    }
    benchmark::DoNotOptimize(accumulator);
  }
  state.SetItemsProcessed(state.iterations() * kBlocks * k);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_DecodeAccumulate)->ArgName("K")->Arg(4)->Arg(8)->Arg(32)->Arg(128);

void BM_EncodeSignUpdate(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const SignUpdate update = bench::RandomUpdate(k, kBlocks, 0);
  for (auto _ : state) benchmark::DoNotOptimize(EncodeSignUpdate(kIdentity, update));
  state.SetItemsProcessed(state.iterations() * kBlocks * k);
}
BENCHMARK(BM_EncodeSignUpdate)->ArgName("K")->Arg(4)->Arg(32);

// The result of a round. Items are votes.
void BM_EncodeVotes(benchmark::State& state) {
  const Votes votes = bench::RandomVotes(static_cast<int>(state.range(0)), 4, kBlocks, 1);
  size_t bytes = 0;
  for (auto _ : state) bytes = EncodeVotes(kIdentity, votes).size();
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(votes.values.size()));
  state.counters["bits_a_vote"] =
      8.0 * static_cast<double>(bytes) / static_cast<double>(votes.values.size());
}
BENCHMARK(BM_EncodeVotes)->ArgName("workers")->Arg(8)->Arg(32);

void BM_DecodeVotes(benchmark::State& state) {
  const Votes votes = bench::RandomVotes(static_cast<int>(state.range(0)), 4, kBlocks, 1);
  const std::string bytes = EncodeVotes(kIdentity, votes);
  for (auto _ : state) benchmark::DoNotOptimize(DecodeVotes(bytes, Expect(0)));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(votes.values.size()));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_DecodeVotes)->ArgName("workers")->Arg(8)->Arg(32);

// A whole segment of the report's layout, in wall time, because threads share its groups.
void BM_DecodeVotesTogether(benchmark::State& state) {
  constexpr uint32_t kSegmentBlocks = 16384;
  const std::string bytes = EncodeVotes(kIdentity, bench::RandomVotes(32, 4, kSegmentBlocks, 1));
  PayloadExpectation expected = Expect(0);
  expected.blocks = kSegmentBlocks;
  const int threads = static_cast<int>(state.range(0));
  int64_t votes = 0;
  for (auto _ : state) {
    const Votes decoded = *DecodeVotes(bytes, expected, threads);
    votes += static_cast<int64_t>(decoded.values.size());
  }
  state.SetItemsProcessed(votes);
}
BENCHMARK(BM_DecodeVotesTogether)->ArgName("threads")->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

// The floor of both: reads and writes the plain numbers once.
void BM_CopyVotes(benchmark::State& state) {
  const Votes votes = bench::RandomVotes(static_cast<int>(state.range(0)), 4, kBlocks, 1);
  Votes copy = votes;
  for (auto _ : state) {
    copy.positions = votes.positions;
    copy.values = votes.values;
    benchmark::DoNotOptimize(copy.positions.data());
    benchmark::DoNotOptimize(copy.values.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(votes.values.size()));
}
BENCHMARK(BM_CopyVotes)->ArgName("workers")->Arg(8)->Arg(32);

// Items are the coefficients that all workers sent.
void BM_CombineSignPayloads(benchmark::State& state) {
  const int workers = 32;
  const int k = static_cast<int>(state.range(0));
  std::vector<std::string> bytes;
  for (int worker = 0; worker < workers; ++worker) {
    bytes.push_back(EncodeSignUpdate(kIdentity, bench::RandomUpdate(k, kBlocks, worker)));
  }
  std::vector<WeightedSignPayload> payloads;
  for (const std::string& one : bytes) payloads.push_back({one, 1});
  for (auto _ : state) benchmark::DoNotOptimize(CombineSignPayloads(payloads, Expect(k)));
  state.SetItemsProcessed(state.iterations() * kBlocks * k * workers);
}
BENCHMARK(BM_CombineSignPayloads)->ArgName("K")->Arg(4)->Arg(16);

// The same for deltas. Items are coefficients, or entries of a result.
void BM_EncodeDeltaUpdate(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const DeltaUpdate update = bench::RandomDelta(k, kBlocks, 0);
  for (auto _ : state) benchmark::DoNotOptimize(EncodeDeltaUpdate(kIdentity, update));
  state.SetItemsProcessed(state.iterations() * kBlocks * k);
}
BENCHMARK(BM_EncodeDeltaUpdate)->ArgName("K")->Arg(4)->Arg(32);

// Of one worker, as at its arrival.
void BM_ValidateDeltaUpdate(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const std::string bytes = EncodeDeltaUpdate(kIdentity, bench::RandomDelta(k, kBlocks, 0));
  const std::vector<uint8_t> caps(kBlocks, kScaleCodes - 1);
  for (auto _ : state) benchmark::DoNotOptimize(ValidateDeltaUpdate(bytes, Expect(k), caps));
  state.SetItemsProcessed(state.iterations() * kBlocks * k);
}
BENCHMARK(BM_ValidateDeltaUpdate)->ArgName("K")->Arg(8)->Arg(32)->Arg(128);

void BM_CombineDeltaPayloads(benchmark::State& state) {
  const int workers = 32;
  const int k = static_cast<int>(state.range(0));
  std::vector<std::string> bytes;
  for (int worker = 0; worker < workers; ++worker)
    bytes.push_back(EncodeDeltaUpdate(kIdentity, bench::RandomDelta(k, kBlocks, worker)));
  std::vector<WeightedDeltaPayload> payloads;
  for (const std::string& one : bytes) payloads.push_back({.bytes = one, .weight = 1});
  const std::vector<BlockExtent> extents(kBlocks);
  const MeanRule rule = {.divisor = Divisor::kSenders, .weights = workers};
  for (auto _ : state) {
    DeltaBlock levels;
    SparseAccumulator accumulator(rule);
    const absl::Status status =
        VisitSentBlocks(payloads, Expect(k), {.first = 0, .count = kBlocks / kGroupBlocks},
                        [&](uint32_t block, absl::Span<const SparseSent> sent) {
                          accumulator.Combine(extents[block], sent, &levels);
                        });
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    benchmark::DoNotOptimize(levels.count);
  }
  state.SetItemsProcessed(state.iterations() * kBlocks * k * workers);
}
BENCHMARK(BM_CombineDeltaPayloads)->ArgName("K")->Arg(4)->Arg(8)->Arg(32);

void BM_EncodeDeltaResult(benchmark::State& state) {
  const DeltaResult result =
      bench::RandomDeltaResult(static_cast<int>(state.range(0)), 32, kBlocks, 1);
  for (auto _ : state) benchmark::DoNotOptimize(EncodeDeltaResult(kIdentity, result));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(result.positions.size()));
}
BENCHMARK(BM_EncodeDeltaResult)->ArgName("workers")->Arg(8)->Arg(32);

void BM_DecodeDeltaResult(benchmark::State& state) {
  const DeltaResult result =
      bench::RandomDeltaResult(static_cast<int>(state.range(0)), 32, kBlocks, 1);
  const std::string bytes = EncodeDeltaResult(kIdentity, result);
  for (auto _ : state) benchmark::DoNotOptimize(DecodeDeltaResult(bytes, Expect(0)));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(result.positions.size()));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_DecodeDeltaResult)->ArgName("workers")->Arg(8)->Arg(32);

}  // namespace
}  // namespace distro

BENCHMARK_MAIN();
