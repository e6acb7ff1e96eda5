#include "server/service/grpc_endpoint.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/net/wire/frames.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "server/connections/acceptor.h"
#include "server/connections/connection_limits.h"
#include "server/limits/periodic_checks.h"
#include "server/service/admin_service.h"
#include "server/service/aggregator_service.h"
#include "server/service/call_interceptor.h"
#include "server/service/link_service.h"

namespace distro::server {
namespace {

constexpr int kMaxMetadataBytes = 8 * 1024;
constexpr int kMaxStreamsOfConnection = 32;
constexpr int kHandshakeTimeoutMs = 10'000;
// Read-ahead per stream: allows 40 MB/s at a round trip of 100 ms.
constexpr int kReadAheadBytes = 4 << 20;
// Only server reflection uses threads, one per stream.
constexpr int kMaxThreads = 32;
constexpr size_t kMinQuotaBytes = 256 << 20;  // with less, gRPC ends harmless streams

// Limits what gRPC accepts from peers before a handler runs (docs/protocol.md, "Limits"): metadata,
// messages, streams per connection, handshake time, buffers.
void BoundConnections(const ServiceLimits& limits, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  // Half a megabyte of compressed message may expand to half a gigabyte before any limit applies.
  // Our messages are never compressed.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  // Bounds the bytes on their way to handlers independent of a link's speed (docs/security.md,
  // "Connections").
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kReadAheadBytes);
  builder->SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  // gRPC's buffers may use as much memory as the payloads in transfer.
  grpc::ResourceQuota quota("distro-aggregator");
  quota.Resize(std::max<size_t>(limits.inflight_bytes, kMinQuotaBytes));
  quota.SetMaxThreads(kMaxThreads);
  builder->SetResourceQuota(quota);
}

// A process that was stopped for a while looks hung until its threads have run again.
constexpr int kSilentLooks = 5;
constexpr auto kShutdownGrace = std::chrono::seconds(2);
// A long-lived stream, which needs a credential; Check, which ends at once, needs none.
constexpr absl::string_view kHealthWatch = "/grpc.health.v1.Health/Watch";

// Removes the reflection service, which gRPC adds to every server of a process that links it.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    const std::string name = grpc::reflection::ProtoServerReflectionPlugin().name();
    std::erase_if(*plugins, [&name](const auto& plugin) { return plugin->name() == name; });
  }
};

}  // namespace

// In order of dependency.
struct GrpcEndpoint::Impl {
  Impl(const AggregatorOptions& options_in, const GrpcSources& sources_in)
      : options(options_in),
        sources(sources_in),
        aggregator(sources.host, sources.checks, sources.limiter, sources.transfers,
                   sources.reports, sources.clock, sources.log),
        admin(sources.host, sources.checks, sources.limiter, sources.transfers, sources.reports,
              sources.log),
        link(sources.host, sources.checks, sources.limiter, sources.clock) {}

  absl::Status Listen();
  absl::Status Serve();
  void AskForCredentials();
  void Accept(std::function<void(absl::Status)> on_dead);

  const AggregatorOptions options;
  const GrpcSources sources;
  AggregatorService aggregator;
  AdminService admin;
  LinkService link;
  std::string address;
  std::atomic<bool> stopping{false};
  int silent_looks = 0;  // of the thread of periodic_checks
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> handover;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<PeriodicChecks> periodic_checks;
};

absl::Status GrpcEndpoint::Impl::Listen() {
  DISTRO_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(options.listen));
  const auto& [host, port] = host_port;
  auto listening = Acceptor::Listen(host, port, sources.checks->connections(), sources.log);
  if (!listening.ok()) return Annotate(listening.status(), "--listen");
  acceptor = *std::move(listening);
  address = JoinHostPort(host, acceptor->port());
  return absl::OkStatus();
}

// For services that are not ours; ours check by themselves, and return reasons.
void GrpcEndpoint::Impl::AskForCredentials() {
  sources.tls->SetCallCheck(
      [authorizer = sources.authorizer](absl::string_view path, const ShownCredential& shown) {
        const bool asks = absl::StartsWith(path, "/grpc.reflection.") || path == kHealthWatch;
        return !asks || authorizer->Identify(shown).ok();
      });
}

absl::Status GrpcEndpoint::Impl::Serve() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  BoundConnections(options.limits, &builder);
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  if (sources.tls != nullptr) AskForCredentials();
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  handover = builder.experimental().AddExternalConnectionAcceptor(
      External::FROM_FD,
      sources.tls == nullptr ? grpc::InsecureServerCredentials() : sources.tls->Credentials());
  builder.RegisterService(&aggregator);
  builder.RegisterService(&admin);
  builder.RegisterService(&link);
  ObserveCalls(sources.calls, sources.clock, &builder);
  grpc = builder.BuildAndStart();
  if (grpc == nullptr)
    return absl::InternalError("gRPC does not start: its lines on standard error say why");
  return absl::OkStatus();
}

void GrpcEndpoint::Impl::Accept(std::function<void(absl::Status)> on_dead) {
  acceptor->Start(
      [this](int fd) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = fd;
        handover->HandleNewConnection(&connection);
      },
      on_dead);
  periodic_checks = std::make_unique<PeriodicChecks>(sources.limiter, [this, on_dead] {
    silent_looks = acceptor->accepting() ? 0 : silent_looks + 1;
    if (silent_looks == kSilentLooks && !stopping)
      on_dead(absl::InternalError("the gRPC port accepts no connections any more"));
  });
}

absl::Status GrpcEndpoint::CheckOpenFiles() {
  const uint64_t files = OpenFilesLimit();
  if (files >= kMinOpenFiles) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the process may have ", files, " files open, and needs ", kMinOpenFiles,
                   " at least: raise the limit (ulimit -n, LimitNOFILE=, --ulimit nofile=)"));
}

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Start(
    const AggregatorOptions& options, const GrpcSources& sources,
    std::function<void(absl::Status)> on_dead) {
  std::unique_ptr<GrpcEndpoint> endpoint(
      new GrpcEndpoint(std::make_unique<Impl>(options, sources)));
  DISTRO_RETURN_IF_ERROR(endpoint->impl_->Listen());
  DISTRO_RETURN_IF_ERROR(endpoint->impl_->Serve());
  endpoint->impl_->Accept(std::move(on_dead));
  return endpoint;
}

GrpcEndpoint::GrpcEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcEndpoint::~GrpcEndpoint() { Stop(); }

void GrpcEndpoint::Stop() {
  impl_->stopping = true;
  impl_->periodic_checks.reset();
  if (impl_->acceptor != nullptr) impl_->acceptor->Stop();
  if (impl_->grpc == nullptr) return;
  impl_->grpc->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  impl_->grpc->Wait();
  impl_->grpc.reset();
}

const std::string& GrpcEndpoint::address() const { return impl_->address; }

bool GrpcEndpoint::accepting() const { return impl_->acceptor->accepting(); }

void GrpcEndpoint::SayNotServing() {
  impl_->stopping = true;
  impl_->grpc->GetHealthCheckService()->SetServingStatus(false);
}

namespace {

constexpr int kLinesOfMinute = 20;

// gRPC's log function has no argument for user data: hence the statics.
void Write(gpr_log_func_args* line) {
  static absl::Mutex mu(absl::kConstInit);
  static absl::Duration minute ABSL_GUARDED_BY(mu) = -absl::InfiniteDuration();
  static int written ABSL_GUARDED_BY(mu) = 0;
  absl::MutexLock lock(&mu);
  const absl::Duration now = Clock::Real()->MonotonicNow();
  if (now - minute > absl::Minutes(1)) {
    minute = now;
    written = 0;
  }
  if (++written <= kLinesOfMinute) std::cerr << "gRPC: " << ShownText(line->message) << "\n";
}

}  // namespace

void LimitGrpcLog() { gpr_set_log_function(&Write); }

}  // namespace distro::server
