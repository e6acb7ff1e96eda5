// The model configurations of examples/ are read, and have the sizes that examples/README.md gives
// them.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

struct Example {
  std::string folder;
  int64_t parameters;
  int64_t blocks;  // 64 x 64, padding counted
  uint32_t segments;
};

class ExampleConfigTest : public ::testing::TestWithParam<Example> {};

TEST_P(ExampleConfigTest, IsReadAndHasItsSize) {
  const std::string path =
      absl::StrCat(DISTRO_SOURCE_DIR, "/examples/", GetParam().folder, "/config.json");
  const absl::StatusOr<std::string> text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(*text);
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<Layout> layout =
      Layout::Create(*Manifest::Create((*model)->Tensors()), kDefaultSegmentBlocks);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->elements(), GetParam().parameters);
  EXPECT_EQ(layout->blocks(), GetParam().blocks);
  EXPECT_EQ(layout->segments(), GetParam().segments);
}

// llama_125m: 50257 rows of the embedding are 786 rows of blocks, so 9432 blocks; 12 layers of
// 1728; 25 norms of 1. llama_1b2: 294144 blocks without padding and 33 norms of 1.
INSTANTIATE_TEST_SUITE_P(All, ExampleConfigTest,
                         ::testing::Values(Example{"demo", 918656, 233, 1},
                                           Example{"llama_125m", 123551232, 30193, 2},
                                           Example{"llama_1b2", 1204881408, 294177, 18}),
                         [](const auto& test) { return test.param.folder; });

}  // namespace
}  // namespace distro
