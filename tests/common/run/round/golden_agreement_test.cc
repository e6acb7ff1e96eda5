// Agreement of deltas against the runs of a second implementation (tests/golden/deltas).
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/method/deltas/update.h"
#include "common/run/round/agreement.h"
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
  // counts [W * W]
  void AddSegment(int64_t t, SegmentId segment, std::vector<AgreementCounts>* counts) const {
    const auto included =
        Row<uint8_t>("included", t * layout_.segments() + segment.value(), workers_);
    std::vector<DeltaUpdate> updates;
    std::vector<int64_t> workers;
    for (int64_t w = 0; w < workers_; ++w) {
      if (included[w] == 0) continue;
      updates.push_back(Sent(t, w, segment));
      workers.push_back(w);
    }
    const PairCounts pairs = Compare(updates, DeltaExtents(layout_, as_dct_, segment));
    for (size_t a = 0; a < workers.size(); ++a) {
      for (size_t b = 0; b < workers.size(); ++b) {
        if (a == b) continue;
        AgreementCounts& sum = (*counts)[workers[a] * workers_ + workers[b]];
        sum.agree += pairs.Of(a, b).agree;
        sum.disagree += pairs.Of(a, b).disagree;
      }
    }
  }

 private:
  static PairCounts Compare(const std::vector<DeltaUpdate>& updates,
                            const std::vector<BlockExtent>& extents) {
    PairCounts pairs(updates.size());
    std::vector<SentSigns> sent(updates.size());
    for (size_t block = 0; block < extents.size(); ++block) {
      for (size_t w = 0; w < updates.size(); ++w) {
        const size_t k = updates[w].k, first = block * k;
        sent[w] = {.positions = absl::MakeSpan(updates[w].positions).subspan(first, k),
                   .signs = absl::MakeSpan(updates[w].signs).subspan(first, k)};
      }
      pairs.AddBlock(extents[block], sent);
    }
    return pairs;
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, GoldenAgreementTest, ::testing::Values("k1", "k8", "k32", "dct"),
                         [](const auto& set) { return set.param; });

TEST_P(GoldenAgreementTest, CountsOfEveryPairAndRound) {
  const int64_t all = workers_ * workers_;
  uint64_t agree = 0, disagree = 0;
  for (int64_t t = 0; t < rounds_; ++t) {
    std::vector<AgreementCounts> counts(all);
    for (uint32_t s = 0; s < layout_.segments(); ++s) AddSegment(t, SegmentId(s), &counts);
    for (int64_t pair = 0; pair < all; ++pair) {
      EXPECT_EQ(counts[pair].agree, Row<uint32_t>("agree", t, all)[pair]) << t << " " << pair;
      EXPECT_EQ(counts[pair].disagree, Row<uint32_t>("disagree", t, all)[pair]) << t << " " << pair;
      agree += counts[pair].agree;
      disagree += counts[pair].disagree;
    }
  }
  EXPECT_GT(agree, 0);
  EXPECT_GT(disagree, 0);
}

}  // namespace
}  // namespace distro
