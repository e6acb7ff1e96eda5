#include "tools/distroctl/flags.h"

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"

ABSL_FLAG(std::string, config, "", "init-model: config.json of the model, Hugging Face layout.");
ABSL_FLAG(std::string, out, "", "init-model, certs: folder to write.");
ABSL_FLAG(uint64_t, seed, 0, "init-model: seed of the weights.");
ABSL_FLAG(std::string, run, "", "run create: run.json (docs/run_configuration.md).");
ABSL_FLAG(std::string, model, "",
          "run create: checkpoint folder with the initial model, Hugging Face layout.");
ABSL_FLAG(std::string, reason, "",
          "pause, evict: why, at most 200 bytes: in logs and lists, and for the evicted worker.");
ABSL_FLAG(std::string, data_dir, "", "log ...: data folder of an aggregator; only read.");
ABSL_FLAG(uint64_t, from, 0, "log ls: the first round.");
ABSL_FLAG(uint64_t, to, UINT64_MAX, "log ls: the round before which the list ends; default: all.");
ABSL_FLAG(std::vector<std::string>, host, {},
          "certs: the aggregator's names and addresses, separated by commas.");
ABSL_FLAG(std::vector<std::string>, worker, {},
          "certs: workers that get a client certificate, separated by commas.");
ABSL_FLAG(std::string, role, "", "token new: worker, archiver, viewer or admin.");
ABSL_FLAG(std::string, tokens_file, "", "token revoke: the aggregator's tokens file.");
ABSL_FLAG(std::string, ca, "",
          "PEM file of the CAs of the aggregator's certificate; empty: the system's.");
ABSL_FLAG(std::string, cert, "", "PEM file of the own certificate, with --key (docs/security.md).");
ABSL_FLAG(std::string, key, "", "PEM file of the key of --cert.");
ABSL_FLAG(std::string, token_file, "",
          "File with the own token, read at each call; instead of --cert and --key.");
ABSL_FLAG(std::string, server_name, "",
          "Name that the aggregator's certificate has; empty: the address's host.");
ABSL_FLAG(bool, insecure, false,
          "Talk plaintext, which shows nobody who this is, instead of the five flags above.");

namespace distro::tools {
namespace {

constexpr char kUsage[] = R"(prepares runs and looks at them.

  distroctl init-model --config config.json --seed N --out DIR
      Writes random initial weights, the same on every machine.
  distroctl run create HOST:PORT --run run.json --model DIR
      Uploads a run and its initial model to an aggregator that has none; an interrupted upload is resumed.
  distroctl run show HOST:PORT
      Prints where the run stands.
  distroctl workers HOST:PORT
      Lists the workers: state and why, updates left on probation.
  distroctl pause HOST:PORT --reason TEXT
      The open round ends, no other opens until resume. Workers stay in session.
  distroctl resume HOST:PORT
      Rounds open again.
  distroctl evict NAME HOST:PORT --reason TEXT
      Nothing is accepted from the worker of this name until admit; it is told why, and ends.
  distroctl admit NAME HOST:PORT
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

  distroctl certs --out DIR --host HOST,... [--worker NAME,...]
      Makes a CA for development, and certificates of the aggregator, an admin and workers. Again: goes on with the CA.
  distroctl token new NAME --role ROLE
      Prints a new token, once, and its line for the aggregator's tokens file.
  distroctl token revoke NAME --tokens_file FILE
      Drops the tokens of a name from the file.

A command with HOST:PORT also wants --ca FILE and either --token_file FILE or --cert FILE --key FILE, or --insecure.

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

CertsOptions CertsOptionsFromFlags() {
  return {.out = absl::GetFlag(FLAGS_out),
          .hosts = absl::GetFlag(FLAGS_host),
          .workers = absl::GetFlag(FLAGS_worker)};
}

std::string RoleFromFlags() { return absl::GetFlag(FLAGS_role); }

std::string TokensFileFromFlags() { return absl::GetFlag(FLAGS_tokens_file); }

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
  return {.aggregator = url,
          .insecure = absl::GetFlag(FLAGS_insecure),
          .tls = {.ca = absl::GetFlag(FLAGS_ca),
                  .cert = absl::GetFlag(FLAGS_cert),
                  .key = absl::GetFlag(FLAGS_key),
                  .token_file = absl::GetFlag(FLAGS_token_file),
                  .server_name = absl::GetFlag(FLAGS_server_name)}};
}

}  // namespace distro::tools
