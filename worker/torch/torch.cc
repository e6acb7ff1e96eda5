#include "worker/torch/torch.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace distro::worker {

absl::Status TorchErrorToStatus(const std::exception& error, absl::string_view what) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string message =
      absl::StrCat(what, ": ", torch_error ? torch_error->what_without_backtrace() : error.what());
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                      absl::StrContains(message, "can't allocate memory");
  return memory ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace distro::worker
