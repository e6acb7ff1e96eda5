// What every communicator does, whichever implementation it has: communicator_suite.cc has the
// tests, and a program with ranks of some kind instantiates them.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/fsdp/ranks.h"

namespace distro::worker::testing {

struct RanksOfAKind {
  std::string name;
  int ranks = 1;
  std::function<Communicators(int ranks, uint64_t seed)> make;
  std::function<at::Device(int rank)> device = [](int) { return at::Device(at::kCPU); };
  // Every test is repeated with this many seeds.
  uint64_t seeds = 1;
  // What else went wrong, after the communicators are gone.
  std::function<std::vector<std::string>()> failures = [] { return std::vector<std::string>(); };
};

inline std::ostream& operator<<(std::ostream& out, const RanksOfAKind& kind) {
  return out << kind.name << " " << kind.ranks;
}

class CommunicatorTest : public ::testing::TestWithParam<RanksOfAKind> {
 public:
  static std::string NameOf(const ::testing::TestParamInfo<RanksOfAKind>& kind) {
    return kind.param.name + std::to_string(kind.param.ranks);
  }

 protected:
  int ranks() const { return GetParam().ranks; }
  // Expects that the body is OK on every rank, and that nothing else went wrong.
  void Run(const std::function<absl::Status(int rank, Communicator& communicator)>& body);
  // Tensors on the rank's device.
  at::Tensor Filled(int rank, int64_t elements, double value, at::ScalarType type = at::kFloat);
  at::Tensor Range(int rank, int64_t begin, int64_t end);
};

}  // namespace distro::worker::testing
