// Lets the model continue a prompt at intervals during training, and writes the text to the log and
// to a file (docs/worker.md, "Samples"). A sample depends only on the parameters, so samples of
// different rounds can be compared. It does not change the training.
//
// Not thread-safe: one training thread. Borrowed objects outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/line_file.h"
#include "common/base/log.h"
#include "worker/data/tokenizer.h"
#include "worker/node/node.h"
#include "worker/train/sample_options.h"

namespace distro::worker {

// Limit of the file, and of its predecessor.
inline constexpr uint64_t kMaxSampleFileBytes = 64 << 20;

class SampleWriter {
 public:
  struct Dependencies {
    Node* node;
    // The context in tokens: that of a training sample, for which the memory was planned.
    int positions;
    int vocab_size;
    std::string file;  // gets one JSON line per sample; empty: no file
    Log* log;
  };

  // Encodes the prompt and opens the file. The statuses of Tokenizer and of LineFile::Open.
  static absl::StatusOr<SampleWriter> Create(const SampleOptions& options, Dependencies deps);

  // Writes a sample, if one is due, with the parameters before `next_round` of `rounds`; at most
  // once per round. Calls `goes_on` before every token, and drops the sample if it is not OK. Logs
  // a failure, and training continues.
  void Observe(uint64_t next_round, uint64_t rounds, absl::FunctionRef<absl::Status()> goes_on);

 private:
  SampleWriter(const SampleOptions& options, Tokenizer tokenizer, std::vector<int32_t> prompt,
               Dependencies deps, std::unique_ptr<LineFile> lines)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        prompt_(std::move(prompt)),
        deps_(std::move(deps)),
        lines_(std::move(lines)) {}
  bool IsDue(uint64_t round, uint64_t rounds) const;
  absl::StatusOr<std::string> Sample(absl::FunctionRef<absl::Status()> goes_on) const;
  absl::Status Append(uint64_t round, const std::string& text);

  SampleOptions options_;
  Tokenizer tokenizer_;
  std::vector<int32_t> prompt_;
  Dependencies deps_;
  std::optional<uint64_t> last_;     // round of the last sample
  std::unique_ptr<LineFile> lines_;  // nullptr: no file
};

}  // namespace distro::worker
