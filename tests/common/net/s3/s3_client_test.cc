#include "common/net/s3/s3_client.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/scripted_server.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/object_store.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;
using testing::ObjectStore;
using testing::ScriptedServer;
using testing::StoreFault;

absl::StatusOr<std::string> Get(S3Client* client, const std::string& key = "a") {
  S3Object object;
  const auto bytes = client->Read(key, 1 << 20, &object);
  if (bytes.ok()) {
    EXPECT_EQ(object.bytes, bytes->size());
  }
  return bytes;
}

TEST(S3ClientTest, StoresAndReads) {
  ObjectStore store;
  const auto client = store.Client();
  EXPECT_EQ(client->Head("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get(client.get()).status().code(), absl::StatusCode::kNotFound);
  const auto etag = client->Put("a", ContentOf("bytes"));
  ASSERT_TRUE(etag.ok()) << etag.status();
  EXPECT_EQ(*Get(client.get()), "bytes");
  const auto object = client->Head("a");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->bytes, 5);
  EXPECT_EQ(object->etag, *etag);
  EXPECT_EQ(object->sha256, ToHex(Sha256("bytes")));
  EXPECT_TRUE(client->Delete("a").ok());
  EXPECT_TRUE(client->Delete("a").ok());
  EXPECT_TRUE(store.objects().empty());
}

TEST(S3ClientTest, ReadsNoMoreThanItIsAllowedTo) {
  ObjectStore store;
  const auto client = store.Client();
  ASSERT_TRUE(client->Put("a", ContentOf("bytes")).ok());
  EXPECT_EQ(*client->Read("a", 5), "bytes");
  EXPECT_EQ(client->Read("a", 4).status().code(), absl::StatusCode::kDataLoss);
}

TEST(S3ClientTest, WritesUnderAConditionOnly) {
  ObjectStore store;
  const auto client = store.Client();
  const std::string etag = *client->Put("a", ContentOf("1"), S3Condition::Absent());
  EXPECT_EQ(client->Put("a", ContentOf("2"), S3Condition::Absent()).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(client->Put("a", ContentOf("2"), S3Condition::Matches("\"x\"")).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*Get(client.get()), "1");
  EXPECT_TRUE(client->Put("a", ContentOf("2"), S3Condition::Matches(etag)).ok());
  EXPECT_EQ(*Get(client.get()), "2");
}

TEST(S3ClientTest, ListsAllPages) {
  ObjectStore store;
  const auto client = store.Client();
  EXPECT_TRUE(client->List("a/")->empty());
  for (const char* key : {"a/1", "a/2", "a/3", "a/4", "a/5", "a", "b/1", "aa"})
    ASSERT_TRUE(client->Put(key, ContentOf(key)).ok());
  const auto listed = client->List("a/");
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 5);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*listed)[i].key, absl::StrCat("a/", i + 1));
    EXPECT_EQ((*listed)[i].bytes, 3);
  }
}

TEST(S3ClientTest, SendsAFileInParts) {
  testing::ScratchFolder folder;
  std::string bytes;
  for (int i = 0; bytes.size() < 300'000; ++i) absl::StrAppend(&bytes, i, ",");
  ASSERT_TRUE(WriteFileAtomically(folder.File("file"), bytes).ok());
  ObjectStore store;
  const auto client = store.Client(1, /*part_bytes=*/100'000);
  const auto put = client->Put("a", *ContentOfFile(folder.File("file")));
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(store.objects()["a"].etag, *put);
  EXPECT_EQ(*Get(client.get()), bytes);
  EXPECT_EQ(client->Head("a")->sha256, ToHex(Sha256(bytes)));
  EXPECT_EQ(store.requests(), 1 + 4 + 1 + 1 + 1 + 1) << "begin, parts, end, head; get, head";
}

TEST(S3ClientTest, AbandonsPartsWhenOneFails) {
  ObjectStore store;
  std::string last;
  store.SetFault([&](const std::string& method, const std::string&, int n) {
    last = method;
    return n == 2 ? StoreFault::kRefuse : StoreFault::kNone;
  });
  const std::string bytes(250'000, 'x');
  EXPECT_EQ(store.Client(1, 100'000)->Put("a", ContentOf(bytes)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(last, "DELETE");
  EXPECT_TRUE(store.objects().empty());
}

TEST(S3ClientTest, AbandonsPartsWhenItIsCancelled) {
  ObjectStore store;
  std::string last;
  std::atomic<bool> cancelled = false;
  store.SetFault([&](const std::string& method, const std::string&, int n) {
    last = method;
    cancelled = cancelled || n == 2;
    return StoreFault::kNone;
  });
  const auto client = store.Client()->With(
      {.tries = 1, .part_bytes = 100'000, .cancelled = [&] { return cancelled.load(); }});
  EXPECT_FALSE(client->Put("a", ContentOf(std::string(250'000, 'x'))).ok());
  EXPECT_EQ(last, "DELETE");
  EXPECT_TRUE(store.objects().empty());
}

TEST(S3ClientTest, TriesAgainWhatMayPass) {
  for (const StoreFault fault : {StoreFault::kRefuse, StoreFault::kLose, StoreFault::kCut}) {
    ObjectStore store;
    store.SetFault([&](const std::string&, const std::string&, int n) {
      return n < 2 ? fault : StoreFault::kNone;
    });
    EXPECT_TRUE(store.Client(3)->Put("a", ContentOf("1")).ok());
    EXPECT_EQ(store.requests(), 3);
    EXPECT_EQ(store.objects()["a"].bytes, "1");
  }
}

// Whoever writes under a condition may have to look again first.
TEST(S3ClientTest, TriesAConditionalWriteOnce) {
  ObjectStore store;
  store.SetFault([](const std::string&, const std::string&, int) { return StoreFault::kRefuse; });
  EXPECT_EQ(store.Client(5)->Put("a", ContentOf("1"), S3Condition::Absent()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.requests(), 1);
}

TEST(S3ClientTest, StopsWhenItIsCancelled) {
  ObjectStore store;
  store.SetFault([](const std::string&, const std::string&, int) { return StoreFault::kRefuse; });
  const auto client = store.Client()->With({.tries = 1000, .cancelled = [] { return true; }});
  EXPECT_FALSE(client->Delete("a").ok());
  EXPECT_LE(store.requests(), 1);
}

TEST(S3ClientTest, GivesUpAfterItsTries) {
  ObjectStore store;
  store.SetFault([](const std::string&, const std::string&, int) { return StoreFault::kRefuse; });
  const absl::Status status = store.Client(2)->Delete("a/b");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("s3://runs/a/b: DELETE: 503"));
  EXPECT_EQ(store.requests(), 2);
}

// Answers of a server, and what becomes of them.
class AnswersTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Answered(const std::vector<std::string>& answers) {
    ScriptedServer server({answers});
    S3Client client(
        {.server = {.host = "127.0.0.1", .port = server.port(), .path = "/runs"},
         .region = "here",
         .prefix = "p/",
         .url = "s3://runs/p"},
        [](const char*) { return "secret"; }, &clock_,
        {.tries = static_cast<int>(answers.size()), .first_pause = absl::ZeroDuration()});
    absl::StatusOr<std::string> got = Get(&client);
    for (size_t i = 0; i < answers.size(); ++i) requests_.push_back(server.request(i));
    return got;
  }
  static std::string Answer(const std::string& status, const std::string& body,
                            const std::string& headers = "") {
    return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: ", body.size(), "\r\n", headers,
                        "\r\n", body);
  }
  static std::string Error(const std::string& status, const std::string& code) {
    return Answer(status, absl::StrCat("<?xml?><Error><Code>", code,
                                       "</Code><Message>why</Message></Error>"));
  }

  testing::FakeClock clock_;
  std::vector<std::string> requests_;
};

TEST_F(AnswersTest, AreStatuses) {
  const struct {
    std::string answer;
    absl::StatusCode code;
    std::string says;
  } cases[] = {
      {Error("404 Not Found", "NoSuchKey"), absl::StatusCode::kNotFound, "NoSuchKey: why"},
      {Error("404 Not Found", "NoSuchBucket"), absl::StatusCode::kInvalidArgument, "NoSuchBucket"},
      {Error("403 Forbidden", "AccessDenied"), absl::StatusCode::kPermissionDenied, "AccessDenied"},
      {Error("400 Bad", "ExpiredToken"), absl::StatusCode::kPermissionDenied, "ExpiredToken"},
      {Error("400 Bad", "InvalidRequest"), absl::StatusCode::kInvalidArgument, "InvalidRequest"},
      {Error("503 Slow", "SlowDown"), absl::StatusCode::kUnavailable, "503 SlowDown: why"},
      {Error("429 Slow", ""), absl::StatusCode::kUnavailable, "429"},
      {Error("409 Conflict", "ConditionalRequestConflict"), absl::StatusCode::kUnavailable, "409"},
      {Error("405 No", "MethodNotAllowed"), absl::StatusCode::kInternal, "MethodNotAllowed"},
      {Answer("301 Moved", "", "x-amz-bucket-region: eu-west-1\r\n"),
       absl::StatusCode::kInvalidArgument, "AWS_REGION=eu-west-1"},
      {Answer("500 Oops", std::string(5'000'000, '<')), absl::StatusCode::kUnavailable, "too long"},
      {"garbage\r\n\r\n", absl::StatusCode::kUnavailable, "http://127.0.0.1"},
      {Answer("403 No", "<Code>\x01\n<Message>"), absl::StatusCode::kPermissionDenied, "\\001\\n"},
  };
  for (const auto& [answer, code, says] : cases) {
    const absl::Status status = Answered({answer}).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("secret")));
  }
}

TEST_F(AnswersTest, AreComparedWithTheSha256ThatWasStored) {
  const std::string sha256 = "x-amz-meta-distro-sha256: " + ToHex(Sha256("bytes")) + "\r\n";
  EXPECT_EQ(*Answered({Answer("200 OK", "bytes", sha256)}), "bytes");
  EXPECT_EQ(Answered({Answer("200 OK", "bytez", sha256)}).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(*Answered({Answer("200 OK", "bytez")}), "bytez") << "of another program";
}

// An answer to a HEAD has no body that says why it was refused.
TEST_F(AnswersTest, CorrectTheClock) {
  const std::string skewed =
      "HTTP/1.1 403 Forbidden\r\nDate: Thu, 16 Nov 2023 22:13:20 GMT\r\nContent-Length: "
      "0\r\n\r\n";
  EXPECT_EQ(*Answered({skewed, Answer("200 OK", "bytes")}), "bytes");
  EXPECT_THAT(requests_[0], HasSubstr("x-amz-date: 20231114T221320Z"));
  EXPECT_THAT(requests_[1], HasSubstr("x-amz-date: 20231116T221320Z"));
}

}  // namespace
}  // namespace distro
