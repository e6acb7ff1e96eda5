// Memory of a device that grows on demand.
#include "kernels/device.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/forwarding_device.h"

namespace distro {
namespace {

class CountingDevice final : public testing::ForwardingDevice {
 public:
  CountingDevice() : ForwardingDevice(MakeHostDevice()) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    sizes.push_back(bytes);
    return ForwardingDevice::Allocate(bytes);
  }
  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    sizes.push_back(bytes);
    return ForwardingDevice::AllocateHost(bytes);
  }

  std::vector<size_t> sizes;
};

TEST(DeviceBufferTest, ReallocatesSeldom) {
  for (const auto where : {DeviceBuffer::Where::kDevice, DeviceBuffer::Where::kHost}) {
    CountingDevice device;
    DeviceBuffer buffer(&device, where);
    for (size_t bytes = 1000; bytes < 2000; bytes += 10) ASSERT_TRUE(buffer.Reserve(bytes).ok());
    EXPECT_EQ(device.sizes, (std::vector<size_t>{1000, 1500, 2250}));
  }
}

TEST(DeviceBufferTest, HasRoomForWhatIsMuchLarger) {
  CountingDevice device;
  DeviceBuffer buffer(&device);
  for (const size_t bytes : {10, 1000, 20}) ASSERT_TRUE(buffer.Reserve(bytes).ok());
  EXPECT_EQ(device.sizes, (std::vector<size_t>{10, 1000})) << "the first time no more than asked";
}

}  // namespace
}  // namespace distro
