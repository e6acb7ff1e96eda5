#include "tools/distroctl/plan_formulas.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace distro::tools {
namespace {

constexpr double kBlockElements = 4096;

double Log2Choose(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

}  // namespace

double GradientBytes(double parameters) { return 2 * parameters; }

double ReceivedFromAll(double bytes, int n) { return bytes * (n - 1); }

double RingAllReduceBytes(double bytes, int n) { return 2 * bytes * (n - 1) / n; }

double Zero3Bytes(double bytes, int n) { return 3 * bytes * (n - 1) / n; }

double EntropyBytes(double blocks, int votes) {
  return blocks * (Log2Choose(kBlockElements, votes) + votes) / 8;
}

double LosslessResultBytes(double blocks, int n, int k) {
  return EntropyBytes(blocks, static_cast<int>(std::min<int64_t>(int64_t{n} * k, 4096)));
}

double PipelineBubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace distro::tools
