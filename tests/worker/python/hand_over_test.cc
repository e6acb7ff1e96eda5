#include "worker/python/hand_over.h"

#include <thread>

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

// Asks on a thread of its own.
class Asking {
 public:
  Asking(HandOver* program, Request request)
      : thread_([this, program, request] { answer_ = program->Ask(request); }) {}
  absl::StatusOr<double> Answer() {
    thread_.join();
    return answer_;
  }

 private:
  absl::StatusOr<double> answer_ = absl::UnknownError("");
  std::thread thread_;
};

TEST(HandOverTest, ReturnsAnswer) {
  HandOver program;
  Asking asking(&program, {.kind = Request::Kind::kStep, .rate = 0.5f, .local_steps = 7});
  for (int look = 0; look < 2; ++look) {  // it stays until it is answered
    const std::optional<Request> request = program.Wait(kLong);
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->kind, Request::Kind::kStep);
    EXPECT_EQ(request->rate, 0.5f);
    EXPECT_EQ(request->local_steps, 7u);
  }
  ASSERT_TRUE(program.Answer(2.5).ok());
  EXPECT_EQ(*asking.Answer(), 2.5);
  EXPECT_FALSE(program.Wait(absl::ZeroDuration()).has_value());
}

TEST(HandOverTest, RefusesUnaskedAnswer) {
  HandOver program;
  EXPECT_EQ(program.Answer(1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HandOverTest, SavesStateOnceClosed) {
  HandOver program;
  Asking waits(&program, {.kind = Request::Kind::kGradient});
  ASSERT_TRUE(program.Wait(kLong).has_value());
  program.Close();
  EXPECT_TRUE(absl::IsCancelled(waits.Answer().status()));
  EXPECT_FALSE(program.Wait(absl::ZeroDuration()).has_value()) << "it is not asked any more";
  EXPECT_TRUE(absl::IsCancelled(program.Ask({.kind = Request::Kind::kGradient}).status()));

  Asking saves(&program, {.kind = Request::Kind::kSave});
  EXPECT_EQ(program.Wait(kLong)->kind, Request::Kind::kSave);
  ASSERT_TRUE(program.Answer(1).ok());
  EXPECT_EQ(*saves.Answer(), 1);
}

TEST(HandOverTest, CancelsWhenAbandoned) {
  HandOver program;
  Asking waits(&program, {.kind = Request::Kind::kSave});
  ASSERT_TRUE(program.Wait(kLong).has_value());
  program.Abandon();
  EXPECT_TRUE(absl::IsCancelled(waits.Answer().status()));
  EXPECT_TRUE(absl::IsCancelled(program.Ask({.kind = Request::Kind::kSave}).status()));
}

TEST(HandOverTest, KeepsEndStatus) {
  HandOver program;
  std::thread([&] { program.End(absl::DataLossError("why")); }).join();
  EXPECT_EQ(program.Wait(kLong)->kind, Request::Kind::kEnd);
  program.End(absl::OkStatus());
  EXPECT_EQ(program.Wait(kLong)->kind, Request::Kind::kEnd);
  EXPECT_EQ(program.end_status(), absl::DataLossError("why"));
}

}  // namespace
}  // namespace distro::worker
