// Agreement of deltas against the runs of a second implementation (tests/golden/deltas).
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/round/agreement.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_deltas.h"

namespace distro {
namespace {

class GoldenAgreementTest : public ::testing::TestWithParam<std::string>,
                            public testing::GoldenDeltas {
 protected:
  GoldenAgreementTest() : GoldenDeltas(GetParam()) {}

  // The entries that worker w sent for the segment's blocks in round t.
  DeltaUpdate Sent(int64_t t, int64_t w, SegmentId segment) const {
    const int64_t row = (t * workers_ + w) * blocks_ + layout_.SegmentFirstBlock(segment);
    const int64_t blocks = layout_.SegmentBlocks(segment);
    const auto positions = data_.at("index").As<uint16_t>().subspan(row * k_, blocks * k_);
    const auto signs = data_.at("sign").As<int8_t>().subspan(row * k_, blocks * k_);
    DeltaUpdate update = {.k = k_,
                          .positions = {positions.begin(), positions.end()},
                          .signs = {signs.begin(), signs.end()},
                          .codes = {}};
    for (const int16_t code : data_.at("code").As<int16_t>().subspan(row, blocks))
      update.codes.push_back(static_cast<uint8_t>(code < 0 ? 0 : code));
    return update;
  }
  void AddSegment(int64_t t, SegmentId segment, std::vector<AgreementCounts>* counts) const {
    std::deque<DeltaUpdate> updates;
    std::vector<WeightedDelta> weighted;
    std::vector<int64_t> workers;
    const auto included =
        Row<uint8_t>("included", t * layout_.segments() + segment.value(), workers_);
    for (int64_t w = 0; w < workers_; ++w) {
      if (included[w] == 0) continue;
      updates.push_back(Sent(t, w, segment));
      weighted.push_back(
          {.update = &updates.back(), .weight = Row<uint8_t>("weight", t, workers_)[w]});
      workers.push_back(w);
    }
    const std::vector<AgreementCounts> of_segment =
        CompareDeltas(weighted, DeltaExtents(layout_, as_dct_, segment));
    for (size_t i = 0; i < workers.size(); ++i) {
      (*counts)[workers[i]].agree += of_segment[i].agree;
      (*counts)[workers[i]].disagree += of_segment[i].disagree;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, GoldenAgreementTest, ::testing::Values("k1", "k8", "k32", "dct"),
                         [](const auto& set) { return set.param; });

TEST_P(GoldenAgreementTest, CountsOfEveryWorkerAndRound) {
  uint64_t agree = 0, disagree = 0;
  for (int64_t t = 0; t < rounds_; ++t) {
    std::vector<AgreementCounts> counts(workers_);
    for (uint32_t s = 0; s < layout_.segments(); ++s) AddSegment(t, SegmentId(s), &counts);
    for (int64_t w = 0; w < workers_; ++w) {
      EXPECT_EQ(counts[w].agree, Row<uint32_t>("agree", t, workers_)[w]) << t << " " << w;
      EXPECT_EQ(counts[w].disagree, Row<uint32_t>("disagree", t, workers_)[w]) << t << " " << w;
      agree += counts[w].agree;
      disagree += counts[w].disagree;
    }
  }
  EXPECT_GT(agree, 0);
  EXPECT_GT(disagree, 0);
}

}  // namespace
}  // namespace distro
