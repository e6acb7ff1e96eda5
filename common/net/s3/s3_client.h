// Objects of one bucket, over the interface of S3, which other stores speak as well.
//
// Thread-safe: calls at the same time use connections of their own. Blocking. What may pass (no
// connection, 429, 5xx) is tried again a few times; then it is Unavailable. Other statuses, whose
// messages name the object: NotFound; PermissionDenied (401, 403, or an expired token, with the
// store's own reason; or no credentials); InvalidArgument (the bucket does not exist, or is in
// another region).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/net/http/http_client.h"
#include "common/net/s3/s3_answer.h"
#include "common/net/s3/s3_place.h"

namespace distro {

// What a store says of an object.
struct S3Object {
  uint64_t bytes = 0;
  std::string etag;
  // As Put has stored it, in hexadecimal; empty: another program wrote the object.
  std::string sha256;
};

// What is to be stored. `read` as HttpCall::body.
struct S3Content {
  uint64_t bytes = 0;
  Sha256Digest sha256 = {};
  std::function<absl::StatusOr<std::string>(uint64_t offset, size_t most)> read;
};

// Of bytes that outlive the content.
S3Content ContentOf(absl::string_view bytes);
// Reads the file once for its SHA-256. The file must not change while the content is used.
absl::StatusOr<S3Content> ContentOfFile(const std::string& path);

// When an object may be written.
struct S3Condition {
  enum class Kind { kAlways, kAbsent, kMatches };
  Kind kind = Kind::kAlways;
  std::string etag = {};  // of kMatches

  static S3Condition Absent() { return {.kind = Kind::kAbsent}; }
  static S3Condition Matches(std::string etag) { return {Kind::kMatches, std::move(etag)}; }
};

struct S3Options {
  // Longest time without progress.
  absl::Duration patience = absl::Seconds(10);
  // Longest wait for an answer after all was sent.
  absl::Duration answer_patience = absl::Seconds(30);
  int tries = 4;
  absl::Duration first_pause = absl::Milliseconds(200);  // twice as long after each try
  // Unconditional writes of more are sent in parts of this size.
  uint64_t part_bytes = uint64_t{512} << 20;
  // Asked every 50 ms while waiting; empty: never cancelled.
  std::function<bool()> cancelled = nullptr;
};

class S3Client {
 public:
  // `clock` is borrowed.
  S3Client(S3Place place, Environment environment, const Clock* clock, S3Options options = {});

  // By FindS3Place of `url`, and the process's environment.
  static absl::StatusOr<std::unique_ptr<S3Client>> Open(absl::string_view url, const Clock* clock,
                                                        S3Options options = {});

  const S3Place& place() const { return place_; }
  // Of S3Options, for who tries a conditional write again.
  absl::Duration first_pause() const { return options_.first_pause; }
  // Another client of the same bucket, which knows as well how wrong the clock is.
  std::unique_ptr<S3Client> With(S3Options options) const;

  absl::StatusOr<S3Object> Head(const std::string& key);
  // Passes the object's bytes to `sink` in order, from 0 on again with each try. DataLoss: they do
  // not have the SHA-256 with which they were stored.
  absl::StatusOr<S3Object> Get(const std::string& key, HttpClient::Sink sink);
  // The bytes of a small object. DataLoss: it has more than `max_bytes`. `object`, if not null, is
  // what Get returns.
  absl::StatusOr<std::string> Read(const std::string& key, uint64_t max_bytes,
                                   S3Object* object = nullptr);
  // All objects whose keys begin with `prefix`, in the order of keys.
  absl::StatusOr<std::vector<S3Listed>> List(const std::string& prefix);
  // Returns the new ETag. With a condition it is tried once. AlreadyExists: the condition does not
  // hold, and nothing was written.
  absl::StatusOr<std::string> Put(const std::string& key, const S3Content& content,
                                  const S3Condition& condition = {});
  // An object that is not there is fine.
  absl::Status Delete(const std::string& key);

 private:
  struct Call;
  struct Answer;
  absl::StatusOr<Answer> Ask(const Call& call);
  absl::StatusOr<Answer> AskOnce(const Call& call);
  bool CorrectClock(const Answer& answer, absl::Time signed_at);
  absl::StatusOr<std::string> PutParts(const std::string& key, const S3Content& content);
  absl::Status PutPart(const std::string& key, const std::string& upload, size_t number,
                       const S3Content& content, std::string* list);
  absl::Status CheckAnswer(const Call& call, const Answer& answer) const;
  std::unique_ptr<HttpClient> TakeConnection();
  void GiveBack(std::unique_ptr<HttpClient> connection);

  const S3Place place_;
  const Environment environment_;
  const Clock* const clock_;
  const S3Options options_;
  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<HttpClient>> idle_ ABSL_GUARDED_BY(mu_);
  // What the server's clock is ahead of ours, where it refused a request for that.
  absl::Duration ahead_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
