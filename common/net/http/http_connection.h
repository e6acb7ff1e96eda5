// One connection of http_endpoint.h: reads a request, sends a response, closes. Everything runs on
// the I/O thread. The only header that includes Boost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/empty_body.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/serializer.hpp"
#include "boost/beast/http/string_body.hpp"
#include "common/net/http/http_endpoint.h"
#include "common/net/http/http_range.h"

namespace distro {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  struct Owner {
    // Called for a GET or HEAD without a body. The owner calls Answer, at once or later.
    std::function<void(HttpConnection*, HttpRequest)> asked;
    // Called before a response of this many bytes is sent.
    std::function<void(HttpConnection*, size_t)> sends;
    // Called once when the connection ends, for whatever reason.
    std::function<void(HttpConnection*)> ended;
  };

  // Borrows `limits` and `owner`.
  HttpConnection(boost::asio::ip::tcp::socket socket, uint64_t id, const HttpLimits& limits,
                 const Owner& owner);

  uint64_t id() const { return id_; }
  void Start();
  // Sends the response. Does nothing once the connection has ended.
  void Answer(HttpResponse response);
  // Closes the connection and drops unsent data. Does nothing once it has ended.
  void Abort();

 private:
  using Error = boost::system::error_code;

  void AbortAfter(absl::Duration time);
  void OnHeader(Error error);
  // Sets the response's headers for all of `content`, or for what the request asks of it.
  void BeginContent(std::shared_ptr<const HttpContent> content);
  // Sends the next piece of content_, and those after it.
  void SendContent();
  void OnSent();
  void Drain();
  void Close();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  const uint64_t id_;
  const HttpLimits& limits_;
  const Owner& owner_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>>
      serializer_;
  std::shared_ptr<const HttpContent> content_;
  ByteRange content_left_;  // to be sent
  std::string piece_;
  size_t drained_bytes_ = 0;
};

}  // namespace distro
