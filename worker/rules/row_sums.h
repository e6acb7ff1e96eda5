// Computes the norm of data that a worker's ranks hold together: each rank sums the squares of its
// block rows. The bits of the result are independent of sharding.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/model/layout/layout.h"
#include "kernels/device.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// The sums of one rank. Not thread-safe; waits once per operation, as an UpdateRule.
class RowSums {
 public:
  explicit RowSums(RuleShard shard);

  // The sum of squares of each of the rank's block rows.
  //
  //   rows  f64 [block rows of the model, in manifest order]  out; only its own are written
  absl::Status Of(const RunSpans& elements, absl::Span<double> rows);
  // The same of a - b, which is written to `scratch`; if that is empty, some block rows at a time,
  // to memory of the call.
  absl::Status OfDifference(const RunSpans& a, const RunSpans& b, const RunSpans& scratch,
                            absl::Span<double> rows);

 private:
  // `enqueue` enqueues the sums of a run; its workspace is as large as any run's needs.
  using RunSums =
      absl::FunctionRef<absl::Status(size_t run, double* workspace, absl::Span<double> sums)>;
  absl::Status Sum(RunSums enqueue, absl::Span<double> rows);

  const RuleShard shard_;
  std::vector<int64_t> first_block_row_;  // [runs], among the block rows of the model
  TwinArray<double> sums_;                // of its own block rows, run after run
  DeviceBuffer workspace_;
};

// Block rows of a model.
int64_t BlockRows(const Layout& layout);

// ||x|| over the whole model, of all its rows' sums. Not finite when an element is not.
double NormOf(const Layout& layout, absl::Span<const double> rows);

}  // namespace distro::worker
