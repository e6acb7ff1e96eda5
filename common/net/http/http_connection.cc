#include "common/net/http/http_connection.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/write.hpp"

namespace distro {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Bytes of a refused body that are read: enough for a client that sends it before it reads the
// response.
constexpr size_t kDrainBytes = 64 << 10;
constexpr uint64_t kPieceBytes = 256 << 10;  // of a content

HttpResponse Refusal(http::status status) {
  return {.status = static_cast<int>(status),
          .body = std::string(http::obsolete_reason(status)) + "\n"};
}

// The response to a header block that could not be read; nullopt if the client disconnected.
std::optional<HttpResponse> RefusalOf(error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return Refusal(http::status::request_header_fields_too_large);
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return std::nullopt;
  if (error.category() != make_error_code(http::error::bad_method).category()) return std::nullopt;
  return Refusal(http::status::bad_request);
}

// The response that refuses a request before its route is looked up, if any.
std::optional<HttpResponse> RefusalOf(const http::request_parser<http::empty_body>& parser) {
  const auto& request = parser.get();
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    HttpResponse refusal = Refusal(http::status::method_not_allowed);
    refusal.headers["Allow"] = "GET, HEAD";
    return refusal;
  }
  const bool has_body =
      parser.content_length().value_or(0) > 0 || request.count(http::field::transfer_encoding) > 0;
  if (has_body) return Refusal(http::status::payload_too_large);
  return std::nullopt;
}

}  // namespace

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, uint64_t id, const HttpLimits& limits,
                               const Owner& owner)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      id_(id),
      limits_(limits),
      owner_(owner),
      buffer_(limits.header_bytes) {
  parser_.header_limit(static_cast<uint32_t>(limits.header_bytes));
  // OnHeader refuses every body. In Boost 1.74, no limit would mean a limit of 0.
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
}

void HttpConnection::Start() {
  AbortAfter(limits_.request_time);
  http::async_read_header(
      socket_, buffer_, parser_,
      [self = shared_from_this()](error_code error, size_t) { self->OnHeader(error); });
}

void HttpConnection::AbortAfter(absl::Duration time) {
  timer_.expires_after(absl::ToChronoNanoseconds(time));
  timer_.async_wait([self = shared_from_this()](error_code) {
    // The timer may have been restarted while this handler was queued.
    if (self->timer_.expiry() <= std::chrono::steady_clock::now()) self->Abort();
  });
}

void HttpConnection::OnHeader(error_code error) {
  if (!socket_.is_open()) return;
  AbortAfter(limits_.answer_time);
  std::optional<HttpResponse> refusal = error ? RefusalOf(error) : RefusalOf(parser_);
  if (refusal) return Answer(*std::move(refusal));
  if (error) return Close();
  const auto target = parser_.get().target();
  absl::StatusOr<HttpRequest> request = ParseHttpTarget({target.data(), target.size()});
  if (!request.ok()) return Answer(Refusal(http::status::bad_request));
  owner_.asked(this, *std::move(request));
}

void HttpConnection::Answer(HttpResponse response) {
  if (!socket_.is_open()) return;
  response_.result(static_cast<unsigned>(response.status));
  for (const auto& [name, value] : response.headers) response_.set(name, value);
  response_.set(http::field::content_type, response.content_type);
  response_.keep_alive(false);
  response_.body() = std::move(response.body);
  response_.prepare_payload();
  if (response.content != nullptr) BeginContent(std::move(response.content));
  owner_.sends(this, response_.body().size());
  serializer_.emplace(response_);
  const auto sent = [self = shared_from_this()](error_code error, size_t) {
    return error ? self->Close() : self->SendContent();
  };
  if (content_ != nullptr || parser_.get().method() == http::verb::head) {
    http::async_write_header(socket_, *serializer_, sent);
  } else {
    http::async_write(socket_, *serializer_, sent);
  }
}

void HttpConnection::BeginContent(std::shared_ptr<const HttpContent> content) {
  const auto& request = parser_.get();
  response_.set(http::field::accept_ranges, "bytes");
  const auto tag = response_.find(http::field::etag);
  if (tag != response_.end() && request[http::field::if_none_match] == tag->value()) {
    response_.result(http::status::not_modified);
    response_.erase(http::field::content_length);
    return;
  }
  const uint64_t bytes = content->bytes();
  const auto asked = request[http::field::range];
  content_left_ = {0, bytes};
  if (const auto range = ParseRange({asked.data(), asked.size()}, bytes)) {
    content_left_ = *range;
    const bool none = range->begin == range->end;
    response_.result(none ? http::status::range_not_satisfiable : http::status::partial_content);
    response_.set(http::field::content_range, ContentRange(*range, bytes));
  }
  response_.content_length(content_left_.end - content_left_.begin);
  if (request.method() == http::verb::get) content_ = std::move(content);
}

void HttpConnection::SendContent() {
  if (content_ == nullptr || content_left_.begin == content_left_.end) return OnSent();
  if (!socket_.is_open()) return;
  const uint64_t size = std::min(kPieceBytes, content_left_.end - content_left_.begin);
  absl::StatusOr<std::string> piece = content_->Read(content_left_.begin, size);
  if (!piece.ok()) return Abort();
  piece_ = *std::move(piece);
  content_left_.begin += size;
  AbortAfter(limits_.answer_time);
  owner_.sends(this, piece_.size());
  asio::async_write(socket_, asio::buffer(piece_),
                    [self = shared_from_this()](error_code error, size_t) {
                      return error ? self->Close() : self->SendContent();
                    });
}

// Waits for the client to close: only then has it read everything. Closing with unread data would
// reset the connection and could lose the response.
void HttpConnection::OnSent() {
  if (!socket_.is_open()) return;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  Drain();
}

void HttpConnection::Drain() {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(limits_.header_bytes),
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            self->drained_bytes_ += bytes;
                            if (error) return self->Close();
                            if (self->drained_bytes_ > kDrainBytes) return self->Abort();
                            self->Drain();
                          });
}

void HttpConnection::Abort() {
  if (!socket_.is_open()) return;
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  Close();
}

void HttpConnection::Close() {
  if (!socket_.is_open()) return;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  owner_.ended(this);
}

}  // namespace distro
