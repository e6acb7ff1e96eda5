#include "common/net/http/http_client.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/address.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/host_name_verification.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/buffer_body.hpp"
#include "boost/beast/http/empty_body.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/write.hpp"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"
#include "common/net/dns/look_up.h"
#include "common/net/http/http_range.h"

namespace distro {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kPieceBytes = 64 << 10;
constexpr uint32_t kHeaderBytes = 16 << 10;
constexpr absl::Duration kSlice = absl::Milliseconds(50);

using Request = http::request<http::empty_body>;
using Parser = http::response_parser<http::buffer_body>;
using Then = std::function<void(error_code)>;

// The operations on a connected socket, plain or encrypted.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual tcp::socket& socket() = 0;
  virtual void Handshake(Then then) = 0;
  // What OpenSSL says of the server's certificate: X509_V_OK, or why it was refused.
  virtual int Verdict() = 0;
  virtual void WriteHead(Request& request, Then then) = 0;
  virtual void WriteBody(asio::const_buffer bytes, Then then) = 0;
  virtual void ReadHead(boost::beast::flat_buffer& buffer, Parser& parser, Then then) = 0;
  virtual void ReadSome(boost::beast::flat_buffer& buffer, Parser& parser, Then then) = 0;
};

template <typename Stream>
class ChannelOf final : public Channel {
 public:
  template <typename... Arguments>
  explicit ChannelOf(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}

  Stream& stream() { return stream_; }
  tcp::socket& socket() override {
    if constexpr (std::is_same_v<Stream, tcp::socket>) {
      return stream_;
    } else {
      return stream_.next_layer();
    }
  }
  void Handshake(Then then) override {
    if constexpr (std::is_same_v<Stream, tcp::socket>) {
      then({});
    } else {
      stream_.async_handshake(asio::ssl::stream_base::client, std::move(then));
    }
  }
  int Verdict() override {
    if constexpr (std::is_same_v<Stream, tcp::socket>) {
      return X509_V_OK;
    } else {
      return static_cast<int>(SSL_get_verify_result(stream_.native_handle()));
    }
  }
  void WriteHead(Request& request, Then then) override {
    http::async_write(stream_, request, [then](error_code error, size_t) { then(error); });
  }
  void WriteBody(asio::const_buffer bytes, Then then) override {
    asio::async_write(stream_, bytes, [then](error_code error, size_t) { then(error); });
  }
  void ReadHead(boost::beast::flat_buffer& buffer, Parser& parser, Then then) override {
    http::async_read_header(stream_, buffer, parser,
                            [then](error_code error, size_t) { then(error); });
  }
  void ReadSome(boost::beast::flat_buffer& buffer, Parser& parser, Then then) override {
    http::async_read_some(stream_, buffer, parser,
                          [then](error_code error, size_t) { then(error); });
  }

 private:
  Stream stream_;
};

// How long to wait for something.
class Wait {
 public:
  Wait(const HttpClientOptions& options, absl::Duration patience)
      : options_(options),
        patience_(patience),
        deadline_(Clock::Real()->MonotonicNow() + patience) {}

  // Cancelled, or Unavailable: it was long enough.
  absl::Status Check() const {
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("cancelled");
    if (Clock::Real()->MonotonicNow() < deadline_) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("no answer within ", absl::FormatDuration(patience_)));
  }

 private:
  const HttpClientOptions& options_;
  const absl::Duration patience_;
  const absl::Duration deadline_;
};

// Ends a transfer that moves, but too slowly to be of use.
class MeanRate {
 public:
  explicit MeanRate(const HttpClientOptions& options)
      : options_(options), begin_(Clock::Real()->MonotonicNow()) {}

  absl::Status Check(uint64_t bytes) const {
    const absl::Duration time = Clock::Real()->MonotonicNow() - begin_;
    const double seconds = absl::ToDoubleSeconds(time);
    if (time <= options_.answer_patience ||
        static_cast<double>(bytes) >= seconds * options_.least_bytes_per_second)
      return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(bytes, " bytes in ", seconds, " s: too slow"));
  }

 private:
  const HttpClientOptions& options_;
  const absl::Duration begin_;
};

tcp::endpoint EndpointOf(const SocketAddress& address) {
  tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), &address.storage, endpoint.capacity());
  return endpoint;
}

// Where a proxy is the only way out, an error of the direct way alone would not say so.
absl::Status NameUnusedProxy(const absl::Status& status) {
  for (const char* variable : {"HTTPS_PROXY", "https_proxy"}) {
    const char* const proxy = std::getenv(variable);
    if (absl::IsUnavailable(status) && proxy != nullptr && *proxy != '\0')
      return WithMessage(
          status, absl::StrCat(status.message(), "; ", variable, " is set, and not used here"));
  }
  return status;
}

// Where a certificate is out of date, the clock may be wrong. `verdict` is OpenSSL's.
absl::Status NameClock(const absl::Status& status, int verdict) {
  if (verdict != X509_V_ERR_CERT_NOT_YET_VALID && verdict != X509_V_ERR_CERT_HAS_EXPIRED)
    return status;
  const std::string now = DateText(Clock::Real()->WallNow());
  return WithMessage(status,
                     absl::StrCat(status.message(), ": ", X509_verify_cert_error_string(verdict),
                                  ", and the clock of this machine says ", now,
                                  "; set the clock of this machine if it is wrong"));
}

}  // namespace

// One connection. After an error it is of no further use.
class HttpClient::Connection {
 public:
  // `look_up` outlives the connection.
  Connection(const HttpUrl& server, const HttpClientOptions& options,
             std::optional<LookUp>* look_up)
      : server_(server), options_(options), look_up_(look_up) {
    buffer_.reserve(kPieceBytes);  // Beast reads no more at a time than there is room for
  }
  // Handlers of operations that were given up may still refer to the members.
  ~Connection() { io_.stop(); }

  absl::Status Open();
  // Whether the next request may use it.
  bool reusable() const { return reusable_; }
  // Whether the server closed the connection instead of answering the last request.
  bool unanswered() const { return unanswered_; }
  absl::Status Send(const HttpCall& request, HeadCheck check, Sink sink);

 private:
  absl::Status MakeChannel();
  // Starts an operation and waits for its end.
  absl::Status Await(absl::Duration patience, absl::FunctionRef<void(Then)> start);
  // The server's addresses.
  absl::StatusOr<std::vector<SocketAddress>> FindAddresses();
  absl::Status Connect();
  absl::Status Handshake();
  absl::Status WriteHead(const HttpCall& request);
  absl::Status WriteBody(const HttpCall& request);
  absl::Status ReadHead(Parser* parser);
  absl::Status ReadBody(Parser* parser, Sink sink);

  const HttpUrl& server_;
  const HttpClientOptions& options_;
  std::optional<LookUp>* const look_up_;
  asio::io_context io_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  std::unique_ptr<Channel> channel_;
  // The limit bounds what a response may hold up, such as a chunk's extension without an end.
  boost::beast::flat_buffer buffer_{kPieceBytes + kHeaderBytes};
  std::string piece_;  // of a request's body; a write that was given up may still refer to it
  bool reusable_ = false;
  bool unanswered_ = false;
  bool failed_ = false;  // the last operation ended with an error, and was not given up
};

absl::Status HttpClient::Connection::Await(absl::Duration patience,
                                           absl::FunctionRef<void(Then)> start) {
  // Shared, because the operation may end after this function has given it up.
  const auto ended = std::make_shared<std::optional<error_code>>();
  start([ended](error_code error) { *ended = error; });
  const Wait wait(options_, patience);
  while (!*ended) {
    DISTRO_RETURN_IF_ERROR(wait.Check());
    io_.restart();
    io_.run_one_for(absl::ToChronoNanoseconds(kSlice));
  }
  failed_ = ended->value().failed();
  return failed_ ? absl::UnavailableError((*ended)->message()) : absl::OkStatus();
}

absl::Status HttpClient::Connection::MakeChannel() {
  if (!server_.tls) {
    channel_ = std::make_unique<ChannelOf<tcp::socket>>(io_);
    return absl::OkStatus();
  }
  error_code error;
  tls_.set_default_verify_paths(error);
  if (error) return absl::UnavailableError(absl::StrCat("the system's CAs: ", error.message()));
  auto channel = std::make_unique<ChannelOf<asio::ssl::stream<tcp::socket>>>(io_, tls_);
  channel->stream().set_verify_mode(asio::ssl::verify_peer);
  channel->stream().set_verify_callback(asio::ssl::host_name_verification(server_.host));
  asio::ip::make_address(server_.host, error);
  const bool is_name = error.failed();  // an address is no name for SNI (RFC 6066)
  if (is_name) SSL_set_tlsext_host_name(channel->stream().native_handle(), server_.host.c_str());
  channel_ = std::move(channel);
  return absl::OkStatus();
}

absl::Status HttpClient::Connection::Open() {
  DISTRO_RETURN_IF_ERROR(MakeChannel());
  DISTRO_RETURN_IF_ERROR(NameUnusedProxy(Connect()));
  return Handshake();
}

// Asio's resolver is not used: its io_context waits for it when it is destroyed.
absl::StatusOr<std::vector<SocketAddress>> HttpClient::Connection::FindAddresses() {
  // A look-up that was given up and still goes on is waited for again, so that however often a
  // client tries while the DNS server is silent, it has one thread there.
  std::optional<LookUp>& look_up = *look_up_;
  if (!look_up || look_up->WaitFor(absl::ZeroDuration()))
    look_up.emplace(server_.host, server_.port, options_.resolver);
  const Wait wait(options_, options_.patience);
  while (!look_up->WaitFor(kSlice)) DISTRO_RETURN_IF_ERROR(wait.Check());
  return look_up->result();
}

absl::Status HttpClient::Connection::Handshake() {
  const absl::Status status =
      Await(options_.patience, [&](Then then) { channel_->Handshake(std::move(then)); });
  return status.ok() ? status : NameClock(status, channel_->Verdict());
}

// Each address has its time: an unreachable one does not hide the next.
absl::Status HttpClient::Connection::Connect() {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<SocketAddress> found, FindAddresses());
  absl::Status status = absl::UnavailableError("no address");
  for (const SocketAddress& address : found) {
    error_code ignored;
    channel_->socket().close(ignored);
    status = Await(options_.patience, [&](Then then) {
      channel_->socket().async_connect(EndpointOf(address), std::move(then));
    });
    if (!absl::IsUnavailable(status)) break;
  }
  // A small body follows its head at once, without waiting for the acknowledgement of the head.
  error_code ignored;
  if (status.ok()) channel_->socket().set_option(tcp::no_delay(true), ignored);
  return status;
}

absl::Status HttpClient::Connection::WriteHead(const HttpCall& request) {
  Request head(http::string_to_verb(request.method), server_.path + request.path, 11);
  head.set(http::field::host, server_.Authority());
  for (const auto& [name, value] : request.headers) head.set(name, value);
  if (request.body != nullptr) head.content_length(request.body_bytes);
  return Await(options_.patience, [&](Then then) { channel_->WriteHead(head, std::move(then)); });
}

absl::Status HttpClient::Connection::WriteBody(const HttpCall& request) {
  const MeanRate rate(options_);
  for (uint64_t sent = 0; sent < request.body_bytes;) {
    const size_t most = std::min<uint64_t>(request.body_bytes - sent, kPieceBytes);
    DISTRO_ASSIGN_OR_RETURN(piece_, request.body(sent, most));
    DISTRO_RETURN_IF_ERROR(Await(options_.patience, [&](Then then) {
      channel_->WriteBody(asio::buffer(piece_), std::move(then));
    }));
    sent += piece_.size();
    DISTRO_RETURN_IF_ERROR(rate.Check(sent));
  }
  return absl::OkStatus();
}

absl::Status HttpClient::Connection::ReadHead(Parser* parser) {
  parser->header_limit(kHeaderBytes);
  // In Boost 1.74, no limit would mean a limit of 0.
  parser->body_limit(std::numeric_limits<uint64_t>::max());
  return Await(options_.answer_patience,
               [&](Then then) { channel_->ReadHead(buffer_, *parser, std::move(then)); });
}

absl::Status HttpClient::Connection::Send(const HttpCall& request, HeadCheck check, Sink sink) {
  Parser parser;
  parser.skip(request.method == "HEAD");
  unanswered_ = true;
  reusable_ = false;
  failed_ = false;
  DISTRO_RETURN_IF_ERROR(WriteHead(request));
  const absl::Status written = WriteBody(request);
  if (!written.ok() && !failed_) return written;
  // A server may refuse a request before it has read the body, and close the connection.
  const absl::Status read = ReadHead(&parser);
  if (!read.ok()) return written.ok() ? read : written;
  unanswered_ = false;
  HttpHead head{.status = static_cast<int>(parser.get().result_int())};
  for (const auto& field : parser.get())
    head.headers.emplace_back(field.name_string(), field.value());
  DISTRO_RETURN_IF_ERROR(check(head));
  DISTRO_RETURN_IF_ERROR(ReadBody(&parser, sink));
  reusable_ = written.ok() && parser.keep_alive();
  return absl::OkStatus();
}

absl::Status HttpClient::Connection::ReadBody(Parser* parser, Sink sink) {
  std::array<char, kPieceBytes> piece;
  const MeanRate rate(options_);
  uint64_t received = 0;
  while (!parser->is_done()) {
    parser->get().body().data = piece.data();
    parser->get().body().size = piece.size();
    const absl::Duration patience = received == 0 ? options_.answer_patience : options_.patience;
    DISTRO_RETURN_IF_ERROR(Await(patience, [&](Then then) {
      channel_->ReadSome(buffer_, *parser, [then](error_code error) {
        then(error == http::error::need_buffer ? error_code() : error);
      });
    }));
    const size_t size = piece.size() - parser->get().body().size;
    DISTRO_RETURN_IF_ERROR(sink(received, {piece.data(), size}));
    received += size;
    DISTRO_RETURN_IF_ERROR(rate.Check(received));
  }
  return absl::OkStatus();
}

absl::string_view HttpHead::Header(absl::string_view name) const {
  for (const auto& [each, value] : headers) {
    if (absl::EqualsIgnoreCase(each, name)) return value;
  }
  return {};
}

HttpClient::HttpClient(HttpUrl server, HttpClientOptions options)
    : server_(std::move(server)), options_(std::move(options)) {}

HttpClient::~HttpClient() = default;

absl::Status HttpClient::Send(const HttpCall& request, HeadCheck check, Sink sink) {
  return Connected(request.path, [&](Connection& it) { return it.Send(request, check, sink); });
}

absl::Status HttpClient::Get(const std::string& path, uint64_t offset, Sink sink) {
  HttpCall request{.path = path};
  if (offset > 0) request.headers.emplace_back("Range", absl::StrCat("bytes=", offset, "-"));
  uint64_t begin = 0;
  return Send(
      request,
      [&](const HttpHead& head) -> absl::Status {
        begin = head.status == 206 ? offset : 0;
        if (head.status == 200) return absl::OkStatus();
        if (head.status == 404) return absl::NotFoundError("404 Not Found");
        if (head.status != 206) return absl::UnavailableError(absl::StrCat("status ", head.status));
        if (BeginOfContentRange(head.Header("Content-Range")) == offset) return absl::OkStatus();
        return absl::UnavailableError("another range than the one asked for");
      },
      [&](uint64_t at, absl::string_view bytes) { return sink(begin + at, bytes); });
}

absl::StatusOr<HttpText> HttpClient::GetText(const std::string& path, size_t max_bytes) {
  HttpText text;
  DISTRO_RETURN_IF_ERROR(Send(
      {.path = path},
      [&](const HttpHead& head) {
        text = {head.status, std::string(head.Header("Content-Type")), ""};
        return absl::OkStatus();
      },
      [&](uint64_t /*offset*/, absl::string_view piece) {
        if (piece.size() > max_bytes - text.body.size())
          return absl::UnavailableError(
              absl::StrCat("the answer has more than ", max_bytes, " bytes"));
        text.body.append(piece.data(), piece.size());
        return absl::OkStatus();
      }));
  return text;
}

absl::Status HttpClient::Connected(const std::string& path,
                                   absl::FunctionRef<absl::Status(Connection&)> use) {
  const std::string where = absl::StrCat(server_.Text(), path);
  try {
    return Annotate(TryConnected(use), where);
  } catch (const boost::system::system_error& error) {  // Asio's: files or threads are exhausted
    connection_.reset();
    return Annotate(absl::UnavailableError(error.what()), where);
  }
}

absl::Status HttpClient::TryConnected(absl::FunctionRef<absl::Status(Connection&)> use) {
  while (true) {
    const bool kept = connection_ != nullptr;
    absl::Status status;
    if (!kept) {
      connection_ = std::make_unique<Connection>(server_, options_, &look_up_);
      status = connection_->Open();
    }
    if (status.ok()) status = use(*connection_);
    const bool unanswered = connection_->unanswered();
    if (!status.ok() || !connection_->reusable()) connection_.reset();
    // A server may close a connection that is idle: that says nothing about the next one.
    if (!kept || !unanswered || !absl::IsUnavailable(status)) return status;
  }
}

}  // namespace distro
