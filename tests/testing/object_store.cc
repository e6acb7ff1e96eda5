#include "tests/testing/object_store.h"

#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/string_body.hpp"
#include "boost/beast/http/write.hpp"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace distro::testing {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr char kSha256[] = "x-amz-meta-distro-sha256";

std::string Text(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct ObjectStore::Impl {
  Impl() : acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {}

  void Accept();
  void Serve(tcp::socket* socket);
  Response Act(const Request& request, const std::string& key, const std::string& query);
  Response Write(const Request& request, const std::string& key);
  Response List(const std::string& query);
  Response Multipart(const Request& request, const std::string& key, const std::string& query);
  void Put(const std::string& key, std::string bytes, std::string sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  boost::asio::io_context io;
  tcp::acceptor acceptor;
  std::thread thread;
  absl::Mutex mu;
  Fault fault ABSL_GUARDED_BY(mu);
  int requests ABSL_GUARDED_BY(mu) = 0;
  std::map<std::string, StoredObject> objects ABSL_GUARDED_BY(mu);
  std::map<int, std::string> parts ABSL_GUARDED_BY(mu);
  std::string sha256_of_parts ABSL_GUARDED_BY(mu);
  std::list<tcp::socket> sockets ABSL_GUARDED_BY(mu);
  std::vector<std::thread> connections ABSL_GUARDED_BY(mu);
};

void ObjectStore::Impl::Put(const std::string& key, std::string bytes, std::string sha256) {
  const std::string etag = absl::StrCat("\"", ToHex(Xxh3(bytes)), "\"");
  objects[key] = {std::move(bytes), etag, std::move(sha256)};
}

Response ObjectStore::Impl::Write(const Request& request, const std::string& key) {
  Response response;
  const auto there = objects.find(key);
  const std::string wanted = Text(request[http::field::if_match]);
  const bool absent = request[http::field::if_none_match] == "*";
  if ((absent && there != objects.end()) ||
      (!wanted.empty() && (there == objects.end() || there->second.etag != wanted))) {
    response.result(412);
    return response;
  }
  Put(key, request.body(), Text(request[kSha256]));
  response.set(http::field::etag, objects[key].etag);
  return response;
}

Response ObjectStore::Impl::Multipart(const Request& request, const std::string& key,
                                      const std::string& query) {
  Response response;
  int number = 0;
  for (const absl::string_view pair : absl::StrSplit(query, '&')) {
    if (absl::StartsWith(pair, "partNumber=")) {
      EXPECT_TRUE(absl::SimpleAtoi(pair.substr(11), &number));
    }
  }
  if (absl::StrContains(query, "uploads=")) {
    parts.clear();
    sha256_of_parts = Text(request[kSha256]);
    response.body() = "<R><UploadId>an upload/1+</UploadId></R>";
  } else if (!absl::StrContains(query, "uploadId=an%20upload%2F1%2B")) {
    response.result(404);
  } else if (request.method() == http::verb::put) {
    parts[number] = request.body();
    response.set(http::field::etag, absl::StrCat("\"part ", number, "\""));
  } else if (request.method() == http::verb::post) {
    std::string whole;
    for (const auto& [part, bytes] : parts) whole += bytes;
    Put(key, whole, sha256_of_parts);
    response.body() = "<R><ETag>&quot;etag&quot;</ETag></R>";
  } else {
    parts.clear();
  }
  return response;
}

// Two objects at a time.
Response ObjectStore::Impl::List(const std::string& query) {
  std::string prefix, after;
  for (const absl::string_view pair : absl::StrSplit(query, '&')) {
    const std::vector<std::string> pieces = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const std::string value = absl::StrReplaceAll(pieces[1], {{"%2F", "/"}});
    if (pieces[0] == "prefix") prefix = value;
    if (pieces[0] == "start-after") after = value;
  }
  Response response;
  std::string& xml = response.body();
  int listed = 0;
  bool more = false;
  for (auto object = objects.upper_bound(after); object != objects.end(); ++object) {
    if (!absl::StartsWith(object->first, prefix)) continue;
    more = listed == 2;
    if (more) break;
    ++listed;
    absl::StrAppend(&xml, "<Contents><Key>", object->first, "</Key><Size>",
                    object->second.bytes.size(), "</Size></Contents>");
  }
  xml = absl::StrCat("<?xml?><R><IsTruncated>", more ? "true" : "false", "</IsTruncated>", xml,
                     "</R>");
  return response;
}

Response ObjectStore::Impl::Act(const Request& request, const std::string& key,
                                const std::string& query) {
  if (absl::StrContains(query, "list-type=2")) return List(query);
  if (!query.empty()) return Multipart(request, key, query);
  if (request.method() == http::verb::put) return Write(request, key);
  Response response;
  const auto there = objects.find(key);
  if (request.method() == http::verb::delete_) {
    objects.erase(key);
    response.result(204);
  } else if (there == objects.end()) {
    response.result(404);
  } else {
    response.set(http::field::etag, there->second.etag);
    if (!there->second.sha256.empty()) response.set(kSha256, there->second.sha256);
    response.body() = there->second.bytes;
  }
  return response;
}

void ObjectStore::Impl::Serve(tcp::socket* socket) {
  error_code error;
  boost::beast::flat_buffer buffer;
  while (!error) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(uint64_t{1} << 30);
    http::read(*socket, buffer, parser, error);
    if (error) break;
    const Request& request = parser.get();
    const std::vector<std::string> target =
        absl::StrSplit(Text(request.target()), absl::MaxSplits('?', 1));
    const std::string key = target[0].substr(std::min<size_t>(target[0].size(), 6));  // "/runs/"
    Fault decide;
    int n = 0;
    {
      absl::MutexLock lock(&mu);
      decide = fault;
      n = requests++;
    }
    const StoreFault happens =
        decide ? decide(Text(request.method_string()), key, n) : StoreFault::kNone;
    Response response;
    if (happens == StoreFault::kRefuse) response.result(503);
    if (happens == StoreFault::kForbid) response.result(403);
    if (happens == StoreFault::kNone || happens == StoreFault::kLose) {
      absl::MutexLock lock(&mu);
      response = Act(request, key, target.size() > 1 ? target[1] : "");
    }
    if (happens == StoreFault::kLose || happens == StoreFault::kCut) break;
    response.version(11);
    response.prepare_payload();
    if (request.method() == http::verb::head) {
      http::response_serializer<http::string_body> head(response);
      http::write_header(*socket, head, error);
    } else {
      http::write(*socket, response, error);
    }
  }
  error_code ignored;
  socket->shutdown(tcp::socket::shutdown_both, ignored);
}

void ObjectStore::Impl::Accept() {
  while (true) {
    tcp::socket socket(io);
    error_code error;
    acceptor.accept(socket, error);
    if (error) return;
    absl::MutexLock lock(&mu);
    sockets.push_back(std::move(socket));
    connections.emplace_back([this, open = &sockets.back()] { Serve(open); });
  }
}

ObjectStore::ObjectStore() : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([this] { impl_->Accept(); });
}

ObjectStore::~ObjectStore() {
  // A blocked accept() ends with the shutdown of its socket.
  shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);
  impl_->thread.join();
  std::vector<std::thread> connections;
  {
    absl::MutexLock lock(&impl_->mu);
    for (tcp::socket& socket : impl_->sockets) {
      error_code ignored;
      socket.shutdown(tcp::socket::shutdown_both, ignored);
    }
    connections.swap(impl_->connections);
  }
  for (std::thread& connection : connections) connection.join();
}

std::unique_ptr<S3Client> ObjectStore::Client(int tries, uint64_t part_bytes) const {
  S3Place place{.server = {.host = "127.0.0.1",
                           .port = impl_->acceptor.local_endpoint().port(),
                           .path = "/runs"},
                .region = "us-east-1",
                .prefix = "",
                .url = "s3://runs"};
  const Environment environment = [](const char* name) -> std::optional<std::string> {
    if (absl::StrContains(name, "KEY")) return "test";
    return std::nullopt;
  };
  return std::make_unique<S3Client>(
      std::move(place), environment, Clock::Real(),
      S3Options{.tries = tries, .first_pause = absl::Milliseconds(1), .part_bytes = part_bytes});
}

void ObjectStore::SetFault(Fault fault) {
  absl::MutexLock lock(&impl_->mu);
  impl_->fault = std::move(fault);
}

int ObjectStore::requests() const {
  absl::MutexLock lock(&impl_->mu);
  return impl_->requests;
}

std::map<std::string, StoredObject> ObjectStore::objects() const {
  absl::MutexLock lock(&impl_->mu);
  return impl_->objects;
}

void ObjectStore::Set(const std::string& key, const char* bytes) {
  absl::MutexLock lock(&impl_->mu);
  impl_->objects.erase(key);
  if (bytes != nullptr) impl_->Put(key, bytes, "");
}

}  // namespace distro::testing
