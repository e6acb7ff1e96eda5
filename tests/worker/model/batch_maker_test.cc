#include "worker/model/batch_maker.h"

#include "gtest/gtest.h"
#include "tests/worker/model/observed_copies.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/model/units.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::MakeLlama;
using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;

class BatchMakerTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const Architecture> model_ = MakeLlama(TinyConfig());
  const std::vector<int32_t> tokens_ = RandomTokens(2 * 9, 40, 3);
};

TEST_F(BatchMakerTest, LabelsWithNextToken) {
  const Batch batch = BatchMaker(model_.get(), {}).Labelled({.tokens = tokens_, .sequences = 2});
  ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({2, 8}));
  ASSERT_EQ(batch.labels.sizes(), at::IntArrayRef({2, 8}));
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(batch.tokens[row][i].item<int64_t>(), tokens_[9 * row + i]);
      EXPECT_EQ(batch.labels[row][i].item<int64_t>(), tokens_[9 * row + i + 1]);
    }
  }
}

// Callers write the next tokens into the same memory while a device may still copy.
TEST_F(BatchMakerTest, CopiesTokens) {
  std::vector<int32_t> given = tokens_;
  const Batch batch = BatchMaker(model_.get(), {}).Unlabelled({.tokens = given, .sequences = 2});
  const at::Tensor before = batch.tokens.clone();
  given.assign(given.size(), 0);
  EXPECT_TRUE(batch.tokens.equal(before));
}

// Torch would convert on the CPU, into memory that is not pinned.
TEST_F(BatchMakerTest, SendsTokensUnconverted) {
  BatchMaker batches(model_.get(), {});
  const testing::ObservedCopies observed(
      {reinterpret_cast<const float*>(tokens_.data()), tokens_.size()});
  batches.Labelled({.tokens = tokens_, .sequences = 2});
  EXPECT_EQ(observed.copies(), 1);
  EXPECT_EQ(observed.conversions(), 0);
}

TEST_F(BatchMakerTest, TablesAreMadeOnceInTheUnitsType) {
  BatchMaker batches(model_.get(), {.type = at::kBFloat16});
  const Batch all = batches.Labelled({.tokens = tokens_, .sequences = 2});
  const Batch fewer =
      batches.Unlabelled({.tokens = absl::MakeConstSpan(tokens_).first(5), .sequences = 1});
  const std::vector<at::Tensor> tables = MakeTables(*model_, 8);
  ASSERT_EQ(all.tables.size(), tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    EXPECT_TRUE(all.tables[i].equal(tables[i].to(at::kBFloat16)));
    EXPECT_TRUE(fewer.tables[i].equal(all.tables[i].narrow(0, 0, 5)));
    EXPECT_EQ(fewer.tables[i].const_data_ptr(), all.tables[i].const_data_ptr());
  }
}

}  // namespace
}  // namespace distro::worker
