#include "common/net/s3/s3_client.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/file_calls.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/s3/signature.h"

namespace distro {
namespace {

constexpr char kSha256Header[] = "x-amz-meta-distro-sha256";
constexpr size_t kMaxAnswerBytes = 4 << 20;  // of an answer that is no object
constexpr absl::Duration kClockDiffers = absl::Minutes(5);
constexpr size_t kReadBytes = 1 << 20;
constexpr absl::Duration kAbortWithin = absl::Seconds(5);

bool MayPass(int status) { return status == 429 || status == 408 || status >= 500; }

S3Content PartOf(const S3Content& whole, uint64_t begin, uint64_t bytes) {
  return {.bytes = bytes, .read = [&whole, begin](uint64_t offset, size_t most) {
            return whole.read(begin + offset, most);
          }};
}

absl::StatusOr<Sha256Digest> DigestOf(const S3Content& content) {
  Sha256Stream hash;
  for (uint64_t at = 0; at < content.bytes;) {
    const size_t most = std::min<uint64_t>(kReadBytes, content.bytes - at);
    DISTRO_ASSIGN_OR_RETURN(const std::string piece, content.read(at, most));
    hash.Update(piece);
    at += piece.size();
  }
  return hash.Finish();
}

}  // namespace

S3Content ContentOf(absl::string_view bytes) {
  return {.bytes = bytes.size(),
          .sha256 = Sha256(bytes),
          .read = [bytes](uint64_t offset, size_t most) -> absl::StatusOr<std::string> {
            return std::string(bytes.substr(offset, most));
          }};
}

absl::StatusOr<S3Content> ContentOfFile(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(FileHandle opened, OpenToRead(path));
  const auto file = std::make_shared<FileHandle>(std::move(opened));
  struct stat about;
  if (fstat(file->fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path);
  S3Content content{
      .bytes = static_cast<uint64_t>(about.st_size),
      .read = [file, path](uint64_t offset, size_t most) -> absl::StatusOr<std::string> {
        std::string bytes(most, '\0');
        const ssize_t got = pread(file->fd(), bytes.data(), most, offset);
        if (got < 0) return ErrnoToStatus(errno, "read", path);
        if (got == 0) return absl::DataLossError(absl::StrCat(path, ": became shorter"));
        bytes.resize(got);
        return bytes;
      }};
  DISTRO_ASSIGN_OR_RETURN(content.sha256, DigestOf(content));
  return content;
}

// A request. The content, if any, is borrowed.
struct S3Client::Call {
  std::string method;
  std::string key;  // empty: the bucket
  std::vector<std::pair<std::string, std::string>> query = {};
  HttpHeaders headers = {};
  const S3Content* content = nullptr;
  // Takes the body of a 2xx; null: it goes into the answer.
  const HttpClient::Sink* sink = nullptr;
};

struct S3Client::Answer {
  HttpHead head;
  std::string body;
};

S3Client::S3Client(S3Place place, Environment environment, const Clock* clock, S3Options options)
    : place_(std::move(place)),
      environment_(std::move(environment)),
      clock_(clock),
      options_(options) {}

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::Open(absl::string_view url, const Clock* clock,
                                                         S3Options options) {
  const Environment environment = ProcessEnvironment();
  DISTRO_ASSIGN_OR_RETURN(S3Place place, FindS3Place(url, environment));
  return std::make_unique<S3Client>(std::move(place), environment, clock, std::move(options));
}

std::unique_ptr<S3Client> S3Client::With(S3Options options) const {
  auto other = std::make_unique<S3Client>(place_, environment_, clock_, std::move(options));
  absl::Duration ahead;
  {
    absl::MutexLock lock(&mu_);
    ahead = ahead_;
  }
  absl::MutexLock lock(&other->mu_);
  other->ahead_ = ahead;
  return other;
}

std::unique_ptr<HttpClient> S3Client::TakeConnection() {
  absl::MutexLock lock(&mu_);
  if (idle_.empty()) {
    return std::make_unique<HttpClient>(
        place_.server, HttpClientOptions{.patience = options_.patience,
                                         .answer_patience = options_.answer_patience,
                                         .least_bytes_per_second = 0,
                                         .cancelled = options_.cancelled});
  }
  std::unique_ptr<HttpClient> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void S3Client::GiveBack(std::unique_ptr<HttpClient> connection) {
  absl::MutexLock lock(&mu_);
  idle_.push_back(std::move(connection));
}

absl::StatusOr<S3Client::Answer> S3Client::AskOnce(const Call& call) {
  DISTRO_ASSIGN_OR_RETURN(const S3Credentials credentials, FindS3Credentials(environment_));
  const std::string host = place_.server.Authority();
  const std::string path = call.key.empty() ? "/" : absl::StrCat("/", place_.prefix, call.key);
  const std::string full_path = place_.server.path + path;
  const Sha256Digest digest = call.content == nullptr ? Sha256("") : call.content->sha256;
  const std::string sha256 = ToHex(digest);
  const S3Request request{.method = call.method,
                          .host = host,
                          .path = full_path,
                          .query = call.query,
                          .headers = call.headers,
                          .content_sha256 = sha256};
  absl::Time now = clock_->WallNow();
  {
    absl::MutexLock lock(&mu_);
    now += ahead_;
  }
  HttpCall http{.method = call.method,
                .path = call.query.empty() ? path : absl::StrCat(path, "?", EncodedQuery(request)),
                .headers = Sign(request, credentials, place_.region, now)};
  if (call.content != nullptr) {
    http.body_bytes = call.content->bytes;
    http.body = call.content->read;
  }
  Answer answer;
  std::unique_ptr<HttpClient> connection = TakeConnection();
  const absl::Status status = connection->Send(
      http,
      [&](const HttpHead& head) {
        answer.head = head;
        return absl::OkStatus();
      },
      [&](uint64_t at, absl::string_view piece) -> absl::Status {
        if (call.sink != nullptr && answer.head.status / 100 == 2) return (*call.sink)(at, piece);
        if (answer.body.size() + piece.size() > kMaxAnswerBytes)
          return absl::UnavailableError("an answer that is too long");
        answer.body.append(piece.data(), piece.size());
        return absl::OkStatus();
      });
  GiveBack(std::move(connection));
  DISTRO_RETURN_IF_ERROR(status);
  const absl::Status checked = CheckAnswer(call, answer);
  if (absl::IsPermissionDenied(checked) && CorrectClock(answer, now))
    return absl::UnavailableError(checked.message());
  DISTRO_RETURN_IF_ERROR(checked);
  return answer;
}

// Whether the server's clock differs so much from the time of a request that it was refused. An
// answer to a HEAD does not say why.
bool S3Client::CorrectClock(const Answer& answer, absl::Time signed_at) {
  absl::Time theirs;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", answer.head.Header("Date"), &theirs, &error) ||
      absl::AbsDuration(theirs - signed_at) < kClockDiffers)
    return false;
  absl::MutexLock lock(&mu_);
  ahead_ = theirs - clock_->WallNow();
  return true;
}

absl::Status S3Client::CheckAnswer(const Call& call, const Answer& answer) const {
  const int status = answer.head.status;
  // A multipart upload may fail after its answer has begun.
  const std::string code = ElementOf(answer.body, "Code");
  if (status / 100 == 2 && code.empty()) return absl::OkStatus();
  const std::string message = ElementOf(answer.body, "Message");
  const std::string what = absl::StrCat(place_.url, "/", call.key, ": ", call.method, ": ", status,
                                        code.empty() ? "" : " ", absl::CEscape(code),
                                        message.empty() ? "" : ": ", absl::CEscape(message));
  if (code == "RequestTimeout") return absl::UnavailableError(what);
  const bool refused = status == 401 || status == 403 || code == "ExpiredToken" ||
                       code == "InvalidToken" || code == "TokenRefreshRequired";
  if (refused) return absl::PermissionDeniedError(what);
  if (code == "NoSuchBucket" || status == 301 || status == 307 || status == 400) {
    const absl::string_view region = answer.head.Header("x-amz-bucket-region");
    return absl::InvalidArgumentError(
        region.empty() ? what : absl::StrCat(what, ": the bucket is in AWS_REGION=", region));
  }
  if (status == 404) return absl::NotFoundError(what);
  if (status == 412) return absl::AlreadyExistsError(what);
  // 409 of a conditional write: another one is under way.
  if (MayPass(status) || status == 409 || status / 100 == 2) return absl::UnavailableError(what);
  return absl::InternalError(what);
}

absl::StatusOr<S3Client::Answer> S3Client::Ask(const Call& call) {
  absl::Duration pause = options_.first_pause;
  for (int i = 1;; ++i) {
    absl::StatusOr<Answer> answer = AskOnce(call);
    const bool conditional = !call.headers.empty() && call.headers.back().first.starts_with("If-");
    if (!absl::IsUnavailable(answer.status()) || i >= options_.tries || conditional ||
        (options_.cancelled && options_.cancelled()))
      return answer;
    absl::SleepFor(pause);
    pause *= 2;
  }
}

absl::StatusOr<S3Object> S3Client::Head(const std::string& key) {
  DISTRO_ASSIGN_OR_RETURN(const Answer answer, Ask({.method = "HEAD", .key = key}));
  S3Object object{.etag = std::string(answer.head.Header("ETag")),
                  .sha256 = std::string(answer.head.Header(kSha256Header))};
  if (absl::SimpleAtoi(answer.head.Header("Content-Length"), &object.bytes)) return object;
  return absl::UnavailableError(absl::StrCat(place_.url, "/", key, ": HEAD: without a length"));
}

absl::StatusOr<S3Object> S3Client::Get(const std::string& key, HttpClient::Sink sink) {
  std::optional<Sha256Stream> hash;
  uint64_t bytes = 0;
  const auto count = [&](uint64_t at, absl::string_view piece) {
    if (at == 0) hash.emplace();
    hash->Update(piece);
    bytes = at + piece.size();
    return sink(at, piece);
  };
  const HttpClient::Sink counted = count;
  DISTRO_ASSIGN_OR_RETURN(const Answer answer,
                          Ask({.method = "GET", .key = key, .sink = &counted}));
  S3Object object{.bytes = bytes,
                  .etag = std::string(answer.head.Header("ETag")),
                  .sha256 = std::string(answer.head.Header(kSha256Header))};
  const std::string got = ToHex(hash ? hash->Finish() : Sha256(""));
  if (object.sha256.empty() || object.sha256 == got) return object;
  return absl::DataLossError(absl::StrCat(place_.url, "/", key, ": its bytes have the SHA-256 ",
                                          got, ", ", absl::CEscape(object.sha256), " was stored"));
}

absl::StatusOr<std::string> S3Client::Read(const std::string& key, uint64_t max_bytes,
                                           S3Object* object) {
  std::string bytes;
  DISTRO_ASSIGN_OR_RETURN(
      S3Object got, Get(key, [&](uint64_t at, absl::string_view piece) -> absl::Status {
        if (at + piece.size() > max_bytes)
          return absl::DataLossError(absl::StrCat(place_.url, "/", key, ": is too large"));
        bytes.resize(at);
        bytes.append(piece.data(), piece.size());
        return absl::OkStatus();
      }));
  if (object != nullptr) *object = std::move(got);
  return bytes;
}

absl::StatusOr<std::vector<S3Listed>> S3Client::List(const std::string& prefix) {
  std::vector<S3Listed> listed;
  const std::string whole = place_.prefix + prefix;
  std::string last = whole;
  for (bool more = true; more;) {
    DISTRO_ASSIGN_OR_RETURN(
        const Answer answer,
        Ask({.method = "GET",
             .key = "",
             .query = {{"list-type", "2"}, {"prefix", whole}, {"start-after", last}}}));
    absl::StatusOr<S3Page> page = ParsePage(answer.body, whole, last);
    if (!page.ok()) return Annotate(page.status(), absl::StrCat(place_.url, "/", prefix));
    more = page->more;
    for (S3Listed& object : page->objects) {
      last = object.key;
      object.key.erase(0, place_.prefix.size());
      listed.push_back(std::move(object));
    }
  }
  return listed;
}

absl::StatusOr<std::string> S3Client::Put(const std::string& key, const S3Content& content,
                                          const S3Condition& condition) {
  if (condition.kind == S3Condition::Kind::kAlways && content.bytes > options_.part_bytes)
    return PutParts(key, content);
  HttpHeaders headers{{kSha256Header, ToHex(content.sha256)}};
  if (condition.kind == S3Condition::Kind::kAbsent) headers.emplace_back("If-None-Match", "*");
  if (condition.kind == S3Condition::Kind::kMatches)
    headers.emplace_back("If-Match", condition.etag);
  absl::StatusOr<Answer> answer =
      Ask({.method = "PUT", .key = key, .headers = headers, .content = &content});
  if (condition.kind == S3Condition::Kind::kMatches && absl::IsAlreadyExists(answer.status())) {
    // Ceph 16 compares with the ETag without its quotes.
    headers.back().second = absl::StrReplaceAll(condition.etag, {{"\"", ""}});
    answer = Ask({.method = "PUT", .key = key, .headers = headers, .content = &content});
  }
  DISTRO_RETURN_IF_ERROR(answer.status());
  return std::string(answer->head.Header("ETag"));
}

absl::StatusOr<std::string> S3Client::PutParts(const std::string& key, const S3Content& content) {
  const S3Content nothing = ContentOf("");
  DISTRO_ASSIGN_OR_RETURN(const Answer begun,
                          Ask({.method = "POST",
                               .key = key,
                               .query = {{"uploads", ""}},
                               .headers = {{kSha256Header, ToHex(content.sha256)}},
                               .content = &nothing}));
  const std::string upload = ElementOf(begun.body, "UploadId");
  if (upload.empty())
    return absl::UnavailableError(absl::StrCat(place_.url, "/", key, ": got no UploadId"));
  // Else its parts would stay, unseen, and be charged. Also when this client is cancelled.
  auto abort = absl::MakeCleanup([&] {
    S3Options last = options_;
    last.cancelled = nullptr;
    last.patience = last.answer_patience = kAbortWithin;
    if (options_.cancelled && options_.cancelled()) last.tries = 2;
    With(std::move(last))
        ->Ask({.method = "DELETE", .key = key, .query = {{"uploadId", upload}}})
        .IgnoreError();
  });
  std::string list = "<CompleteMultipartUpload>";
  for (size_t number = 1; (number - 1) * options_.part_bytes < content.bytes; ++number)
    DISTRO_RETURN_IF_ERROR(PutPart(key, upload, number, content, &list));
  absl::StrAppend(&list, "</CompleteMultipartUpload>");
  const S3Content body = ContentOf(list);
  DISTRO_RETURN_IF_ERROR(
      Ask({.method = "POST", .key = key, .query = {{"uploadId", upload}}, .content = &body})
          .status());
  std::move(abort).Cancel();
  DISTRO_ASSIGN_OR_RETURN(const S3Object stored, Head(key));
  return stored.etag;
}

absl::Status S3Client::PutPart(const std::string& key, const std::string& upload, size_t number,
                               const S3Content& content, std::string* list) {
  const uint64_t begin = (number - 1) * options_.part_bytes;
  S3Content part = PartOf(content, begin, std::min(options_.part_bytes, content.bytes - begin));
  DISTRO_ASSIGN_OR_RETURN(part.sha256, DigestOf(part));
  DISTRO_ASSIGN_OR_RETURN(
      const Answer answer,
      Ask({.method = "PUT",
           .key = key,
           .query = {{"partNumber", absl::StrCat(number)}, {"uploadId", upload}},
           .content = &part}));
  absl::StrAppend(list, "<Part><PartNumber>", number, "</PartNumber><ETag>",
                  answer.head.Header("ETag"), "</ETag></Part>");
  return absl::OkStatus();
}

absl::Status S3Client::Delete(const std::string& key) {
  const absl::Status status = Ask({.method = "DELETE", .key = key}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace distro
