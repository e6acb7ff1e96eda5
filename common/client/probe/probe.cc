#include "common/client/probe/probe.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/base/utc_time.h"
#include "common/client/options/client_tls.h"
#include "common/client/probe/fault_text.h"
#include "common/client/probe/greeting.h"
#include "common/client/probe/socket.h"
#include "common/client/probe/tls_stream.h"

namespace distro {
namespace {

constexpr size_t kReadBytes = 4096;

std::string CertificateText(const CertificateFacts& facts) {
  return absl::StrCat("certificate by ", facts.issuer, " for ", absl::StrJoin(facts.names, ", "),
                      ", ", DateText(facts.not_before), " to ", DateText(facts.not_after));
}

// One run of the probe, step by step.
class Looking {
 public:
  Looking(const ProbeOptions& options, HostPort to) : options_(options), to_(std::move(to)) {}

  absl::StatusOr<ConnectionLook> Run(const TlsMaterial& material);

 private:
  using Step = absl::Status (Looking::*)();

  Deadline NewDeadline() const { return Deadline(options_.step_timeout, options_.wanted); }
  const std::string& server_name() const {
    const std::string& given = options_.channel.tls.server_name;
    return given.empty() ? to_.host : given;
  }

  // Each step writes its observation to `seen_`, and sets look_.fault if it failed. Returns
  // Cancelled, or an error of this machine.
  absl::Status FindAddresses();
  absl::Status Connect();
  absl::Status SecureIt();
  absl::Status SpeakHttp2();

  absl::Status Blame(ConnectionFault fault);
  absl::Status BlameHandshake(const TlsHandshake& seen);
  // Closes the connection, before the same server is tried in another way.
  void HangUp();
  // For a peer that closes without a word: tests whether it answers plaintext HTTP/2.
  bool SpeaksPlaintextHttp2() const;
  bool SpeaksTls() const;
  bool SpeaksWithoutOwnCertificate() const;

  const ProbeOptions& options_;
  const HostPort to_;
  TlsMaterial material_;
  std::vector<SocketAddress> addresses_;
  std::unique_ptr<TcpStream> tcp_;
  std::unique_ptr<TlsStream> tls_;
  std::string seen_;
  ConnectionLook look_;
};

absl::Status Looking::Blame(ConnectionFault fault) {
  seen_ = fault.what.substr(look_.address.size() + 2);
  look_.fault = std::move(fault);
  return absl::OkStatus();
}

absl::Status Looking::FindAddresses() {
  auto found = Resolve(to_.host, to_.port, NewDeadline());
  if (absl::IsCancelled(found.status())) return found.status();
  if (!found.ok()) return Blame(Unresolved(look_.address, to_.host, found.status()));
  addresses_ = *std::move(found);
  for (const SocketAddress& each : addresses_) look_.ip_addresses.push_back(each.Text());
  seen_ = absl::StrJoin(look_.ip_addresses, ", ");
  return absl::OkStatus();
}

absl::Status Looking::Connect() {
  auto connected = TcpStream::Connect(addresses_, NewDeadline());
  if (absl::IsCancelled(connected.status())) return connected.status();
  if (!connected.ok()) return Blame(Unreachable(look_.address, connected.status()));
  tcp_ = *std::move(connected);
  seen_ = tcp_->address();
  return absl::OkStatus();
}

void Looking::HangUp() {
  tls_.reset();
  tcp_.reset();
}

bool Looking::SpeaksPlaintextHttp2() const {
  const Deadline deadline = NewDeadline();
  auto tcp = TcpStream::Connect(addresses_, deadline);
  if (!tcp.ok() || !(*tcp)->Send(Http2Preface(), deadline).ok()) return false;
  const auto answer = (*tcp)->Receive(kReadBytes, deadline);
  return answer.ok() && GreetingOf(*answer) == Greeting::kHttp2;
}

bool Looking::SpeaksTls() const {
  const Deadline deadline = NewDeadline();
  auto tcp = TcpStream::Connect(addresses_, deadline);
  if (!tcp.ok()) return false;
  TlsStream tls(tcp->get(),
                {.material = {}, .server_name = server_name(), .now = options_.clock->WallNow()});
  return GreetingOf(tls.Handshake(deadline).first_bytes) == Greeting::kTls;
}

bool Looking::SpeaksWithoutOwnCertificate() const {
  const Deadline deadline = NewDeadline();
  auto tcp = TcpStream::Connect(addresses_, deadline);
  if (!tcp.ok()) return false;
  TlsMaterial anonymous = material_;
  anonymous.cert.clear();
  TlsStream tls(tcp->get(), {.material = std::move(anonymous),
                             .server_name = server_name(),
                             .now = options_.clock->WallNow()});
  if (tls.Handshake(deadline).result != TlsHandshake::Result::kDone) return false;
  const auto answer = tls.Receive(kReadBytes, deadline);  // an HTTP/2 server sends first
  return answer.ok() && GreetingOf(*answer) == Greeting::kHttp2;
}

absl::Status Looking::BlameHandshake(const TlsHandshake& seen) {
  const ChannelOptions& channel = options_.channel;
  switch (seen.result) {
    case TlsHandshake::Result::kRefusedByUs:
      return Blame(BadCertificate(look_.address, seen,
                                  {.ca_file = channel.tls.ca,
                                   .ca_names = tls_->ca_names(),
                                   .server_name = server_name(),
                                   .now = options_.clock->WallNow()}));
    case TlsHandshake::Result::kRefusedByPeer:
      return Blame(RefusedByServer(look_.address, channel.tls.cert, seen.error));
    case TlsHandshake::Result::kNoTls:
      switch (GreetingOf(seen.first_bytes)) {
        case Greeting::kHttp1:
          return Blame(Http1Server(look_.address));
        case Greeting::kHttp2:
          return Blame(PlaintextServer(look_.address));
        case Greeting::kNothing:
          HangUp();
          if (SpeaksPlaintextHttp2()) return Blame(PlaintextServer(look_.address));
          return Blame(NoAnswer(look_.address, absl::UnavailableError(seen.error)));
        default:
          return Blame(UnknownServer(look_.address, seen.first_bytes));
      }
    default:
      if (absl::IsCancelled(seen.status) || absl::IsInternal(seen.status)) return seen.status;
      return Blame(NoAnswer(look_.address, seen.status));
  }
}

absl::Status Looking::SecureIt() {
  tls_ = std::make_unique<TlsStream>(tcp_.get(), TlsConfig{.material = material_,
                                                           .server_name = server_name(),
                                                           .now = options_.clock->WallNow()});
  const TlsHandshake seen = tls_->Handshake(NewDeadline());
  look_.certificate = seen.certificate;
  look_.tls_version = seen.version;
  look_.alpn = seen.alpn;
  if (seen.result != TlsHandshake::Result::kDone) return BlameHandshake(seen);
  if (seen.alpn != "h2") return Blame(NoHttp2(look_.address, seen.alpn));
  seen_ = absl::StrCat(seen.version, ", ALPN ", seen.alpn);
  if (seen.certificate) absl::StrAppend(&seen_, ", ", CertificateText(*seen.certificate));
  return absl::OkStatus();
}

absl::Status Looking::SpeakHttp2() {
  const Deadline deadline = NewDeadline();
  ByteStream* const stream =
      tls_ != nullptr ? static_cast<ByteStream*>(tls_.get()) : static_cast<ByteStream*>(tcp_.get());
  absl::Status status = stream->Send(Http2Preface(), deadline);
  std::string bytes;
  // The first frame's header identifies HTTP/2; it may come in pieces.
  while (status.ok() && GreetingOf(bytes) != Greeting::kHttp2 && bytes.size() < kGreetingBytes) {
    const absl::StatusOr<std::string> more = stream->Receive(kReadBytes, deadline);
    status = more.status();
    if (status.ok() && more->empty()) status = absl::UnavailableError("the connection was closed");
    if (more.ok()) absl::StrAppend(&bytes, *more);
  }
  if (absl::IsCancelled(status)) return status;
  const absl::string_view first_bytes = absl::string_view(bytes).substr(0, kGreetingBytes);
  switch (GreetingOf(first_bytes)) {
    case Greeting::kHttp2:
      seen_ = "SETTINGS";
      return absl::OkStatus();
    case Greeting::kHttp1:
      return Blame(Http1Server(look_.address));
    case Greeting::kTls:
      return Blame(TlsServer(look_.address));
    case Greeting::kOther:
      return Blame(UnknownServer(look_.address, first_bytes));
    case Greeting::kNothing:
      break;
  }
  if (absl::IsUnauthenticated(status)) {
    return Blame(RefusedByServer(look_.address, options_.channel.tls.cert, status.message()));
  }
  const bool closed = !absl::IsDeadlineExceeded(status);
  HangUp();
  // Many servers close without the alert that would explain it.
  if (closed && !material_.cert.empty() && SpeaksWithoutOwnCertificate()) {
    return Blame(
        RefusedByServer(look_.address, options_.channel.tls.cert, "it closes the connection"));
  }
  if (closed && options_.channel.insecure && SpeaksTls()) return Blame(TlsServer(look_.address));
  return Blame(NoAnswer(look_.address, status));
}

absl::StatusOr<ConnectionLook> Looking::Run(const TlsMaterial& material) {
  material_ = material;
  look_.address = JoinHostPort(to_.host, to_.port);
  DISTRO_ASSIGN_OR_RETURN(look_.proxy, ProxyFor(to_.host));
  std::vector<std::pair<std::string, Step>> steps = {{"resolve", &Looking::FindAddresses},
                                                     {"connect", &Looking::Connect}};
  if (!options_.channel.insecure) steps.push_back({"tls", &Looking::SecureIt});
  steps.push_back({"http2", &Looking::SpeakHttp2});
  for (const auto& [name, step] : steps) {
    const absl::Duration begin = Clock::Real()->MonotonicNow();
    DISTRO_RETURN_IF_ERROR((this->*step)());
    look_.steps.push_back({.name = name,
                           .ok = !look_.fault,
                           .seen = seen_,
                           .took = Clock::Real()->MonotonicNow() - begin});
    if (look_.fault) break;
  }
  return std::move(look_);
}

}  // namespace

absl::StatusOr<ConnectionLook> Probe(const ProbeOptions& options) {
  const ChannelOptions& channel = options.channel;
  DISTRO_ASSIGN_OR_RETURN(const std::string target, ParseAggregatorUrl(channel.aggregator));
  DISTRO_ASSIGN_OR_RETURN(HostPort to, ParseHostPort(target));
  DISTRO_RETURN_IF_ERROR(ValidateClientTls(channel.insecure, channel.tls));
  if (channel.insecure) return Looking(options, std::move(to)).Run(TlsMaterial());
  DISTRO_ASSIGN_OR_RETURN(ClientTlsFiles tls, ReadClientTls(channel.tls));
  ProbeOptions with_ca = options;
  with_ca.channel.tls.ca = tls.files.ca;
  return Looking(with_ca, std::move(to)).Run(tls.material);
}

}  // namespace distro
