// Exceptions of the standard library as statuses. Our code has no exceptions, but memory, threads
// and other things of the system end in one; it is converted where the program can still end in
// order. Those of Torch: worker/torch/torch.h.
#pragma once

#include <exception>
#include <type_traits>

#include "absl/status/status.h"

namespace distro {

// ResourceExhausted: no memory, or no thread, with its remedy. The code of the errno, for another
// error of the system; Internal otherwise.
absl::Status ExceptionToStatus(const std::exception& error);

// What `call` returns, a status or a value with one; or the status of what it throws.
template <typename Call>
std::invoke_result_t<Call> CatchExceptions(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return ExceptionToStatus(error);
  }
}

}  // namespace distro
