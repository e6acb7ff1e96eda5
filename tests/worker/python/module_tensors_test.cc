#include "worker/python/module_tensors.h"

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
  const auto module = ModuleTensors::Create({"b", "a"}, {b, a});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(module->manifest().tensors(),
              ElementsAre(TensorSpec{"a", {4}}, TensorSpec{"b", {2, 3}}));
  const auto elements = module->Elements();
  ASSERT_TRUE(elements.ok());
  EXPECT_THAT((*elements)[0], AllOf(::testing::SizeIs(4), Each(1)));
  EXPECT_THAT((*elements)[1], AllOf(::testing::SizeIs(6), Each(2)));
  EXPECT_EQ((*elements)[1].data(), b.data_ptr<float>()) << "the module's own memory";
}

TEST(ModuleTensorsTest, WhatCannotBeTrainedIsNamedWithTheRemedy) {
  EXPECT_THAT(Refusal(Parameter({2}, 0, at::kHalf)),
              AllOf(HasSubstr("\"layer.weight\": is Half"), HasSubstr("model.float()")));
  EXPECT_THAT(Refusal(at::zeros({4, 2}).t().requires_grad_()),
              AllOf(HasSubstr("not contiguous"), HasSubstr(".contiguous()")));
  EXPECT_THAT(Refusal(at::zeros({2})), HasSubstr("requires_grad_()"));
  EXPECT_THAT(Refusal(at::empty({2}, at::TensorOptions(at::kMeta)).requires_grad_()),
              AllOf(HasSubstr("is on meta"), HasSubstr("model.cpu()")));
  EXPECT_THAT(Refusal(at::zeros({}).requires_grad_()), HasSubstr("layer.weight"));
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

TEST(ModuleTensorsTest, AChangeBehindItsBackIsNoticed) {
  at::Tensor tensor = Parameter({2, 3});
  const auto module = ModuleTensors::Create({"a"}, {tensor});
  tensor.set_data(at::ones({2, 3}));
  EXPECT_THAT((*module->Elements())[0], Each(1)) << "other memory is fine";
  tensor.set_data(at::ones({3, 3}));
  EXPECT_THAT(std::string(module->Elements().status().message()),
              AllOf(HasSubstr("[3, 3]"), HasSubstr("had [2, 3]")));
  tensor.set_data(at::ones({2, 3}, at::kDouble));
  EXPECT_THAT(std::string(module->Gradients().status().message()), HasSubstr("is Double"));
}

TEST(ModuleTensorsTest, GradientsAreThereAndContiguous) {
  const at::Tensor used = Parameter({3, 2}), unused = Parameter({2});
  used.mutable_grad() = at::arange(6, at::kFloat).view({2, 3}).t();
  const auto module = ModuleTensors::Create({"a", "b"}, {used, unused});
  const auto gradients = module->Gradients();
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_THAT((*gradients)[0], ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ((*gradients)[0].data(), used.grad().data_ptr<float>()) << "which the step sees";
  EXPECT_THAT((*gradients)[1], ElementsAre(0, 0));
}

}  // namespace
}  // namespace distro::worker
