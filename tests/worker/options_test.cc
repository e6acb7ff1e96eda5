#include "worker/options.h"

#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/client/options/invite.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

WorkerOptions Valid() {
  WorkerOptions options;
  options.channel.aggregator = "127.0.0.1:7700";
  options.data = "text.txt";
  options.channel.insecure = true;
  return options;
}

// Expects InvalidArgument that names the flag.
void ExpectRefused(const WorkerOptions& options, const std::string& flag) {
  const absl::Status status = options.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << flag;
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(flag + ":"));
}

TEST(WorkerOptionsTest, AcceptsWhatIsComplete) { EXPECT_TRUE(Valid().Validate().ok()); }

TEST(WorkerOptionsTest, TakesInvite) {
  const distro::testing::ScratchFolder folder;
  Invite invite = {.aggregator = "aggregator.example:7700",
                   .name = "w2",
                   .role = "worker",
                   .token = std::string(43, 't'),
                   .run = "demo",
                   .data_fingerprint = "data"};
  WorkerOptions invited;
  invited.channel.tls.invite = folder.File("invite");
  invited.data = "text.txt";
  const auto write = [&] {
    ASSERT_TRUE(WriteFileAtomically(invited.channel.tls.invite, InviteText(invite)).ok());
  };
  write();
  WorkerOptions options = invited;
  ASSERT_EQ(options.TakeInvite(absl::Now()), absl::OkStatus());
  EXPECT_EQ(options.Validate(), absl::OkStatus());
  EXPECT_EQ(options.channel.aggregator, "aggregator.example:7700");
  EXPECT_EQ(options.name, "w2");
  EXPECT_EQ(options.run, "demo");
  EXPECT_EQ(options.data_fingerprint, "data");
  options = invited;
  options.name = "w3";
  EXPECT_THAT(std::string(options.TakeInvite(absl::Now()).message()),
              ::testing::HasSubstr("--name: w3: the invite's token is that of w2"));
  invite.role = "archiver";
  write();
  options = invited;
  EXPECT_THAT(std::string(options.TakeInvite(absl::Now()).message()),
              ::testing::HasSubstr("is for the role archiver"));
}

TEST(WorkerOptionsTest, DefaultsToBf16OnGpu) {
  WorkerOptions options = Valid();
  EXPECT_EQ(options.ParamDtype(), FloatType::kF32);
  options.node.device = DeviceKind::kCuda;
  EXPECT_EQ(options.ParamDtype(), FloatType::kBf16);
  options.param_dtype = FloatType::kF32;
  EXPECT_EQ(options.ParamDtype(), FloatType::kF32);
}

TEST(WorkerOptionsTest, NamesTheFlagThatMustBeMended) {
  WorkerOptions options = Valid();
  options.channel.aggregator = "";
  ExpectRefused(options, "--aggregator");
  options = Valid();
  options.data = "";
  ExpectRefused(options, "--data");
  options = Valid();
  options.channel.insecure = false;
  ExpectRefused(options, "--invite, --token_file, or --cert and --key");
  options.channel.tls.token_file = "token";
  ExpectRefused(options, "--name");
  options.name = "w1";
  EXPECT_TRUE(options.Validate().ok());
  options.channel.insecure = true;
  ExpectRefused(options, "--insecure");
  options = Valid();
  options.name = "Upper";
  ExpectRefused(options, "--name");
  options = Valid();
  for (const int threads : {0, 1025}) {
    options.threads = threads;
    ExpectRefused(options, "--threads");
  }
  options = Valid();
  options.connect_timeout = -absl::Seconds(1);
  ExpectRefused(options, "--connect_timeout");
  options = Valid();
  options.mirrors = {"http://m", "none"};
  ExpectRefused(options, "--mirrors");
  options = Valid();
  options.micro_batch_samples = -2;
  ExpectRefused(options, "--micro_batch_samples");
  options = Valid();
  options.node.ranks = -1;
  ExpectRefused(options, "--ranks");
  options = Valid();
  options.node.fsdp.checkpoint_every = -1;
  ExpectRefused(options, "--activation_checkpointing");
  options = Valid();
  options.node.fsdp.prefetch_units = -1;
  ExpectRefused(options, "--prefetch_units");
  options = Valid();
  options.node.fsdp.reduce_every_micro_batch = false;
  EXPECT_TRUE(options.Validate().ok());
  options.node.fsdp.sharding = Sharding::kFullShard;
  ExpectRefused(options, "--reduce_every_micro_batch");
  options = Valid();
  options.node.fsdp.cpu_offload = true;
  ExpectRefused(options, "--cpu_offload");
  options.node.device = DeviceKind::kCuda;
  EXPECT_TRUE(options.Validate().ok());
  options = Valid();
  options.node.rank_timeout = absl::ZeroDuration();
  ExpectRefused(options, "--rank_timeout");
  options = Valid();
  options.checkpoint_interval_rounds = 5;
  ExpectRefused(options, "--checkpoint_interval_rounds");
}

}  // namespace
}  // namespace distro::worker
