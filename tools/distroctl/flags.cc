#include "tools/distroctl/flags.h"

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"

ABSL_FLAG(std::string, config, "", "init-model: config.json of the model, Hugging Face layout.");
ABSL_FLAG(std::string, out, "", "init-model: folder to write.");
ABSL_FLAG(uint64_t, seed, 0, "init-model: seed of the weights.");
ABSL_FLAG(std::string, run, "", "run create: run.json (docs/run_configuration.md).");
ABSL_FLAG(std::string, model, "",
          "run create: checkpoint folder with the initial model, Hugging Face layout.");
ABSL_FLAG(std::string, reason, "",
          "pause, evict: why, at most 200 bytes: in logs and lists, and for the evicted worker.");
ABSL_FLAG(std::string, data_dir, "", "log ...: data folder of an aggregator; only read.");
ABSL_FLAG(uint64_t, from, 0, "log ls: the first round.");
ABSL_FLAG(uint64_t, to, UINT64_MAX, "log ls: the round before which the list ends; default: all.");
ABSL_FLAG(bool, insecure, false,
          "Talk plaintext. Required for now: there is no TLS in this version.");

namespace distro::tools {
namespace {

constexpr char kUsage[] = R"(prepares runs and looks at them.

  distroctl init-model --config config.json --seed N --out DIR
      Writes random initial weights, the same on every machine.
  distroctl run create HOST:PORT --run run.json --model DIR --insecure
      Uploads a run and its initial model to an aggregator that has none; an interrupted upload is resumed.
  distroctl run show HOST:PORT --insecure
      Prints where the run stands.
  distroctl workers HOST:PORT --insecure
      Lists the workers: state and why, updates left on probation.
  distroctl pause HOST:PORT --reason TEXT --insecure
      The open round ends, no other opens until resume. Workers stay in session.
  distroctl resume HOST:PORT --insecure
      Rounds open again.
  distroctl evict NAME HOST:PORT --reason TEXT --insecure
      Nothing is accepted from the worker of this name until admit; it is told why, and ends.
  distroctl admit NAME HOST:PORT --insecure
      Ends a quarantine, by evict or by a rule: the worker of this name may join again.
  distroctl log ls --data_dir DIR [--from N] [--to N]
      A line for each round: members, bytes, chain hash, why it closed.
  distroctl log show [ROUND] --data_dir DIR
      The header of a round, or of the newest.
  distroctl log verify --data_dir DIR
      Verifies checksums, hash chain, snapshots and every result that is kept.
  distroctl log replay --data_dir DIR
      Applies the whole log to the initial model, verifies every byte of it, and compares the state hash of each round with
      what the workers reported. For all of `log` the aggregator may be running.

Exit codes: 0 done; 1 failure, or workers reported other hashes; 2 a flag, file or configuration must be mended; 3 the
aggregator refuses; 4 stored data is damaged.)";

}  // namespace

std::vector<std::string> ParseCommandLine(int argc, char** argv) {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "distroctl/flags.cc");
  };
  config.contains_helpshort_flags = config.contains_help_flags;
  config.version_string = [] { return absl::StrCat("distroctl ", Version(), "\n"); };
  absl::SetFlagsUsageConfig(config);
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  return std::vector<std::string>(arguments.begin() + 1, arguments.end());
}

InitModelOptions InitModelOptionsFromFlags() {
  return {.config = absl::GetFlag(FLAGS_config),
          .out = absl::GetFlag(FLAGS_out),
          .seed = absl::GetFlag(FLAGS_seed)};
}

CreateRunOptions CreateRunOptionsFromFlags() {
  return {.run = absl::GetFlag(FLAGS_run), .model = absl::GetFlag(FLAGS_model)};
}

std::string ReasonFromFlags() { return absl::GetFlag(FLAGS_reason); }

LogLsOptions LogLsOptionsFromFlags() {
  return {.data_dir = absl::GetFlag(FLAGS_data_dir),
          .from = absl::GetFlag(FLAGS_from),
          .to = absl::GetFlag(FLAGS_to)};
}

LogShowOptions LogShowOptionsFromFlags() {
  return {.data_dir = absl::GetFlag(FLAGS_data_dir), .round = std::nullopt};
}

LogVerifyOptions LogVerifyOptionsFromFlags() { return {.data_dir = absl::GetFlag(FLAGS_data_dir)}; }

ReplayLogOptions ReplayLogOptionsFromFlags() { return {.data_dir = absl::GetFlag(FLAGS_data_dir)}; }

ChannelOptions ChannelOptionsFromFlags(const std::string& url) {
  return {.aggregator = url, .insecure = absl::GetFlag(FLAGS_insecure)};
}

}  // namespace distro::tools
