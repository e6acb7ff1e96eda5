// For tests that run a tiny model's units on two ranks, in every strategy.
//
//   using MyTest = testing::EveryStrategyTest;
//   INSTANTIATE_TEST_SUITE_P(Strategies, MyTest, MyTest::Strategies(), MyTest::NameOf);
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/fsdp/unit_driver.h"

namespace distro::worker::testing {

class EveryStrategyTest : public ::testing::TestWithParam<FsdpOptions> {
 public:
  static auto Strategies() {
    return ::testing::Values(FsdpOptions{.sharding = Sharding::kFullShard, .prefetch_units = 2},
                             FsdpOptions{.sharding = Sharding::kShardGradOp},
                             FsdpOptions{.sharding = Sharding::kNoShard});
  }
  static std::string NameOf(const ::testing::TestParamInfo<FsdpOptions>& strategy) {
    return std::string(Name(strategy.param.sharding));
  }

 protected:
  static constexpr int kRanks = 2;

  // Of a driver on a rank; borrows the fixture and the communicator.
  UnitDriver::Dependencies DependenciesOf(int rank, Communicator& communicator) {
    return {.model = tiny_.model.get(),
            .shards = &shards_,
            .whole = &whole_,
            .communicator = &communicator,
            .memory = &memory_[rank]};
  }

 private:
  std::vector<std::vector<int>> Units() const {
    return UnitTensors(Decoder(config_), tiny_.layout.manifest());
  }

  const DecoderConfig config_ = TinyConfig();
  const TinyModel tiny_{config_};

 protected:
  const ShardPlan shards_ = ShardPlan::Create(tiny_.layout, Units(), kRanks).value();
  const ShardPlan whole_ = ShardPlan::Create(tiny_.layout, Units(), 1).value();
  std::vector<MemoryCounter> memory_{kRanks};
};

}  // namespace distro::worker::testing
