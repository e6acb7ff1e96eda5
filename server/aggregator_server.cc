#include "server/aggregator_server.h"

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "common/telemetry/http_endpoint.h"
#include "common/telemetry/metric_families.h"
#include "common/telemetry/metric_values.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "server/auth/authorizer.h"
#include "server/auth/server_tls.h"
#include "server/auth/token_store.h"
#include "server/call_metrics.h"
#include "server/limits/sweeper.h"
#include "server/metrics.h"
#include "server/round/observer_list.h"
#include "server/service/admin_service.h"
#include "server/service/aggregator_service.h"
#include "server/service/call_interceptor.h"
#include "server/service/connection_bounds.h"
#include "server/service/link_service.h"
#include "server/status/run_history.h"
#include "server/status/status_routes.h"
#include "server/status/worker_rates.h"
#include "server/stream_metrics.h"
#include "server/worker_metrics.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxRunJsonBytes = 1 << 20;
constexpr auto kShutdownGrace = std::chrono::seconds(2);
// For the round thread, which ends a drain by its own clock.
constexpr absl::Duration kDrainMargin = absl::Seconds(2);

std::string JoinAddress(const std::string& host, int port) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

}  // namespace

// In the order of their dependence: the last is stopped first.
struct AggregatorServer::Parts {
  Parts(const AggregatorOptions& options_in, const Clock* clock_in, Log* log_in)
      : options(options_in),
        clock(clock_in),
        log(log_in),
        metrics(clock_in, options_in.insecure),
        history(clock_in),
        gate(options_in.limits, clock_in) {}

  absl::Status OpenCredentials();
  absl::Status OpenHost(Disk* disk, std::function<void(absl::Status)> on_fatal);
  absl::Status StartHttp();
  std::vector<prometheus::MetricFamily> AllMetrics();
  absl::Status LoadRun();
  absl::Status StartGrpc();
  ReadyReport Ready() const;
  void SayDraining();

  const AggregatorOptions options;
  const Clock* const clock;
  Log* const log;
  AggregatorMetrics metrics;
  CallMetrics calls;
  RunHistory history;
  ObserverList observers{{&metrics, &history}};
  WorkerReports reports;
  WorkerRates rates;
  StreamGate gate;
  std::atomic<bool> loaded{false};
  std::atomic<bool> draining{false};
  std::unique_ptr<ServerTls> tls;      // null: insecure
  std::unique_ptr<TokenStore> tokens;  // null: none are valid
  std::unique_ptr<Authorizer> authorizer;
  std::unique_ptr<RunHost> host;
  std::unique_ptr<HttpEndpoint> http;
  std::unique_ptr<AggregatorService> aggregator;
  std::unique_ptr<AdminService> admin;
  std::unique_ptr<LinkService> link;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<Sweeper> sweeper;
  std::string grpc_address;
  std::string http_address;
};

absl::Status AggregatorServer::Parts::OpenCredentials() {
  if (options.insecure) {
    authorizer = std::make_unique<Authorizer>();
    return absl::OkStatus();
  }
  const TlsFiles files = {.ca = options.ca, .cert = options.cert, .key = options.key};
  DISTRO_ASSIGN_OR_RETURN(tls, ServerTls::Open(files, clock, log, &metrics));
  if (!options.tokens_file.empty()) {
    DISTRO_ASSIGN_OR_RETURN(tokens, TokenStore::Open(options.tokens_file, clock, log, &metrics));
  }
  authorizer = std::make_unique<Authorizer>(tokens.get(), &metrics);
  return absl::OkStatus();
}

absl::Status AggregatorServer::Parts::OpenHost(Disk* disk,
                                               std::function<void(absl::Status)> on_fatal) {
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store,
                          RunStore::Open(options.data_dir, disk, clock, log));
  const RoundManagerOptions rounds{.suspect_after = options.SuspectAfter(),
                                   .lease = options.lease,
                                   .heartbeat_interval = options.heartbeat_interval,
                                   .drain_grace = options.drain_grace,
                                   .ring_bytes = options.ring_bytes};
  host = std::make_unique<RunHost>(std::move(store), clock, log, &observers, rounds,
                                   std::move(on_fatal));
  host->SetFsyncObserver([this](absl::Duration time) { metrics.OnFsync(time); });
  return absl::OkStatus();
}

absl::Status AggregatorServer::Parts::StartHttp() {
  DISTRO_ASSIGN_OR_RETURN(const auto address, SplitAddress(options.http));
  std::vector<HttpRoute> routes;
  routes.push_back(HealthRoute());
  routes.push_back(ReadyRoute([this] { return Ready(); }));
  routes.push_back(MetricsRoute("/metrics", [this] { return AllMetrics(); }));
  routes.push_back(MetricsRoute("/metrics/workers",
                                [this] { return CollectWorkers(reports, clock->MonotonicNow()); }));
  const StatusSources sources{.host = host.get(),
                              .history = &history,
                              .reports = &reports,
                              .rates = &rates,
                              .clock = clock,
                              .metrics = [this] { return MetricValues(AllMetrics()); },
                              .ready = [this] { return Ready(); }};
  for (HttpRoute& route : StatusRoutes(sources)) routes.push_back(std::move(route));
  DISTRO_ASSIGN_OR_RETURN(http,
                          HttpEndpoint::Start(address.first, address.second, std::move(routes)));
  http_address = JoinAddress(address.first, http->port());
  return absl::OkStatus();
}

std::vector<prometheus::MetricFamily> AggregatorServer::Parts::AllMetrics() {
  if (tls != nullptr) metrics.SetCertificateExpiry(tls->expiry());
  std::vector<prometheus::MetricFamily> families = metrics.Collect(*host, options.data_dir);
  AppendFamilies(StreamMetrics(gate), &families);
  AppendFamilies(calls.Collect(), &families);
  return families;
}

absl::Status AggregatorServer::Parts::LoadRun() {
  if (options.run.empty()) {
    DISTRO_RETURN_IF_ERROR(host->Continue());
    if (host->manager() == nullptr) log->Info("no run yet: waiting for one to be created");
    return absl::OkStatus();
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.run, kMaxRunJsonBytes));
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, ParseRunConfig(json));
  return host->CreateFromFolder(config, options.model);
}

absl::Status AggregatorServer::Parts::StartGrpc() {
  DISTRO_ASSIGN_OR_RETURN(const auto address, SplitAddress(options.listen));
  aggregator = std::make_unique<AggregatorService>(host.get(), authorizer.get(), &gate, &metrics,
                                                   &reports, clock, log);
  admin = std::make_unique<AdminService>(host.get(), authorizer.get(), &gate, &metrics, &reports);
  link = std::make_unique<LinkService>(host.get(), authorizer.get(), &gate, clock);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  BoundConnections(options.limits, &builder);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(options.listen,
                           tls == nullptr ? grpc::InsecureServerCredentials() : tls->Credentials(),
                           &port);
  builder.RegisterService(aggregator.get());
  builder.RegisterService(admin.get());
  builder.RegisterService(link.get());
  ObserveCalls(&calls, clock, &builder);
  grpc = builder.BuildAndStart();
  if (grpc == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("--listen: cannot listen on ", options.listen,
                                               ": in use, or not an address of this machine"));
  }
  sweeper = std::make_unique<Sweeper>(&gate);
  grpc_address = JoinAddress(address.first, port);
  return absl::OkStatus();
}

ReadyReport AggregatorServer::Parts::Ready() const {
  ReadyReport report{.ready = loaded && !draining, .checks = {}};
  report.checks.push_back({"loaded", loaded, loaded ? "" : "the run is being loaded"});
  report.checks.push_back({"not_draining", !draining, ""});
  if (!loaded) return report;
  const RoundManager* manager = host->manager();
  report.checks.push_back(
      {"run", manager != nullptr,
       manager == nullptr ? "there is no run yet: create one" : manager->run().run_id});
  if (manager == nullptr) return report;
  const RunStatus status = manager->status();
  const bool waits = status.state == v1::RUN_STATE_WAITING;
  report.checks.push_back({"workers", !waits, status.reason});
  report.checks.push_back({"disk", status.disk_error.empty(), status.disk_error});
  return report;
}

absl::StatusOr<std::unique_ptr<AggregatorServer>> AggregatorServer::Start(
    const AggregatorOptions& options, const Clock* clock, Log* log,
    std::function<void(absl::Status)> on_fatal, Disk* disk) {
  DISTRO_RETURN_IF_ERROR(options.Validate());
  if (options.insecure)
    log->Warning("insecure: all traffic is plaintext and nobody is authenticated");
  std::unique_ptr<AggregatorServer> server(
      new AggregatorServer(std::make_unique<Parts>(options, clock, log)));
  Parts* const parts = server->parts_.get();
  DISTRO_RETURN_IF_ERROR(parts->OpenCredentials());
  DISTRO_RETURN_IF_ERROR(parts->OpenHost(disk, std::move(on_fatal)));
  DISTRO_RETURN_IF_ERROR(parts->StartHttp());
  DISTRO_RETURN_IF_ERROR(parts->LoadRun());
  DISTRO_RETURN_IF_ERROR(parts->StartGrpc());
  parts->loaded = true;
  const std::string addresses =
      absl::StrCat("grpc=", parts->grpc_address, " http=", parts->http_address);
  log->Info("listening", {{"grpc", parts->grpc_address}, {"http", parts->http_address}});
  if (!options.port_file.empty())
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(options.port_file, addresses + "\n"));
  return server;
}

AggregatorServer::AggregatorServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AggregatorServer::~AggregatorServer() {
  parts_->SayDraining();
  if (parts_->host != nullptr) parts_->host->Stop();
  if (parts_->grpc != nullptr) {
    parts_->grpc->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    parts_->grpc->Wait();
    parts_->grpc.reset();
  }
  parts_->http.reset();
  parts_->host.reset();
}

void AggregatorServer::Parts::SayDraining() {
  if (draining.exchange(true)) return;
  if (grpc != nullptr) grpc->GetHealthCheckService()->SetServingStatus(false);
}

void AggregatorServer::Drain() {
  parts_->SayDraining();
  parts_->host->Drain();
}

void AggregatorServer::AwaitDrained() const {
  parts_->host->AwaitDrained(parts_->options.drain_grace + kDrainMargin);
}

const std::string& AggregatorServer::grpc_address() const { return parts_->grpc_address; }
const std::string& AggregatorServer::http_address() const { return parts_->http_address; }

}  // namespace distro::server
