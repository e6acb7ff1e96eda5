#include "common/base/exceptions.h"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace distro {

absl::Status ExceptionToStatus(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return absl::ResourceExhaustedError(
        "out of memory: give the process more (ulimit -v, the container's limit), or use less");
  }
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  if (of_system == nullptr) return absl::InternalError(error.what());
  const std::error_code code = of_system->code();
  const bool has_errno =
      code.category() == std::generic_category() || code.category() == std::system_category();
  if (has_errno && code.value() == EAGAIN) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread could be started: ", code.message(),
                     ": raise the limit of processes (ulimit -u, the container's pids limit)"));
  }
  return absl::Status(
      has_errno ? ErrnoToStatus(code.value(), "", "").code() : absl::StatusCode::kInternal,
      error.what());
}

}  // namespace distro
