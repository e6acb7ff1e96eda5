#include "common/net/http/http_get.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http/empty_body.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/string_body.hpp"
#include "boost/beast/http/write.hpp"
#include "common/base/address.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// One GET as a sequence of asynchronous steps. Run executes them until one fails or time is over.
class Get {
 public:
  Get(const std::string& address, const HostPort& target, const std::string& path, size_t max_bytes)
      : request_(http::verb::get, path, 11), max_bytes_(max_bytes) {
    request_.set(http::field::host, address);
    request_.keep_alive(false);
    parser_.body_limit(max_bytes);
    parser_.header_limit(64 << 10);
    resolver_.async_resolve(
        target.host, absl::StrCat(target.port),
        [this](error_code error, const asio::ip::tcp::resolver::results_type& found) {
          if (Failed(error)) return;
          stream_.async_connect(found, [this](error_code failed, const auto&) { Send(failed); });
        });
  }

  // Returns the final error code.
  error_code Run(absl::Duration timeout) {
    io_.run_for(absl::ToChronoNanoseconds(timeout));
    return error_;
  }
  const http::response<http::string_body>& response() const { return parser_.get(); }

 private:
  bool Failed(error_code error) {
    if (error) error_ = error;
    return error.failed();
  }
  void Send(error_code error) {
    if (Failed(error)) return;
    http::async_write(stream_, request_, [this](error_code failed, size_t) { ReadHead(failed); });
  }
  void ReadHead(error_code error) {
    if (Failed(error)) return;
    http::async_read_header(stream_, buffer_, parser_,
                            [this](error_code failed, size_t) { ReadBody(failed); });
  }
  // The parser of Boost 1.74 applies its limit only to bodies without a Content-Length.
  void ReadBody(error_code error) {
    if (Failed(error)) return;
    if (parser_.content_length().value_or(0) > max_bytes_) {
      error_ = http::error::body_limit;
      return;
    }
    http::async_read(stream_, buffer_, parser_,
                     [this](error_code ended, size_t) { error_ = ended; });
  }

  error_code error_ = asio::error::timed_out;  // until a step ends
  http::request<http::empty_body> request_;
  const size_t max_bytes_;
  http::response_parser<http::string_body> parser_;
  boost::beast::flat_buffer buffer_;
  asio::io_context io_;
  asio::ip::tcp::resolver resolver_{io_};
  boost::beast::tcp_stream stream_{io_};
};

}  // namespace

absl::StatusOr<HttpText> HttpGet(const std::string& address, const std::string& path,
                                 absl::Duration timeout, size_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(address));
  Get get(address, target, path, max_bytes);
  if (const error_code error = get.Run(timeout)) {
    return absl::UnavailableError(absl::StrCat("http://", address, path, ": ", error.message()));
  }
  const auto& response = get.response();
  return HttpText{.status = static_cast<int>(response.result_int()),
                  .content_type = std::string(response[http::field::content_type]),
                  .body = response.body()};
}

}  // namespace distro
