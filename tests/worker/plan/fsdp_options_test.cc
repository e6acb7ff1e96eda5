#include "worker/plan/fsdp_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

void ExpectInvalid(const FsdpOptions& options, const std::string& what) {
  const absl::Status status = Validate(options, DeviceKind::kCpu);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(what));
}

TEST(FsdpOptionsTest, NamesAreReadAsTheyAreWritten) {
  for (const char* name : {"no_shard", "shard_optimizer", "shard_grad_op", "full_shard"}) {
    EXPECT_EQ(Name(ParseSharding(name).value()), name);
  }
  for (const char* name : {"f32", "bf16"}) EXPECT_EQ(Name(ParseFloatType(name).value()), name);
  for (const char* name : {"cpu", "cuda"}) EXPECT_EQ(Name(ParseDeviceKind(name).value()), name);
}

TEST(FsdpOptionsTest, RefusesUnknownName) {
  EXPECT_THAT(ParseSharding("zero3").status().message(), HasSubstr("'zero3' is none of no_shard"));
  EXPECT_THAT(ParseDeviceKind("tpu").status().message(), HasSubstr("'tpu' is none of cpu, cuda"));
  EXPECT_THAT(ParseFloatType("f16").status().message(), HasSubstr("'f16' is none of f32"));
}

TEST(FsdpOptionsTest, RefusesWhatCannotBe) {
  EXPECT_TRUE(Validate({}, DeviceKind::kCpu).ok());
  ExpectInvalid({.checkpoint_every = -1}, "--activation_checkpointing: -1");
  ExpectInvalid({.prefetch_units = -1}, "--prefetch_units: -1");
  for (const Sharding sharding : {Sharding::kShardGradOp, Sharding::kFullShard}) {
    ExpectInvalid({.sharding = sharding, .reduce_every_micro_batch = false},
                  "--reduce_every_micro_batch: ");
  }
  ExpectInvalid({.cpu_offload = true}, "--cpu_offload: ");
  EXPECT_TRUE(Validate({.cpu_offload = true}, DeviceKind::kCuda).ok());
}

}  // namespace
}  // namespace distro::worker
