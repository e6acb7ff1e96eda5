#include "server/grpc_endpoint.h"

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "server/connections/acceptor.h"
#include "server/connections/connection_limits.h"
#include "server/limits/sweeper.h"
#include "server/service/admin_service.h"
#include "server/service/aggregator_service.h"
#include "server/service/call_interceptor.h"
#include "server/service/connection_bounds.h"
#include "server/service/link_service.h"

namespace distro::server {
namespace {

// A process that was stopped for a while looks hung until its threads have run again.
constexpr int kSilentLooks = 5;
constexpr auto kShutdownGrace = std::chrono::seconds(2);
// Streams that last; Check, which ends at once, is anybody's.
constexpr absl::string_view kHealthWatch = "/grpc.health.v1.Health/Watch";

// gRPC adds reflection to every server of a process that links it; here it goes again.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    const std::string name = grpc::reflection::ProtoServerReflectionPlugin().name();
    std::erase_if(*plugins, [&name](const auto& plugin) { return plugin->name() == name; });
  }
};

absl::Status CheckOpenFiles() {
  const uint64_t files = OpenFilesLimit();
  if (files >= kMinOpenFiles) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the process may have ", files, " files open, and needs ", kMinOpenFiles,
                   " at least: raise the limit (ulimit -n, LimitNOFILE=, --ulimit nofile=)"));
}

}  // namespace

// In the order of their dependence.
struct GrpcEndpoint::Parts {
  Parts(const AggregatorOptions& options_in, const GrpcSources& sources_in)
      : options(options_in),
        sources(sources_in),
        aggregator(sources.host, sources.desk, sources.gate, sources.transfers, sources.reports,
                   sources.clock, sources.log),
        admin(sources.host, sources.desk, sources.gate, sources.transfers, sources.reports,
              sources.log),
        link(sources.host, sources.desk, sources.gate, sources.clock) {}

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
  int silent_looks = 0;  // of the sweeper's thread
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> handover;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Sweeper> sweeper;
};

absl::Status GrpcEndpoint::Parts::Listen() {
  DISTRO_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(options.listen));
  const auto& [host, port] = host_port;
  auto listening = Acceptor::Listen(host, port, sources.desk->connections(), sources.log);
  if (!listening.ok()) return Annotate(listening.status(), "--listen");
  acceptor = *std::move(listening);
  address = JoinAddress(host, acceptor->port());
  return absl::OkStatus();
}

// Our own services ask by themselves, with reasons.
void GrpcEndpoint::Parts::AskForCredentials() {
  sources.tls->SetCallCheck(
      [authorizer = sources.authorizer](absl::string_view path, const ShownCredential& shown) {
        const bool asks = absl::StartsWith(path, "/grpc.reflection.") || path == kHealthWatch;
        return !asks || authorizer->Identify(shown).ok();
      });
}

absl::Status GrpcEndpoint::Parts::Serve() {
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
  if (grpc == nullptr) return absl::InternalError("gRPC does not start: its own lines say why");
  return absl::OkStatus();
}

void GrpcEndpoint::Parts::Accept(std::function<void(absl::Status)> on_dead) {
  acceptor->Start(
      [this](int fd) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = fd;
        handover->HandleNewConnection(&connection);
      },
      on_dead);
  sweeper = std::make_unique<Sweeper>(sources.gate, [this, on_dead] {
    silent_looks = acceptor->accepting() ? 0 : silent_looks + 1;
    if (silent_looks == kSilentLooks && !stopping)
      on_dead(absl::InternalError("the gRPC port accepts no connections any more"));
  });
}

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Start(
    const AggregatorOptions& options, const GrpcSources& sources,
    std::function<void(absl::Status)> on_dead) {
  DISTRO_RETURN_IF_ERROR(CheckOpenFiles());
  std::unique_ptr<GrpcEndpoint> endpoint(
      new GrpcEndpoint(std::make_unique<Parts>(options, sources)));
  DISTRO_RETURN_IF_ERROR(endpoint->parts_->Listen());
  DISTRO_RETURN_IF_ERROR(endpoint->parts_->Serve());
  endpoint->parts_->Accept(std::move(on_dead));
  return endpoint;
}

GrpcEndpoint::GrpcEndpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcEndpoint::~GrpcEndpoint() { Stop(); }

void GrpcEndpoint::Stop() {
  parts_->stopping = true;
  parts_->sweeper.reset();
  if (parts_->acceptor != nullptr) parts_->acceptor->Stop();
  if (parts_->grpc == nullptr) return;
  parts_->grpc->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  parts_->grpc->Wait();
  parts_->grpc.reset();
}

const std::string& GrpcEndpoint::address() const { return parts_->address; }

bool GrpcEndpoint::accepting() const { return parts_->acceptor->accepting(); }

void GrpcEndpoint::SayNotServing() {
  parts_->stopping = true;
  parts_->grpc->GetHealthCheckService()->SetServingStatus(false);
}

}  // namespace distro::server
