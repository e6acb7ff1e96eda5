// The interface to a method (docs/methods.md): its keys in run.json, its part of a round's record,
// and the rounds of a run. common/method/methods.h finds the method of a run or of a record.
//
// Immutable and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/base/round_method.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Limit of a worker's steps in a round, in run.json and in records.
inline constexpr uint32_t kMaxLocalSteps = 1000;

// Limit of the scale_medians in a record: 1 + a code.
inline constexpr uint32_t kLargestScaleMedian = 256;

// n_w: the weight of an update of `steps` local steps in a round with `window` of them, 1 to
// kMaxStepsWeight. Requires 1 <= steps <= window.
inline constexpr int kMaxStepsWeight = 15;
constexpr int StepsWeight(int steps, int window) {
  const int weight = (2 * kMaxStepsWeight * steps + window) / (2 * window);
  return weight < 1 ? 1 : weight;
}

// Limits the weights of a round's members so that no sum of their updates overflows.
struct WeightLimit {
  uint64_t sum = 0;           // at most this
  uint64_t a_weight = 1;      // by this much the sum grows with each unit of weight
  absl::string_view message;  // of what exceeds it
};

class Method {
 public:
  virtual ~Method() = default;

  // Its name in run.json.
  virtual absl::string_view name() const = 0;

  // Sets the keys that are not set, if they depend on the method.
  virtual void FillDefaults(v1::RunConfig* config) const = 0;
  // InvalidArgument names the key, the value, the range and the remedy. Requires kept_per_block and
  // max_workers in the ranges of all methods.
  virtual absl::Status CheckKeys(const v1::RunConfig& config) const = 0;
  // The method's name and its most important keys, for people. `config` is complete.
  virtual std::string Describe(const v1::RunConfig& config) const = 0;

  // InvalidArgument names the first field that a round of the method does not have, or a value
  // outside its range. Does not check clip_norm and kept_per_block, which all methods have.
  virtual absl::Status CheckStep(const v1::StepParameters& step, const Layout& layout) const = 0;
  // The parameters of a step, for people. Requires parameters that CheckStep accepts.
  virtual std::string DescribeStep(const v1::StepParameters& step) const = 0;
  virtual WeightLimit MemberWeights(const v1::StepParameters& step) const = 0;
  // The number of scale_medians in a record.
  virtual size_t ScaleMedianCount(const Layout& layout) const = 0;
  // The largest scale that a worker may send of each tensor [tensors]; empty: there is no cap.
  virtual std::vector<double> Caps(const v1::StepParameters& step) const = 0;
  // The largest possible result of a segment of so many blocks, in bytes.
  virtual uint64_t MaxResultBytes(uint64_t blocks) const = 0;
  // What the method adds to a record's header, in bytes, at most. `config` is complete.
  virtual uint64_t HeaderBytes(const v1::RunConfig& config, const Layout& layout) const = 0;

  // True if an update counts in one round only, and only with the samples of its slot: samples that
  // no included update has read are assigned again. False if a worker keeps what was late for its
  // next update.
  virtual bool binds_updates_to_slots() const = 0;

  // The rounds of a run. `config` is complete. `model_config_json` is the run's. InvalidArgument:
  // this version does not support the model, or the layout is of another model.
  virtual absl::StatusOr<std::shared_ptr<const RoundMethod>> MakeRounds(
      const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
      absl::string_view model_config_json) const = 0;
};

}  // namespace distro
