// Sequences of calls in any order on a run without gRPC: tests/server/call/rpc_sequence.h has the
// invariants. The log is in memory if the machine has such a folder.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/server/call/rpc_sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder =
      (std::filesystem::exists("/dev/shm") ? std::string("/dev/shm")
                                           : std::filesystem::temp_directory_path().string()) +
      "/distro_rpc_fuzz_" + std::to_string(getpid());
  distro::testing::RunRpcSequence(folder, data, size);
  return 0;
}
