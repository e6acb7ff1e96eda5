#include "common/method/deltas/muon_tensors.h"

#include "common/model/architecture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MuonTensorsTest : public ::testing::Test {
 protected:
  MuonTensorsTest() {
    config_.set_inner_optimizer(v1::INNER_OPTIMIZER_MUON);
    config_.set_workers(v1::WORKERS_PYTHON);
  }
  const Layout layout_ =
      *Layout::Create(*Manifest::Create({{"a", {8, 8}}, {"b", {8, 8}}}), /*segment_blocks=*/4);
  v1::RunConfig config_;
};

TEST_F(MuonTensorsTest, NeedsListInPythonRun) {
  EXPECT_THAT(*MuonTensorsOf(config_, layout_, R"({"distro_outside": ["a"]})"),
              ElementsAre(false, true));
  EXPECT_EQ(MuonTensorsOf(config_, layout_, "{}").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MuonTensorsTest, AdamWStepsAllAndNeedsNoList) {
  config_.set_inner_optimizer(v1::INNER_OPTIMIZER_ADAMW);
  EXPECT_THAT(*MuonTensorsOf(config_, layout_, "{}"), Each(false));
}

TEST_F(MuonTensorsTest, NamesKeyForUnknownModel) {
  config_.set_workers(v1::WORKERS_ANY);
  const absl::Status status =
      MuonTensorsOf(config_, layout_, R"({"model_type": "gpt2", "distro_outside": []})").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"workers\": \"python\""));
}

}  // namespace
}  // namespace distro
