#include "worker/python/module_workload.h"

#include "common/base/bitmap.h"
#include "common/base/reason.h"
#include "common/model/decoder/decoder.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

class ModuleWorkloadTest : public ::testing::Test {
 protected:
  ModuleWorkloadTest() {
    v1::RunConfig config;
    config.set_name("run");
    config.set_rounds(3);
    config.set_sequence_length(4);
    config.set_samples_per_worker(2);
    *run_.mutable_config() = *CompleteRunConfig(config);
    SetTensors(model_.Tensors());
    run_.set_model_config_json(model_.ConfigJson());
  }
  void SetTensors(const std::vector<TensorSpec>& tensors) {
    const Manifest manifest = *Manifest::Create(tensors);
    run_.set_manifest_hash(std::string(manifest.hash().begin(), manifest.hash().end()));
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters;
    for (const TensorSpec& tensor : tensors) {
      names.push_back(tensor.name);
      parameters.push_back(at::zeros(tensor.shape).requires_grad_());
    }
    module_ = std::make_unique<ModuleTensors>(*ModuleTensors::Create(names, parameters));
  }
  absl::Status Build() {
    workload_ = std::make_unique<ModuleWorkload>(
        ModuleWorkload::Options{
            .run_name = run_name_, .data_fingerprint = "data", .tokenizer = tokenizer_},
        module_.get(), &program_, &phases_);
    return workload_->Build(run_, companions_);
  }

  const Decoder model_{testing::kSmallLlama};
  v1::JoinResponse run_;
  std::string run_name_, tokenizer_;
  Companions companions_;
  HandOver program_;
  PhaseClock phases_{Clock::Real()};
  std::unique_ptr<ModuleTensors> module_;
  std::unique_ptr<ModuleWorkload> workload_;
};

// In a run that distro-worker takes part in, the same tensors travel as their DCT.
TEST_F(ModuleWorkloadTest, HasTheRuleOfTheRunsModel) {
  ASSERT_EQ(Build(), absl::OkStatus());
  const UpdateRuleKind native = RuleOf(run_.config(), &workload_->layout(), model_);
  EXPECT_EQ(workload_->learner()->rule().as_dct, native.as_dct);
  EXPECT_EQ(workload_->rule().as_dct, ToBitmap(native.needs_whole));
  EXPECT_EQ(workload_->learner()->rule().element_arrays, 1) << "the error buffer";
}

TEST_F(ModuleWorkloadTest, TakesRunOfPythonWorkers) {
  run_.mutable_config()->set_workers(v1::WORKERS_PYTHON);
  SetTensors({{"a.weight", {8, 8}}, {"b.weight", {8, 8}}, {"bias", {8}}});
  run_.set_model_config_json(R"({"distro_outside": ["b.weight"]})");
  ASSERT_EQ(Build(), absl::OkStatus());
  EXPECT_EQ(workload_->rule().as_dct, ToBitmap({true, false, false}));
}

TEST_F(ModuleWorkloadTest, RefusesRunWithAKeyOfANewerVersion) {
  v1::RunConfig& config = *run_.mutable_config();
  config.GetReflection()->MutableUnknownFields(&config)->AddVarint(4000, 1);
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "version") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not know key 4000 of the run"));
}

TEST_F(ModuleWorkloadTest, WithSignsThereIsNoInnerOptimizer) {
  run_.mutable_config()->set_method(v1::METHOD_SIGNS);
  ASSERT_EQ(Build(), absl::OkStatus());
  EXPECT_FALSE(workload_->learner()->rule().takes_local_steps);
  EXPECT_EQ(workload_->rule().as_dct, "");
}

TEST_F(ModuleWorkloadTest, OtherTensorsAreNamed) {
  std::vector<TensorSpec> tensors = model_.Tensors();
  const std::string hash = run_.manifest_hash();
  tensors[1].shape[0] += 1;
  SetTensors(tensors);
  run_.set_manifest_hash(hash);
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "other_model");
  EXPECT_THAT(std::string(status.message()), HasSubstr(tensors[1].name));
}

TEST_F(ModuleWorkloadTest, OtherTensorsOfAModuleThatOnlyPythonKnowsAreNamed) {
  SetTensors({{"a.weight", {8, 8}}, {"b.weight", {8, 4}}, {"bias", {8}}});
  run_.set_manifest_hash(std::string(32, 'x'));
  run_.set_model_config_json(R"({"distro_outside": []})");
  companions_ = {{"distro_module.json",
                  R"({"trained": {"a.weight": [8, 8], "b.weight": [4, 8], "scale": [1]}})"}};
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "other_model");
  for (const char* what : {"b.weight", "[4, 8]", "[8, 4]", "scale", "bias"})
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
}

// As it comes from an aggregator that lies: the module is refused all the same.
TEST_F(ModuleWorkloadTest, IgnoresBadDescription) {
  run_.set_manifest_hash(std::string(32, 'x'));
  companions_ = {{"distro_module.json", "{"}};
  EXPECT_EQ(ReasonOf(Build()), "other_model");
}

TEST_F(ModuleWorkloadTest, WithoutNamesTheSizesAreTold) {
  SetTensors({{"a.weight", {8, 8}}, {"bias", {8}}});
  run_.set_manifest_hash(std::string(32, 'x'));
  run_.set_model_config_json(R"({"distro_outside": []})");
  run_.mutable_snapshot()->set_size_bytes(4000);
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "other_model");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("2 tensors, a.weight the first, with 72 parameters; the run's, of which "
                        "nothing tells the names, has at most 1000:"));
}

TEST_F(ModuleWorkloadTest, LocalDataIsForOthers) {
  run_.mutable_config()->set_data(v1::DATA_LOCAL);
  EXPECT_EQ(ReasonOf(Build()), "other_data");
}

TEST_F(ModuleWorkloadTest, ChecksRunOfInvite) {
  run_name_ = "another";
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "other_run");
  EXPECT_THAT(std::string(status.message()), HasSubstr("is for run another"));
  run_name_ = "run";
  EXPECT_EQ(Build(), absl::OkStatus());
}

TEST_F(ModuleWorkloadTest, TellsTheAggregatorItsTokenizer) {
  tokenizer_ = std::string(64, 'a');
  ASSERT_EQ(Build(), absl::OkStatus());
  v1::JoinRequest request;
  workload_->Describe(&request);
  EXPECT_EQ(request.tokenizer(), tokenizer_);
  EXPECT_EQ(request.data_fingerprint(), "data");
}

TEST_F(ModuleWorkloadTest, RequiresPinnedTokenizer) {
  run_.mutable_config()->set_tokenizer_sha256(std::string(64, 'a'));
  const absl::Status status = Build();
  EXPECT_EQ(ReasonOf(status), "other_data");
  EXPECT_THAT(std::string(status.message()), HasSubstr("connect(tokenizer=...)"));
  tokenizer_ = std::string(64, 'a');
  EXPECT_EQ(Build(), absl::OkStatus());
}

}  // namespace
}  // namespace distro::worker
