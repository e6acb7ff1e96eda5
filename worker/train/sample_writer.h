// Has the model that is being trained continue a prompt every so many rounds, for people: a line of
// the log, and of a file (docs/worker.md, "Samples"). What is drawn depends on the parameters
// alone, so that samples of different rounds can be compared; training's bits do not depend on it.
//
// Not thread-safe: one training thread. What it borrows outlives it.
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

// Of the file, and of the one before it.
inline constexpr uint64_t kMaxSampleFileBytes = 64 << 20;

class SampleWriter {
 public:
  struct Dependencies {
    Node* node;
    // The model sees so many tokens: those of a training sample, for which the memory was planned.
    int positions;
    int vocab_size;
    std::string file;  // gets a line of JSON a sample; empty: none does
    Log* log;
  };

  // Encodes the prompt. The statuses of Tokenizer.
  static absl::StatusOr<SampleWriter> Create(const SampleOptions& options, Dependencies deps);

  // Writes a sample where one is due with the parameters before `next_round` of `rounds`; once a
  // round. It is dropped when `goes_on` is not OK, which is asked before every token. What fails is
  // logged: training does not depend on it.
  void Observe(uint64_t next_round, uint64_t rounds, absl::FunctionRef<absl::Status()> goes_on);

 private:
  SampleWriter(const SampleOptions& options, Tokenizer tokenizer, std::vector<int32_t> prompt,
               Dependencies deps)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        prompt_(std::move(prompt)),
        deps_(std::move(deps)) {}
  bool IsDue(uint64_t round, uint64_t rounds) const;
  absl::StatusOr<std::string> Sample(absl::FunctionRef<absl::Status()> goes_on) const;
  absl::Status Append(uint64_t round, const std::string& text);

  SampleOptions options_;
  Tokenizer tokenizer_;
  std::vector<int32_t> prompt_;
  Dependencies deps_;
  std::optional<uint64_t> last_;     // round of the last sample
  std::unique_ptr<LineFile> lines_;  // from the first sample on
};

}  // namespace distro::worker
