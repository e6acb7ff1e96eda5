// A value read from files, and read again when they change and while the last reading failed, on a
// thread of its own: a disk that hangs keeps nobody waiting, neither a caller nor the end of the
// process. Thread-safe.
//
//   Reloaded<TokenTable> tokens({path}, [path] { return ReadTokens(path); }, told, clock);
//   DISTRO_RETURN_IF_ERROR(tokens.Start());
//   std::shared_ptr<const TokenTable> table = tokens.Get();   // never waits for the disk
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_watch.h"

namespace distro {

// How often the files are looked at. A change takes effect after this and the time to read them.
inline constexpr absl::Duration kLookAtFilesEvery = absl::Milliseconds(500);
// A look that takes longer is an error, told once.
inline constexpr absl::Duration kFilesAnswerWithin = absl::Seconds(10);

// The part of Reloaded that does not know the type of the value.
class ReloadedFiles {
 public:
  using Value = std::shared_ptr<const void>;
  using Read = std::function<absl::StatusOr<Value>()>;
  using Told = std::function<void(const absl::StatusOr<Value>& now)>;

  ReloadedFiles(std::vector<std::string> paths, Read read, Told told, const Clock* clock);
  ~ReloadedFiles();
  ReloadedFiles(const ReloadedFiles&) = delete;
  ReloadedFiles& operator=(const ReloadedFiles&) = delete;

  absl::Status Start();
  Value Get();
  absl::Status problem();

 private:
  struct Shared;
  // Of the thread; false: the end. Looks at the files, which may take for ever.
  bool AwaitLook(Shared* shared);
  bool Look(Shared* shared, FileWatch* watch);

  const Told told_;
  const Clock* const clock_;
  const std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
  std::thread thread_;
};

template <typename T>
class Reloaded {
 public:
  // Reads the files. Owns all that it uses: if the disk hangs, it outlives this object.
  using Read = std::function<absl::StatusOr<T>()>;
  // Receives the result of each reading of changed files, and DeadlineExceeded if the disk does not
  // answer; after an error the value of before stays, and the next reading that succeeds is told.
  // Called on any thread, and not after the end of this object.
  using Told = std::function<void(const absl::StatusOr<std::shared_ptr<const T>>& now)>;

  // Empty paths are not looked at. `clock` is borrowed.
  Reloaded(std::vector<std::string> paths, Read read, Told told, const Clock* clock)
      : files_(
            std::move(paths),
            [read = std::move(read)]() -> absl::StatusOr<ReloadedFiles::Value> {
              absl::StatusOr<T> value = read();
              if (!value.ok()) return value.status();
              return std::make_shared<const T>(*std::move(value));
            },
            [told = std::move(told)](const absl::StatusOr<ReloadedFiles::Value>& now) {
              if (now.ok()) {
                told(std::static_pointer_cast<const T>(*now));
              } else {
                told(now.status());
              }
            },
            clock) {}

  // Reads the files, on the caller's thread, and starts to look for changes. Once, before the
  // others. Errors as `read`.
  absl::Status Start() { return files_.Start(); }

  std::shared_ptr<const T> Get() { return std::static_pointer_cast<const T>(files_.Get()); }

  // OK: the value is that of the files. Otherwise why the one of before is still in use: the error
  // of the last reading, or DeadlineExceeded. This or Get() notices a disk that does not answer:
  // one of them must be called from time to time.
  absl::Status problem() { return files_.problem(); }

 private:
  ReloadedFiles files_;
};

}  // namespace distro
