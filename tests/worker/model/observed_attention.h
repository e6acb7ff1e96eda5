// Observes the shapes of which Torch computes attention, for tests of what makes plans for shapes.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "worker/torch/torch.h"

namespace distro::worker::testing {

// Calls by all threads, one at a time, while it lives.
class ObservedAttention {
 public:
  ObservedAttention() {
    observer_ = this;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&Observe).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ObservedAttention() { at::removeCallback(handle_); }
  ObservedAttention(const ObservedAttention&) = delete;
  ObservedAttention& operator=(const ObservedAttention&) = delete;

  // Of the queries: [sequences, heads, positions, head_dim].
  std::set<std::vector<int64_t>> shapes() const {
    absl::MutexLock lock(&mu_);
    return shapes_;
  }

 private:
  static std::unique_ptr<at::ObserverContext> Observe(const at::RecordFunction& function) {
    if (function.name() == absl::string_view("aten::scaled_dot_product_attention"))
      observer_->Add(function.inputs()[0].toTensor().sizes().vec());
    return nullptr;
  }
  void Add(std::vector<int64_t> shape) {
    absl::MutexLock lock(&mu_);
    shapes_.insert(std::move(shape));
  }

  static inline ObservedAttention* observer_ = nullptr;  // Torch takes bare functions
  at::CallbackHandle handle_ = 0;
  mutable absl::Mutex mu_;
  std::set<std::vector<int64_t>> shapes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker::testing
