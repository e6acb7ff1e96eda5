// A store of objects on loopback, with S3's conditional writes and the faults of a test. It does
// not check signatures. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/net/s3/s3_client.h"

namespace distro::testing {

enum class StoreFault {
  kNone,
  kRefuse,  // 503, and nothing is done
  kForbid,  // 403, and nothing is done
  kLose,    // it is done, and the connection ends without an answer
  kCut,     // nothing is done, and the connection ends
};

struct StoredObject {
  std::string bytes;
  std::string etag;
  std::string sha256;
  bool operator==(const StoredObject&) const = default;
};

class ObjectStore {
 public:
  // Decides before each request, of which `n` counts all; on the thread of the connection.
  using Fault = std::function<StoreFault(const std::string& method, const std::string& key, int n)>;

  ObjectStore();
  ~ObjectStore();

  // A client of the bucket "runs" that tries each request so often.
  std::unique_ptr<S3Client> Client(int tries = 1, uint64_t part_bytes = 1 << 20) const;
  void SetFault(Fault fault);
  // Requests so far.
  int requests() const;
  std::map<std::string, StoredObject> objects() const;
  // Changes an object as another program would, without a SHA-256; nullptr: removes it.
  void Set(const std::string& key, const char* bytes);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace distro::testing
