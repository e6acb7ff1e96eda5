// Observes what Torch copies from and to some memory, for tests of what crosses between host and
// device: on a CPU both are the same memory, and only the operators show it.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker::testing {

// Copies by the thread that made it, one at a time, while it lives.
class ObservedCopies {
 public:
  explicit ObservedCopies(absl::Span<const float> memory) : memory_(memory) {
    observer_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Observe).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ObservedCopies() { at::removeCallback(handle_); }
  ObservedCopies(const ObservedCopies&) = delete;
  ObservedCopies& operator=(const ObservedCopies&) = delete;

  int copies() const { return copies_; }
  // Of these, to another type.
  int conversions() const { return conversions_; }

 private:
  static std::unique_ptr<at::ObserverContext> Observe(const at::RecordFunction& function) {
    if (function.name() == absl::string_view("aten::copy_"))
      observer_->Add(function.inputs()[0].toTensor(), function.inputs()[1].toTensor());
    return nullptr;
  }
  void Add(const at::Tensor& to, const at::Tensor& from) {
    if (!Has(to) && !Has(from)) return;
    ++copies_;
    conversions_ += to.scalar_type() != from.scalar_type();
  }
  bool Has(const at::Tensor& tensor) const {
    const auto* const data = static_cast<const float*>(tensor.const_data_ptr());
    const std::less<const float*> before;
    return !before(data, memory_.data()) && before(data, memory_.data() + memory_.size());
  }

  static inline thread_local ObservedCopies* observer_ = nullptr;  // Torch takes bare functions
  const absl::Span<const float> memory_;
  at::CallbackHandle handle_ = 0;
  int copies_ = 0;
  int conversions_ = 0;
};

}  // namespace distro::worker::testing
