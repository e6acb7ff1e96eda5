// Bytes of a round on the wire: sent and received by each of W workers, for recorded votes of a
// training run and for synthetic ones. Prints one JSON object per line; wire.py makes the table.
//
//   wire_sizes --workers 32 --k 4 --keep 0,16,32,64
//       random votes without agreement
//   wire_sizes ... --hot 0.3 --positive 0.9
//       three of ten choices on positions that all know
//   wire_sizes ... --recorded FILE
//       votes that `convergence --record_votes FILE` wrote
//   wire_sizes ... --plain DIR
//       also writes the votes as plain numbers (plain_votes.h)
#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/wire/entropy.h"
#include "bench/wire/plain_votes.h"
#include "bench/wire/random_updates.h"
#include "common/base/file.h"
#include "common/base/process/command_line.h"
#include "common/base/status_macros.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/payload.h"

namespace distro {
namespace {

struct Options {
  int workers = 8;
  int k = 4;
  int blocks = 16384;
  double hot = 0;
  double positive = 0.5;
  std::string recorded;
  std::string keep = "0";
  std::string plain;
};

std::vector<Flag> Flags(Options* o) {
  return {{.name = "workers", .value = &o->workers, .help = "Workers."},
          {.name = "k",
           .value = &o->k,
           .help = "Coefficients that a worker sends of each block, 1 to 8."},
          {.name = "blocks", .value = &o->blocks, .help = "Blocks of the synthetic segment."},
          {.name = "hot",
           .value = &o->hot,
           .help = "Share of choices on positions that all synthetic workers know."},
          {.name = "positive", .value = &o->positive, .help = "Probability of a positive sign."},
          {.name = "recorded",
           .value = &o->recorded,
           .help = "File of recorded votes; empty: synthetic ones.",
           .takes = Takes::kFile},
          {.name = "keep",
           .value = &o->keep,
           .help = "Votes of a block that travel down, 0: all; one or several."},
          {.name = "plain",
           .value = &o->plain,
           .help = "Folder that receives the votes as plain numbers.",
           .takes = Takes::kFolder}};
}

absl::StatusOr<Votes> MakeVotes(const Options& options) {
  const std::string recorded = options.recorded;
  if (recorded.empty()) {
    return bench::RandomVotes(options.workers, options.k, options.blocks, 1,
                              {.hot = options.hot, .positive = options.positive});
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string plain, ReadFile(recorded));
  return ParsePlain(plain);
}

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

absl::Status Measure(const Options& options, const Votes& votes, int keep) {
  using Clock = std::chrono::steady_clock;
  const auto blocks = static_cast<uint32_t>(votes.blocks());
  const auto start = Clock::now();
  const std::string payload = EncodeVotes({}, votes);
  const auto encoded = Clock::now();
  DISTRO_RETURN_IF_ERROR(
      DecodeVotes(payload, {.layout_hash = 0, .round = {}, .segment = {}, .blocks = blocks, .k = 0})
          .status());
  const auto decoded = Clock::now();
  std::string plain;
  AppendPlain(votes, &plain);
  std::string file;
  if (const std::string folder = options.plain; !folder.empty()) {
    file = absl::StrCat(folder, "/votes-", keep);
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(file, plain));
  }
  absl::PrintF(
      "{\"keep\": %d, \"blocks\": %d, \"votes\": %d, \"sent\": %d, \"received\": %d, "
      "\"entropy_bytes\": %.1f, \"encode_seconds\": %.6f, \"decode_seconds\": %.6f, "
      "\"plain_bytes\": %d, \"plain\": \"%s\"}\n",
      keep, blocks, votes.values.size(), SignRecordUpdateBytes(blocks, options.k), payload.size(),
      bench::EntropyBits(votes) / 8, Seconds(encoded - start), Seconds(decoded - encoded),
      plain.size(), file);
  return absl::OkStatus();
}

absl::StatusOr<int> Main(const Options& options) {
  if (options.k < 1 || options.k > 8) return absl::InvalidArgumentError("--k: must be 1 to 8");
  DISTRO_ASSIGN_OR_RETURN(const Votes votes, MakeVotes(options));
  for (const absl::string_view part : absl::StrSplit(options.keep, ',')) {
    int keep = 0;
    if (!absl::SimpleAtoi(part, &keep) || keep < 0)
      return absl::InvalidArgumentError(absl::StrCat("--keep: '", part, "' is no number"));
    DISTRO_RETURN_IF_ERROR(
        Measure(options, keep == 0 ? votes : KeepTop(votes, keep, 1, RoundId(), 0), keep));
  }
  return 0;
}

}  // namespace
}  // namespace distro

int main(int argc, char** argv) {
  distro::Options options;
  return distro::RunProgram(
      {.name = "wire_sizes",
       .summary = "says how many bytes a round is on the wire, as JSON, an object a line.",
       .commands = {{.flags = distro::Flags(&options),
                     .help = R"(Examples:
  wire_sizes --workers 32 --k 4 --keep 0,16,32,64              random votes without agreement
  wire_sizes ... --hot 0.3 --positive 0.9                       three of ten choices on positions that all know
  wire_sizes ... --recorded FILE                                votes that convergence --record_votes FILE wrote
  wire_sizes ... --plain DIR                                    also writes the votes as plain numbers)",
                     .run = [&options] { return distro::Main(options); }}}},
      argc, argv);
}
