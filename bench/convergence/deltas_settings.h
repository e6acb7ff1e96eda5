// The settings of a run of the deltas method in the lab (docs/algorithm.md, "Deltas"), read from
// JSON: the method's own settings, faults of its workers, and variants that the real system does
// not have. Names, meanings and defaults are documented only here; unknown names are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"
#include "worker/rules/deltas/inner_optimizer.h"

namespace distro::worker {

struct DeltasSettings {
  // The method.
  int window = 1;                   // H: inner steps a round
  int k = 32;                       // K
  double beta = 0.8;                // decay of the error buffer a round
  double beta_end = -1;             // beta goes there as the rate goes to 0; below 0: it stays
  double alpha = 1;                 // outer rate
  std::string divisor = "senders";  // or "all"
  double rho = 0;                   // C_min = ceil(N rho), rho to the nearest 256th
  double rho_end = -1;              // as beta_end
  int keep = 0;                     // K': entries per block of a result; 0: lossless
  int cap_growth = 2;               // codes from the median to the cap; 256: no caps
  int overlap = 0;                  // result t is applied after this many steps of round t + 1
  std::string inner = "muon";       // or "adamw"
  double mu = 0.95;
  double muon_scale = 0.2;
  int newton_schulz = 5;
  double beta1 = 0.9;
  double beta2 = 0.95;

  // Faults of workers.
  double miss = 0;                // probability that an update misses its round
  bool stateless = false;         // every round begins without error buffer and inner state
  std::vector<int> worker_steps;  // of each in a window; empty: all of them
  bool equal_weights = false;     // whatever the steps
  std::vector<int> first_round;   // of each worker; earlier it does nothing. Empty: 0 for all
  std::string attack;             // "cap", "random", "inverted", "inverted_cap", "drift": the same
                                  // positions and signs in every round, at the cap; or
                                  // "third_inverted_cap": every third block inverted, at the cap,
                                  // and nothing else that moves a parameter
  int attackers = 1;              // the last so many workers
  bool attack_together = false;   // they all send what the first of them does
  bool attack_pauses = false;     // they send empty records in odd rounds
  double attack_multiple = 1;     // "inverted": its codes, of the median of the largest scales
  bool quarantine = false;        // a worker that agreement suspects is not included any more
  int backwards = 0;              // the first so many workers read samples backwards: other data

  // Variants.
  std::string values = "bit";         // or "float", "two" (levels), "tensor" (one scale each)
  std::string transform = "muon";     // tensors sent as DCT: those that Muon steps;
                                      // or "none", or "all"
  int levels = 8;                     // of a result; 0: its means as they are
  double level_step = 0.5;            // log2 between two levels
  std::string feedback = "returned";  // or "cancelled" (that too), "included" (all that was sent)
  double nesterov = 0;                // momentum of the outer step
  double alpha_end = 1;               // factor of alpha over the last tenth of the rounds
  bool decay_in_update = false;       // weight decay at the replicas, exact, and none inside
  double slow = 0;                    // the inner optimizer gets (1 - slow) g + slow v, where
  double slow_decay = 0.98;           // v <- slow_decay v + (1 - slow_decay) g
  double slow_end = -1;               // as beta_end
  std::string slow_for = "all";       // or "muon": the tensors that it steps
  double norm_clip = 0;               // of a delta, in medians of the round's norms; 0: off
};

// InvalidArgument: not a JSON object, an unknown name, a value of another type or out of range.
absl::StatusOr<DeltasSettings> ParseDeltasSettings(absl::string_view json);

// A setting at a step of the run: `at_peak` until the end of warm-up, then the nearer to `at_zero`
// the lower the rate is. Below 0 `at_zero` is `at_peak`.
double WithRate(const v1::RunConfig& config, uint64_t step, double at_peak, double at_zero);

// Steps of a worker in a window of `window` steps.
int StepsOf(const DeltasSettings& settings, int worker, int window);
// The weight of its update with so many steps.
int WeightOf(const DeltasSettings& settings, int worker, int window);

InnerSettings InnerOf(const DeltasSettings& settings, double weight_decay);

// Whether the run uses no variant, apart from the choice of transformed tensors: all its arithmetic
// is that of common/method/deltas and kernels.
bool IsReal(const DeltasSettings& settings);

}  // namespace distro::worker
