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
  absl::StatusOr<Answer> Result() {
    thread_.join();
    return answer_;
  }

 private:
  absl::StatusOr<Answer> answer_ = absl::UnknownError("");
  std::thread thread_;
};

TEST(HandOverTest, ReturnsAnswer) {
  HandOver program;
  Asking asking(&program, {.kind = Request::Kind::kRound, .rates = {0.5f}, .local_steps = 7});
  for (int look = 0; look < 2; ++look) {  // it stays until it is answered
    const std::optional<Request> request = program.Wait(kLong);
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->kind, Request::Kind::kRound);
    EXPECT_EQ(request->rates, std::vector<float>{0.5f});
    EXPECT_EQ(request->local_steps, 7u);
  }
  ASSERT_TRUE(program.Reply({.value = 2.5, .steps = 3}).ok());
  const absl::StatusOr<Answer> answer = asking.Result();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->value, 2.5);
  EXPECT_EQ(answer->steps, 3);
  EXPECT_FALSE(program.Wait(absl::ZeroDuration()).has_value());
}

TEST(HandOverTest, RefusesUnaskedAnswer) {
  HandOver program;
  EXPECT_EQ(program.Reply({}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HandOverTest, SavesStateOnceClosed) {
  HandOver program;
  Asking waits(&program, {.kind = Request::Kind::kRound});
  ASSERT_TRUE(program.Wait(kLong).has_value());
  program.Close({});
  EXPECT_TRUE(absl::IsCancelled(waits.Result().status()));
  EXPECT_FALSE(program.Wait(absl::ZeroDuration()).has_value()) << "it is not asked any more";
  EXPECT_TRUE(absl::IsCancelled(program.Ask({.kind = Request::Kind::kRound}).status()));

  Asking saves(&program, {.kind = Request::Kind::kSave});
  EXPECT_EQ(program.Wait(kLong)->kind, Request::Kind::kSave);
  ASSERT_TRUE(program.Reply({.value = 1}).ok());
  EXPECT_EQ(saves.Result()->value, 1);
}

TEST(HandOverTest, TakesStepsSoFarOnceClosed) {
  struct Case {
    Request::Kind kind;
    Answer so_far;
    bool taken;
  };
  for (const Case& c : {Case{Request::Kind::kRound, {.value = 2, .steps = 2, .skipped = 1}, true},
                        Case{Request::Kind::kRound, {.value = 2, .steps = 2, .skipped = 2}, false},
                        Case{Request::Kind::kEvaluate, {.value = 2, .steps = 2}, false}}) {
    HandOver program;
    Asking waits(&program, {.kind = c.kind});
    ASSERT_TRUE(program.Wait(kLong).has_value());
    program.Close(c.so_far);
    const absl::StatusOr<Answer> answer = waits.Result();
    EXPECT_EQ(answer.ok(), c.taken);
    EXPECT_EQ(answer.value_or(Answer()).value, c.taken ? 2 : 0);
    EXPECT_TRUE(absl::IsCancelled(program.Ask({.kind = c.kind}).status())) << "the next one";
  }
}

TEST(HandOverTest, CancelsWhenAbandoned) {
  HandOver program;
  Asking waits(&program, {.kind = Request::Kind::kSave});
  ASSERT_TRUE(program.Wait(kLong).has_value());
  program.Abandon();
  EXPECT_TRUE(absl::IsCancelled(waits.Result().status()));
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
