#include "tests/worker/fsdp/gpu_model/torch_device.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_memory.h"
#include "worker/torch/torch_backend.h"

namespace distro::worker::testing {
namespace {

thread_local c10::DeviceIndex current_device = 0;
thread_local std::map<c10::DeviceIndex, c10::StreamId> current_streams;

struct ModelGuard final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kPrivateUse1; }
  c10::Device getDevice() const override { return {type(), current_device}; }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return ModelGpus::kDevices; }

  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = device.has_index() ? device.index() : current_device;
    return c10::Stream(c10::Stream::UNSAFE, {type(), index}, current_streams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*priority*/) const override {
    return ModelGpus::Get().NewStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_streams[stream.device_index()] = stream.id();
    return before;
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    if (*event == nullptr) *event = new ModelGpus::Event;
    Of(*event) = ModelGpus::Get().Record(stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    ModelGpus::Get().Block(Of(event), stream);
  }
  bool queryEvent(void* event) const override { return ModelGpus::Get().Query(Of(event)); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete &Of(event); }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    return static_cast<double>(Of(end).last->end - (Of(begin).last ? Of(begin).last->end : 0));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    ModelGpus::Get().Synchronize(stream);
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    ModelGpus::Get().SynchronizeDevice(device);
  }

 private:
  static ModelGpus::Event& Of(void* event) { return *static_cast<ModelGpus::Event*>(event); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, ModelGuard)

c10::Stream CurrentStream(const at::Tensor& tensor) {
  return ModelGuard().getStream(tensor.device());
}

class ModelAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = ModelGuard().getDevice();
    void* const memory = ModelMemory::Get().Allocate(ModelGuard().getStream(device), bytes);
    return {memory, memory, &Free, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void Free(void* memory) { ModelMemory::Get().Free(memory); }
};

c10::Allocator* TheAllocator() {
  static auto* const allocator = new ModelAllocator;
  return allocator;
}

// Memory of the host to and from which copies need not wait.
class PinnedMemory final : public c10::Allocator {
 public:
  static PinnedMemory& Get() {
    static auto* const memory = new PinnedMemory;
    return *memory;
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = std::malloc(bytes);
    const absl::MutexLock lock(&mu_);
    ends_[memory] = static_cast<char*>(memory) + bytes;
    return {memory, memory, &Free, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool Has(const void* address) const {
    const absl::MutexLock lock(&mu_);
    const auto after = ends_.upper_bound(address);
    return after != ends_.begin() && address < std::prev(after)->second;
  }

 private:
  static void Free(void* memory) {
    const absl::MutexLock lock(&Get().mu_);
    Get().ends_.erase(memory);
    std::free(memory);
  }

  mutable absl::Mutex mu_;
  std::map<const void*, const void*> ends_ ABSL_GUARDED_BY(mu_);
};

// The same memory as a tensor of the host, which keeps nothing alive.
at::Tensor OnHost(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

Access AccessOf(const at::Tensor& tensor, bool writes) {
  if (!tensor.is_privateuseone() || tensor.numel() == 0) return {};
  size_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i)
    elements += static_cast<size_t>((tensor.size(i) - 1) * tensor.stride(i));
  return {tensor.data_ptr(), elements * tensor.element_size(), writes};
}

// Enqueues a kernel that reads `inputs` and writes `output`. Its first use on a device loads it.
void Launch(const std::string& kernel, const at::Tensor& output,
            const std::vector<at::Tensor>& inputs, std::function<void()> run) {
  const c10::Stream stream = CurrentStream(output);
  ModelGpus& gpus = ModelGpus::Get();
  if (gpus.Loads(stream.device_index(), kernel))
    gpus.CheckBlockingCall(absl::StrCat("the first use of ", kernel));
  std::vector<Access> accesses = {AccessOf(output, /*writes=*/true)};
  for (const at::Tensor& input : inputs) accesses.push_back(AccessOf(input, /*writes=*/false));
  gpus.Enqueue(stream, kernel, accesses, std::move(run));
}

at::Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(at::Device(at::kPrivateUse1)));
  return at::detail::empty_generic(sizes, TheAllocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::optional<at::ScalarType> type, std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(at::Device(at::kPrivateUse1)));
  return at::detail::empty_strided_generic(sizes, strides, TheAllocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

// Between host and device the call waits, unless it need not and the host's memory is pinned.
at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  at::Tensor source = OnHost(from.expand_as(to)), target = OnHost(to);
  const auto run = [source, target]() mutable { target.copy_(source); };
  if (!from.is_cpu() && !to.is_cpu()) {
    Launch("copy_", to, {from}, run);
    return to;
  }
  const at::Tensor& on_host = to.is_cpu() ? to : from;
  const c10::Stream stream = CurrentStream(to.is_cpu() ? from : to);
  const bool waits = !non_blocking || !PinnedMemory::Get().Has(on_host.data_ptr());
  ModelGpus& gpus = ModelGpus::Get();
  if (waits) gpus.CheckBlockingCall("a copy of memory that is not pinned");
  gpus.Enqueue(stream, from.is_cpu() ? "copy from host" : "copy to host",
               {AccessOf(from, /*writes=*/false), AccessOf(to, /*writes=*/true)}, run);
  if (waits) gpus.Synchronize(stream);
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  TORCH_CHECK(from.sizes() == to.sizes(), "tensors of the model keep their size");
  return CopyFrom(from, to, false);
}

at::Tensor& Fill(at::Tensor& self, const at::Scalar& value) {
  Launch("fill_", self, {}, [target = OnHost(self), value]() mutable { target.fill_(value); });
  return self;
}

at::Tensor& Zero(at::Tensor& self) { return Fill(self, 0); }

at::Tensor& Add(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  const at::Tensor all = other.expand_as(self);
  // A number is copied into the launch: it may be gone when the kernel runs.
  const at::Tensor addend = other.is_cpu() ? all.clone() : OnHost(all);
  Launch("add_", self, {self, other},
         [target = OnHost(self), addend, alpha]() mutable { target.add_(addend, alpha); });
  return self;
}

at::Tensor AsStrided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                     std::optional<int64_t> offset) {
  return at::cpu::as_strided(self, sizes, strides, offset);
}

void ComputeOnHost(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&ComputeOnHost>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", Empty);
  library.impl("empty_strided", EmptyStrided);
  library.impl("as_strided", AsStrided);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("_copy_from", CopyFrom);
  library.impl("_copy_from_and_resize", CopyFromAndResize);
  library.impl("fill_.Scalar", Fill);
  library.impl("zero_", Zero);
  library.impl("add_.Tensor", Add);
}

// What autograd asks of an accelerator.
struct ModelHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isPinnedPtr(const void* data) const override { return PinnedMemory::Get().Has(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::Get(); }
  c10::DeviceIndex deviceCount() const override { return ModelGpus::kDevices; }
  // As CUDA, which knows no device of a null pointer.
  c10::Device getDeviceFromPtr(void* memory) const override {
    const std::optional<int> device = ModelMemory::Get().DeviceOf(memory);
    TORCH_CHECK(device.has_value(), "The specified pointer resides on host memory");
    return ModelDevice(*device);
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current_device = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return std::exchange(current_device, device);
  }
};

[[maybe_unused]] const bool kRegistered = [] {
  c10::SetAllocator(at::kPrivateUse1, TheAllocator());
  c10::register_privateuse1_backend("model_gpu");
  at::RegisterPrivateUse1HooksInterface(new ModelHooks);
  return true;
}();

}  // namespace
}  // namespace distro::worker::testing
