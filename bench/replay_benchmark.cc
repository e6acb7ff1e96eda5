// Measures the cost of a round for a follower of the log: parameters per second of decoding, update
// and state hash, each alone and in Replica's single pass, and the floor, which reads and writes
// the same memory once. Everything is measured in one run, in turn; the best of --repeats counts.
// Rates per core are per second of processor time.
//
//   replay_benchmark --parameters 100000000 --threads 2
#include <cstdio>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/wire/random_updates.h"
#include "common/base/checksum.h"
#include "common/base/parallel.h"
#include "common/base/process/command_line.h"
#include "common/base/status_macros.h"
#include "common/method/signs/payload.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"

namespace distro {
namespace {

struct Options {
  int64_t parameters = 100'000'000;
  int workers = 32;
  int kept_per_block = 4;
  int threads = 2;
  int repeats = 5;
  std::string backend;
};

std::vector<Flag> Flags(Options* o) {
  return {
      {.name = "parameters",
       .value = &o->parameters,
       .help = "Parameters, at least; rounded up to whole tensors."},
      {.name = "workers", .value = &o->workers, .help = "Workers whose random votes a round sums."},
      {.name = "kept_per_block", .value = &o->kept_per_block, .help = "K."},
      {.name = "threads", .value = &o->threads, .help = "Most threads that are tried."},
      {.name = "repeats", .value = &o->repeats, .help = "Rounds that each figure is the best of."},
      {.name = "backend",
       .value = &o->backend,
       .help = "vector128, avx2 or avx512; empty: the fastest that this CPU has."}};
}

// Layers of the report's 1.2 B model, until there are enough parameters.
absl::StatusOr<Layout> MakeLayout(int64_t parameters) {
  std::vector<TensorSpec> tensors;
  for (int64_t made = 0, i = 0; made < parameters; ++i) {
    const int64_t rows = i % 7 < 4 ? 2048 : 8192;
    tensors.push_back({absl::StrFormat("t%04d", i), {rows, 2048}});
    made += rows * 2048;
  }
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(std::move(tensors)));
  return Layout::Create(std::move(manifest), kDefaultSegmentBlocks);
}

struct Timing {
  double wall = std::numeric_limits<double>::infinity();
  double processor = std::numeric_limits<double>::infinity();
};

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Function>
void Measure(Timing* best, const Function& function) {
  const absl::Time wall = absl::Now();
  const double processor = ProcessorSeconds();
  function();
  best->processor = std::min(best->processor, ProcessorSeconds() - processor);
  best->wall = std::min(best->wall, absl::ToDoubleSeconds(absl::Now() - wall));
}

class Replay {
 public:
  static absl::StatusOr<std::unique_ptr<Replay>> Create(const Options& options) {
    DISTRO_ASSIGN_OR_RETURN(Layout layout, MakeLayout(options.parameters));
    std::unique_ptr<Replay> replay(new Replay(options, std::move(layout)));
    DISTRO_RETURN_IF_ERROR(replay->ChooseKernels());
    replay->MakeVotes();
    DISTRO_RETURN_IF_ERROR(replay->MakeRounds());
    return replay;
  }

  absl::Status Run() {
    const int threads = options_.threads;
    std::vector<std::unique_ptr<Replica>> replicas;
    for (int t = 1; t <= threads; ++t) backends_.push_back(MakeVectorBackend(kernels_));
    for (int t = 1; t <= threads; ++t) {
      std::vector<Backend*> borrowed;
      for (int i = 0; i < t; ++i) borrowed.push_back(backends_[i].get());
      replicas.push_back(
          std::make_unique<Replica>(&layout_, borrowed, TensorBuffer(layout_), RoundId(0), 1));
    }
    TensorBuffer parameters(layout_);
    std::vector<Timing> whole(threads);
    Timing floor, decode, update, hash;
    for (const CommittedRound& round : rounds_) {
      Measure(&floor, [&] { Touch(&parameters); });
      Measure(&decode, [&] { Decode(round); });
      Measure(&update, [&] { Update(&parameters); });
      Measure(&hash, [&] { (void)StateHash(layout_, parameters, backends_[0].get()); });
      for (int t = 0; t < threads; ++t) {
        absl::Status status;
        Measure(&whole[t], [&] { status = replicas[t]->Apply(round); });
        DISTRO_RETURN_IF_ERROR(status);
      }
    }
    Print(floor, decode, update, hash, whole);
    return absl::OkStatus();
  }

 private:
  Replay(const Options& options, Layout layout) : options_(options), layout_(std::move(layout)) {}

  absl::Status ChooseKernels() {
    const std::string name = options_.backend;
    for (const VectorKernels& kernels : SupportedVectorKernels()) {
      kernels_ = kernels;
      if (kernels.name == name) return absl::OkStatus();
    }
    if (name.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--backend: this CPU has no " + name);
  }

  // All segments have the same votes, the last one fewer blocks, because making votes takes longer
  // than replaying them.
  void MakeVotes() {
    const int64_t blocks = std::min<int64_t>(layout_.blocks(), layout_.segment_blocks());
    votes_ = bench::RandomVotes(options_.workers, options_.kept_per_block, blocks, 1);
  }

  Votes SegmentVotes(SegmentId segment) const {
    Votes part = votes_;
    part.offsets.resize(layout_.SegmentBlocks(segment) + 1);
    part.positions.resize(part.offsets.back());
    part.values.resize(part.offsets.back());
    return part;
  }

  absl::Status MakeRounds() {
    uint64_t hash = 1;
    for (int t = 0; t < options_.repeats; ++t) {
      v1::RoundHeader header;
      std::vector<SharedBytes> payloads;
      FillHeader(t, hash, &header);
      for (uint32_t i = 0; i < layout_.segments(); ++i) {
        const PayloadIdentity identity = {layout_.manifest().short_hash(), RoundId(t),
                                          SegmentId(i)};
        payloads.push_back(
            std::make_shared<const std::string>(EncodeVotes(identity, SegmentVotes(SegmentId(i)))));
        v1::CommittedSegment* segment = header.add_segments();
        segment->set_payload_bytes(payloads.back()->size());
        segment->set_checksum(Xxh3(*payloads.back()));
      }
      DISTRO_ASSIGN_OR_RETURN(
          CommittedRound round,
          MakeCommittedRound(header.SerializeAsString(), std::move(payloads), layout_));
      hash = round.hash;
      rounds_.push_back(std::move(round));
    }
    return absl::OkStatus();
  }

  void FillHeader(uint64_t round, uint64_t predecessor, v1::RoundHeader* header) const {
    header->set_round(round);
    header->set_epoch(1);
    header->set_predecessor_hash(predecessor);
    header->mutable_step()->set_eta_bits(0x39d1b717);         // 4e-4
    header->mutable_step()->set_eta_lambda_bits(0x3827c5ac);  // 4e-5
    header->mutable_step()->set_clip_norm(1);
    header->mutable_step()->set_kept_per_block(options_.kept_per_block);
  }

  // Every parameter read and written once.
  static void Touch(TensorBuffer* parameters) {
    for (int i = 0; i < parameters->tensors(); ++i) {
      for (float& p : parameters->tensor(i)) p += 1e-3f;
    }
  }

  void Decode(const CommittedRound& round) const {
    for (uint32_t i = 0; i < layout_.segments(); ++i) {
      const SegmentId segment(i);
      (void)DecodeVotes(*round.payloads[i], ExpectPayload(layout_, round.round(), segment));
    }
  }

  void Update(TensorBuffer* parameters) {
    uint32_t invalid = kAllBlocksValid;
    for (uint32_t s = 0; s < layout_.segments(); ++s) {
      for (const BlockRun& run : layout_.SegmentRuns(SegmentId(s))) {
        const uint32_t begin = votes_.offsets[run.offset];
        const uint32_t entries = votes_.offsets[run.offset + run.blocks] - begin;
        const VotesView view = {
            absl::MakeConstSpan(votes_.offsets).subspan(run.offset, run.blocks + 1),
            absl::MakeConstSpan(votes_.positions).subspan(begin, entries),
            absl::MakeConstSpan(votes_.values).subspan(begin, entries)};
        backends_[0]->ApplyVotes(layout_.tensors()[run.tensor].matrix,
                                 {run.first_block, run.blocks}, {4e-4f, 4e-5f}, view,
                                 parameters->tensor(run.tensor), &invalid);
      }
    }
  }

  void PrintRow(const std::string& name, const Timing& timing, const Timing& floor) const {
    const double parameters = static_cast<double>(layout_.elements()) / 1e6;
    absl::PrintF("%-34s %9.0f M/s wall %9.0f M/s a core %6.2f x floor\n", name,
                 parameters / timing.wall, parameters / timing.processor,
                 timing.processor / floor.processor);
  }

  void Print(const Timing& floor, const Timing& decode, const Timing& update, const Timing& hash,
             const std::vector<Timing>& whole) const {
    uint64_t bytes = 0;
    for (const SharedBytes& payload : rounds_[0].payloads) bytes += payload->size();
    absl::PrintF("%d parameters, %d blocks, %d segments; %s; %.1f votes a block, %.2f MB a round\n",
                 layout_.elements(), layout_.blocks(), layout_.segments(), kernels_.name,
                 static_cast<double>(votes_.values.size()) / static_cast<double>(votes_.blocks()),
                 static_cast<double>(bytes) / 1e6);
    absl::PrintF("floor: 8 bytes a parameter at %.1f GB/s\n",
                 static_cast<double>(layout_.elements()) * 8e-9 / floor.processor);
    PrintRow("read and write the parameters", floor, floor);
    PrintRow("decode", decode, floor);
    PrintRow("update", update, floor);
    PrintRow("state hash, a pass of its own", hash, floor);
    for (size_t t = 0; t < whole.size(); ++t) {
      PrintRow(absl::StrFormat("a round, %d threads", t + 1), whole[t], floor);
    }
  }

  const Options options_;
  const Layout layout_;
  VectorKernels kernels_ = {};
  Votes votes_;
  std::vector<CommittedRound> rounds_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

absl::StatusOr<int> Main(const Options& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Replay> replay, Replay::Create(options));
  DISTRO_RETURN_IF_ERROR(replay->Run());
  return 0;
}

}  // namespace
}  // namespace distro

int main(int argc, char** argv) {
  distro::Options options;
  return distro::RunProgram({.name = "replay_benchmark",
                             .summary = "measures what a follower of the log pays for a round.",
                             .commands = {{.flags = distro::Flags(&options),
                                           .help = R"(Example:
  replay_benchmark --parameters 100000000 --threads 2)",
                                           .run = [&options] { return distro::Main(options); }}}},
                            argc, argv);
}
