// Bytes of a round on the wire: what each of W workers sends and receives, for votes that a training run left and for synthetic ones.
// Prints JSON, an object a line; wire.py makes the table of it.
//
//   wire_sizes --workers 32 --k 4 --keep 0,16,32,64              random votes, nobody agrees
//   wire_sizes ... --hot 0.3 --positive 0.9                       three of ten choices on positions that all know
//   wire_sizes ... --recorded FILE                                votes that `convergence --record_votes FILE` wrote
//   wire_sizes ... --plain DIR                                    also writes the votes as plain numbers (plain_votes.h)
#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/wire/plain_votes.h"
#include "bench/wire/random_updates.h"
#include "bench/wire/vote_entropy.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/update/combine.h"

ABSL_FLAG(int, workers, 8, "Workers.");
ABSL_FLAG(int, k, 4, "Coefficients that a worker sends of each block, 1 to 8.");
ABSL_FLAG(int, blocks, 16384, "Blocks of the synthetic segment.");
ABSL_FLAG(double, hot, 0, "Share of choices on positions that all synthetic workers know.");
ABSL_FLAG(double, positive, 0.5, "Probability of a positive sign.");
ABSL_FLAG(std::string, recorded, "", "File of recorded votes; empty: synthetic ones.");
ABSL_FLAG(std::string, keep, "0", "Votes of a block that travel down, 0: all; one or several.");
ABSL_FLAG(std::string, plain, "", "Folder that receives the votes as plain numbers.");

namespace distro {
namespace {

absl::StatusOr<Votes> MakeVotes() {
  const std::string recorded = absl::GetFlag(FLAGS_recorded);
  if (recorded.empty()) {
    return bench::RandomVotes(
        absl::GetFlag(FLAGS_workers), absl::GetFlag(FLAGS_k), absl::GetFlag(FLAGS_blocks), 1,
        {.hot = absl::GetFlag(FLAGS_hot), .positive = absl::GetFlag(FLAGS_positive)});
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string plain, ReadFile(recorded));
  return ParsePlain(plain);
}

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

absl::Status Measure(const Votes& votes, int keep) {
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
  if (const std::string folder = absl::GetFlag(FLAGS_plain); !folder.empty()) {
    file = absl::StrCat(folder, "/votes-", keep);
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(file, plain));
  }
  absl::PrintF(
      "{\"keep\": %d, \"blocks\": %d, \"votes\": %d, \"sent\": %d, \"received\": %d, "
      "\"entropy_bytes\": %.1f, \"encode_seconds\": %.6f, \"decode_seconds\": %.6f, "
      "\"plain_bytes\": %d, \"plain\": \"%s\"}\n",
      keep, blocks, votes.values.size(), RecordUpdatePayloadBytes(blocks, absl::GetFlag(FLAGS_k)),
      payload.size(), bench::EntropyBits(votes) / 8, Seconds(encoded - start),
      Seconds(decoded - encoded), plain.size(), file);
  return absl::OkStatus();
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_k) < 1 || absl::GetFlag(FLAGS_k) > 8)
    return absl::InvalidArgumentError("--k: must be 1 to 8");
  DISTRO_ASSIGN_OR_RETURN(const Votes votes, MakeVotes());
  for (const absl::string_view part : absl::StrSplit(absl::GetFlag(FLAGS_keep), ',')) {
    int keep = 0;
    if (!absl::SimpleAtoi(part, &keep) || keep < 0)
      return absl::InvalidArgumentError(absl::StrCat("--keep: '", part, "' is no number"));
    DISTRO_RETURN_IF_ERROR(
        Measure(keep == 0 ? votes : KeepTop(votes, keep, 1, RoundId(), 0), keep));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace distro

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = distro::Main();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
