// Counts the values of tensors that the program reads, for tests of what waits for the device: on a
// CPU nothing does, and only the operators show it.
#pragma once

#include "absl/strings/string_view.h"
#include "worker/torch/torch.h"

namespace distro::worker::testing {

// Reads by the thread that made it, one at a time, while it lives.
class ObservedReads {
 public:
  ObservedReads() {
    observer_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Observe).scopes({at::RecordScope::FUNCTION}));
  }
  ~ObservedReads() { at::removeCallback(handle_); }
  ObservedReads(const ObservedReads&) = delete;
  ObservedReads& operator=(const ObservedReads&) = delete;

  int reads() const { return reads_; }

 private:
  static std::unique_ptr<at::ObserverContext> Observe(const at::RecordFunction& function) {
    if (function.name() == absl::string_view("aten::_local_scalar_dense")) ++observer_->reads_;
    return nullptr;
  }

  static inline thread_local ObservedReads* observer_ = nullptr;  // Torch takes bare functions
  at::CallbackHandle handle_ = 0;
  int reads_ = 0;
};

}  // namespace distro::worker::testing
