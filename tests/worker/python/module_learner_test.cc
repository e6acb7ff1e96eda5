// The learner over a module's tensors against the rule that distro-worker has, with the same steps.
#include "worker/python/module_learner.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/replica/replica.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/rules/deltas/delta_rule.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using ::testing::Each;
using testing::kSmallLlama;

constexpr int kThreads = 3;

// Parameters of a module, as the layout has them, given in another order.
struct Module {
  explicit Module(const Layout& layout, at::ScalarType type = at::kFloat) {
    std::vector<std::string> names;
    std::vector<at::Tensor> given;
    for (const TensorSpec& spec : layout.manifest().tensors()) {
      tensors.push_back(at::zeros(spec.shape, type).requires_grad_());
      given.insert(given.begin(), tensors.back());
      names.insert(names.begin(), spec.name);
    }
    parts = std::make_unique<ModuleTensors>(*ModuleTensors::Create(names, given));
  }
  RunSpans Elements() const { return *parts->Elements(); }
  std::vector<at::Tensor> tensors;  // in the order of the manifest
  std::unique_ptr<ModuleTensors> parts;
};

void Copy(const RunSpans& from, const RunSpans& to) {
  for (size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i], to[i].begin());
}

std::vector<std::string> BytesOf(const std::vector<SharedBytes>& payloads) {
  std::vector<std::string> bytes;
  for (const SharedBytes& payload : payloads) bytes.push_back(*payload);
  return bytes;
}

class ModuleLearnerTest : public ::testing::Test {
 protected:
  ModuleLearnerTest() : program_thread_([this] { Serve(); }) { Load(); }
  ~ModuleLearnerTest() override {
    program_.End(absl::OkStatus());
    program_thread_.join();
  }

  // The program: stores its requests and answers each with success.
  void Serve() {
    while (true) {
      const std::optional<Request> request = program_.Wait(absl::Seconds(60));
      if (!request.has_value()) continue;
      if (request->kind == Request::Kind::kEnd) return;
      asked_.push_back(*request);
      EXPECT_TRUE(program_.Reply({.value = answer_}).ok());
    }
  }
  void Load() {
    const std::string path = folder_.File("snapshot");
    ASSERT_TRUE(WriteSnapshot(path, native_.layout, native_.parameters, {}).ok());
    ASSERT_TRUE(learner_.Load(path, RoundId(3), 77).ok());
  }
  UpdateRuleKind Rule() const {
    return LocalDeltas(
        native_.config, &native_.layout,
        MuonTensors({}, InnerTensors(native_.layout,
                                     UnitTensors(native_.model, native_.layout.manifest()))),
        LocalStepsBy::kCaller);
  }
  // The steps of a round, by the native worker's inner optimizer, which the module follows.
  void TakeSteps(ModuleLearner* learner, uint64_t seed) {
    ASSERT_TRUE(learner->BeginLocalSteps().ok());
    native_.TakeSteps(seed);
    learner->CountSteps(2);
    Copy(testing::SpansOf(&native_.x), *module_.parts->Elements());
  }
  std::vector<std::string> Compress(ModuleLearner* learner, RoundId round) {
    const auto payloads = learner->Compress(round, native_.step);
    EXPECT_TRUE(payloads.ok()) << payloads.status();
    return BytesOf(*payloads);
  }

  DeltaWorker native_{kSmallLlama, /*segment_blocks=*/3};
  DeltaWorker reference_{kSmallLlama, /*segment_blocks=*/3};  // whose error buffer is its own
  const testing::ScratchFolder folder_;
  Module module_{native_.layout};
  double answer_ = 1;
  std::vector<Request> asked_;  // read while nothing is asked
  HandOver program_;
  ModuleLearner learner_{&native_.layout, module_.parts.get(), Rule(), &program_, kThreads};
  std::thread program_thread_;
};

TEST_F(ModuleLearnerTest, IsTheReplicaOfASnapshot) {
  EXPECT_EQ(learner_.next_round(), RoundId(3));
  EXPECT_EQ(learner_.log_hash(), 77u);
  EXPECT_EQ(learner_.StateHash(), StateHashOnCpu(native_.layout, native_.parameters));
  for (const absl::Span<float> tensor : module_.Elements()) EXPECT_THAT(tensor, Each(0));
  ASSERT_TRUE(learner_.BeginLocalSteps().ok());
  for (const absl::Span<float> tensor : module_.Elements()) EXPECT_THAT(tensor, Each(0.125f));
}

TEST_F(ModuleLearnerTest, RefusesSnapshotOfOtherLayout) {
  const Layout other = testing::SmallLayout();
  ASSERT_TRUE(WriteSnapshot(folder_.File("other"), other, TensorBuffer(other), {}).ok());
  EXPECT_EQ(learner_.Load(folder_.File("other"), RoundId(9), 1).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(learner_.next_round(), RoundId(3));
  EXPECT_EQ(learner_.StateHash(), StateHashOnCpu(native_.layout, native_.parameters));
}

// Of a bf16 module what is stepped is its f32 masters, and what is sent comes of them.
TEST_F(ModuleLearnerTest, SendsStepsOfMasters) {
  Module module(native_.layout, at::kBFloat16);
  ModuleLearner learner(&native_.layout, module.parts.get(), Rule(), &program_, kThreads);
  ASSERT_TRUE(learner.Load(folder_.File("snapshot"), RoundId(3), 77).ok());
  ASSERT_TRUE(learner.BeginLocalSteps().ok());
  EXPECT_EQ(module.tensors[1].detach().to(at::kFloat).min().item<float>(), 0.125f);
  native_.TakeSteps(/*seed=*/8);
  learner.CountSteps(2);
  Copy(testing::SpansOf(&native_.x), *module.parts->Elements());
  ASSERT_TRUE(module.parts->ShowElements().ok());
  EXPECT_EQ(Compress(&learner, RoundId(3)), BytesOf(reference_.TakeRound(RoundId(3), /*seed=*/8)));
}

TEST_F(ModuleLearnerTest, NormsAreThoseOfTheWholeModule) {
  double squares = 0;
  for (size_t i = 0; i < module_.tensors.size(); ++i) {
    module_.tensors[i].mutable_grad() = at::zeros(module_.tensors[i].sizes()).fill_(i + 1.0);
    squares += static_cast<double>(module_.tensors[i].numel()) * (i + 1.0) * (i + 1.0);
  }
  EXPECT_NEAR(*learner_.GradientNorm(), std::sqrt(squares), 1e-6 * squares);
  module_.tensors[1].mutable_grad().data_ptr<float>()[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(*learner_.GradientNorm()));
}

// Two rounds, so that the error buffer of the first is in the second.
TEST_F(ModuleLearnerTest, SendsTheBytesOfAWorkerThatTookTheSameSteps) {
  for (const uint64_t round : {3, 4}) {
    TakeSteps(&learner_, /*seed=*/round);
    EXPECT_EQ(Compress(&learner_, RoundId(round)),
              BytesOf(reference_.TakeRound(RoundId(round), /*seed=*/round)));
    EXPECT_EQ(learner_.pending()->round, RoundId(round));
  }
  EXPECT_EQ(learner_.delta_readings()->inner_steps, 4u);
}

TEST_F(ModuleLearnerTest, StepsThatAreNotFiniteAreForgottenWithTheInnerOptimizer) {
  TakeSteps(&learner_, /*seed=*/1);
  module_.tensors[2].data_ptr<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Compress(&learner_, RoundId(3)).empty());
  EXPECT_FALSE(learner_.pending().has_value());
  EXPECT_EQ(asked_.back().kind, Request::Kind::kReset);
  EXPECT_EQ(*learner_.MomentumNorm(), 0);
}

TEST_F(ModuleLearnerTest, ScalesDownToDeltaClip) {
  UpdateRuleKind clipped = Rule();
  clipped.delta_clip = 0.5;
  ModuleLearner learner(&native_.layout, module_.parts.get(), clipped, &program_, kThreads);
  for (at::Tensor& tensor : module_.tensors) tensor.set_data(at::ones(tensor.sizes()));
  ASSERT_FALSE(Compress(&learner, RoundId(3)).empty());
  const double elements = static_cast<double>(native_.layout.elements());
  EXPECT_NEAR(module_.tensors[0].data_ptr<float>()[0], 0.5 / std::sqrt(elements), 1e-7);
}

TEST_F(ModuleLearnerTest, ContinuesInLaterProcess) {
  TakeSteps(&learner_, /*seed=*/1);
  const std::vector<std::string> sent = Compress(&learner_, RoundId(3));
  ASSERT_TRUE(learner_.KeepMore().ok());
  EXPECT_EQ(asked_.back().kind, Request::Kind::kSave);
  EXPECT_EQ(asked_.back().local_steps, 2u);
  const std::string path = folder_.File("state");
  {
    const auto kept = learner_.kept();
    ASSERT_TRUE(kept.ok());
    ASSERT_TRUE(WriteStateFile(path,
                               {.run_id = "r",
                                .worker = "w",
                                .epoch = EpochId(1),
                                .next_round = RoundId(3),
                                .local_steps = kept->local_steps},
                               kept->elements, *kept->optimizer)
                    .ok());
  }
  ModuleLearner restarted(&native_.layout, module_.parts.get(), Rule(), &program_, kThreads);
  ASSERT_TRUE(restarted.Load(folder_.File("snapshot"), RoundId(3), 77).ok());
  auto contents = StateReader::Open(path)->Read(native_.layout, restarted.rule());
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_TRUE(
      restarted.Restore(std::make_shared<const StateReader::Contents>(*std::move(contents))).ok());
  EXPECT_EQ(BytesOf(restarted.EncodePending()), sent);
  EXPECT_EQ(restarted.kept()->local_steps, 2u);
  EXPECT_EQ(*restarted.MomentumNorm(), *learner_.MomentumNorm());
}

TEST_F(ModuleLearnerTest, FailsIfStateIsNotKept) {
  answer_ = 0;
  EXPECT_EQ(learner_.KeepMore().code(), absl::StatusCode::kInternal);
}

TEST_F(ModuleLearnerTest, NamesChangedTensor) {
  module_.tensors[0].set_data(module_.tensors[0].to(at::kDouble));
  const absl::Status status = learner_.BeginLocalSteps();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(native_.layout.manifest().tensors()[0].name));
}

}  // namespace
}  // namespace distro::worker
