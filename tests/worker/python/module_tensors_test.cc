#include "worker/python/module_tensors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

at::Tensor Parameter(at::IntArrayRef shape, double value = 0, at::ScalarType type = at::kFloat) {
  return at::zeros(shape, type).fill_(value).requires_grad_();
}

std::string Refusal(const at::Tensor& tensor) {
  const absl::Status status = ModuleTensors::Create({"layer.weight"}, {tensor}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ModuleTensorsTest, AreInTheOrderOfTheManifest) {
  const at::Tensor b = Parameter({2, 3}, 2), a = Parameter({4}, 1);
  auto module = ModuleTensors::Create({"b", "a"}, {b, a});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(module->manifest().tensors(),
              ElementsAre(TensorSpec{"a", {4}}, TensorSpec{"b", {2, 3}}));
  const auto elements = module->Elements();
  ASSERT_TRUE(elements.ok());
  EXPECT_THAT((*elements)[0], AllOf(::testing::SizeIs(4), Each(1)));
  EXPECT_THAT((*elements)[1], AllOf(::testing::SizeIs(6), Each(2)));
  EXPECT_EQ((*elements)[1].data(), b.data_ptr<float>()) << "the module's own memory";
}

TEST(ModuleTensorsTest, RefuseUntrainable) {
  EXPECT_THAT(Refusal(Parameter({2}, 0, at::kDouble)),
              AllOf(HasSubstr("\"layer.weight\": is Double"), HasSubstr("model.float()")));
  EXPECT_THAT(Refusal(at::zeros({2})), HasSubstr("requires_grad_()"));
  EXPECT_THAT(Refusal(at::empty({2}, at::TensorOptions(at::kMeta)).requires_grad_()),
              AllOf(HasSubstr("is on meta"), HasSubstr("model.to_empty(")));
}

TEST(ModuleTensorsTest, IncludeScalars) {
  const at::Tensor scale = Parameter({}, 2);
  auto module = ModuleTensors::Create({"scale"}, {scale});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(module->manifest().tensors(), ElementsAre(TensorSpec{"scale", {1}}));
  const auto elements = module->Elements();
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_EQ((*elements)[0].data(), scale.data_ptr<float>());
}

TEST(ModuleTensorsTest, TensorsAreNamedOnceAndThereIsOne) {
  const at::Tensor tensor = Parameter({2, 3});
  const auto twice = ModuleTensors::Create({"embed", "head"}, {tensor, tensor});
  EXPECT_THAT(std::string(twice.status().message()),
              AllOf(HasSubstr("\"head\""), HasSubstr("\"embed\""), HasSubstr("tied")));
  const auto same_name = ModuleTensors::Create({"a", "a"}, {Parameter({2}), Parameter({2})});
  EXPECT_EQ(same_name.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ModuleTensors::Create({}, {}).status().message()),
              HasSubstr("requires_grad_()"));
  EXPECT_EQ(ModuleTensors::Create({"a"}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ModuleTensorsTest, NoticeChange) {
  at::Tensor tensor = Parameter({2, 3});
  auto module = ModuleTensors::Create({"a"}, {tensor});
  tensor.set_data(at::ones({2, 3}));
  EXPECT_THAT((*module->Elements())[0], Each(1)) << "other memory is fine";
  tensor.set_data(at::ones({3, 3}));
  EXPECT_THAT(std::string(module->Elements().status().message()),
              AllOf(HasSubstr("[3, 3]"), HasSubstr("had [2, 3]")));
  tensor.set_data(at::ones({2, 3}, at::kDouble));
  EXPECT_THAT(std::string(module->Gradients().status().message()), HasSubstr("is Double"));
}

TEST(ModuleTensorsTest, UseFloatsAsMaster) {
  const at::Tensor tensor = Parameter({2, 3}, 1);
  auto module = ModuleTensors::Create({"a"}, {tensor});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE(module->masters()[0].is_same(tensor));
  ASSERT_TRUE(module->ShowElements().ok());
  ASSERT_TRUE(module->ReadElements().ok());
  EXPECT_EQ(*module->ClipGradients(1), 0);
  EXPECT_EQ(module->MemoryOf(0).module, 24);
  EXPECT_EQ(module->MemoryOf(0).master, 0);
  EXPECT_EQ(module->MemoryOf(0).host, 0);
  EXPECT_EQ(module->GradientBytes(), 24);
}

// 1 + 2^-10 is a float and no bf16.
TEST(ModuleTensorsTest, ShortFloatsHaveAMasterOfFloats) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const float fine = 1 + 0x1p-12f;
    const at::Tensor tensor = Parameter({2, 2}, 3, type);
    auto module = ModuleTensors::Create({"a"}, {tensor});
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_THAT((*module->ReadElements())[0], Each(3)) << "the module's values";
    std::ranges::fill((*module->Elements())[0], fine);
    ASSERT_TRUE(module->ShowElements().ok());
    EXPECT_THAT((*module->ReadElements())[0], Each(fine)) << "nothing is lost in the master";
    EXPECT_EQ(tensor.scalar_type(), type);
    EXPECT_TRUE(tensor.detach().eq(1).all().item<bool>()) << "rounded";

    at::Tensor master = module->masters()[0];
    EXPECT_TRUE(master.is_leaf());
    {
      const at::NoGradGuard no_grad;
      master.fill_(5);
    }
    ASSERT_TRUE(module->ShowMasters().ok());
    EXPECT_TRUE(tensor.detach().eq(5).all().item<bool>());
    EXPECT_EQ(module->MemoryOf(0).module, 8);
    EXPECT_EQ(module->MemoryOf(0).master, 16);
  }
}

TEST(ModuleTensorsTest, GradientsOfShortFloatsAreScaledInTheMaster) {
  const at::Tensor tensor = Parameter({4}, 0, at::kBFloat16);
  tensor.mutable_grad() = at::full({4}, 3, at::kBFloat16);
  auto module = ModuleTensors::Create({"a"}, {tensor});
  EXPECT_EQ(*module->ClipGradients(2), 6);
  EXPECT_EQ(module->masters()[0].grad().data_ptr<float>()[2], 3 * (1.0f / 3));
  EXPECT_EQ(tensor.grad()[2].item<float>(), 3) << "as backward left it";
  EXPECT_THAT((*module->Gradients())[0], Each(3));
}

// Columns that lie one after another, which the rule cannot read as they are.
TEST(ModuleTensorsTest, TensorsOfAnyStridesAreTrained) {
  const at::Tensor tensor = at::zeros({3, 2}).t().requires_grad_();
  auto module = ModuleTensors::Create({"a"}, {tensor});
  ASSERT_TRUE(module.ok()) << module.status();
  const auto elements = module->Elements();
  std::ranges::copy(std::vector<float>{0, 1, 2, 3, 4, 5}, (*elements)[0].begin());
  ASSERT_TRUE(module->ShowElements().ok());
  EXPECT_EQ(tensor[0][1].item<float>(), 1);
  EXPECT_EQ(tensor[1][0].item<float>(), 3);
  EXPECT_THAT((*module->ReadElements())[0], ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ModuleTensorsTest, GradientsAreThereAndContiguous) {
  const at::Tensor used = Parameter({3, 2}), unused = Parameter({2});
  used.mutable_grad() = at::arange(6, at::kFloat).view({2, 3}).t();
  auto module = ModuleTensors::Create({"a", "b"}, {used, unused});
  const auto gradients = module->Gradients();
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_THAT((*gradients)[0], ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT((*gradients)[1], ElementsAre(0, 0));
  EXPECT_FLOAT_EQ(*module->GradientNorm(), std::sqrt(55.0f));
  EXPECT_FLOAT_EQ(*module->ClipGradients(std::sqrt(55.0f) / 2), std::sqrt(55.0f));
  EXPECT_FLOAT_EQ(used.grad()[1][1].item<float>(), 2) << "which the step sees";
  EXPECT_FLOAT_EQ(*module->ClipGradients(100), std::sqrt(55.0f) / 2);
  EXPECT_FLOAT_EQ(used.grad()[1][1].item<float>(), 2) << "no longer gradient is asked for";
}

TEST(ModuleTensorsTest, GradientsThatAreNotFiniteStay) {
  const at::Tensor tensor = Parameter({2});
  tensor.mutable_grad() = at::full({2}, 3, at::kFloat);
  tensor.mutable_grad()[1] = std::numeric_limits<float>::infinity();
  auto module = ModuleTensors::Create({"a"}, {tensor});
  EXPECT_EQ(*module->ClipGradients(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(tensor.grad()[0].item<float>(), 3);
}

TEST(ModuleTensorsTest, SparseGradientsAreRefused) {
  const at::Tensor tensor = Parameter({2});
  auto module = ModuleTensors::Create({"embed"}, {tensor});
  tensor.mutable_grad() = at::zeros({2}).to_sparse();
  EXPECT_THAT(std::string(module->GradientNorm().status().message()),
              AllOf(HasSubstr("\"embed\""), HasSubstr("sparse=True")));
}

}  // namespace
}  // namespace distro::worker
