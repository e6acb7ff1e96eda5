#include "server/aggregator_server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/file.h"
#include "common/base/output_path.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/s3/s3_client.h"
#include "common/net/telemetry/metric_families.h"
#include "common/run/run_config.h"
#include "server/auth/authorizer.h"
#include "server/auth/server_tls.h"
#include "server/auth/tokens/token_store.h"
#include "server/connections/connection_table.h"
#include "server/connections/listening_sockets.h"
#include "server/limits/call_rates.h"
#include "server/log/bucket/bucket_disk.h"
#include "server/log/same_run.h"
#include "server/metrics/call_metrics.h"
#include "server/metrics/metrics.h"
#include "server/metrics/part_metrics.h"
#include "server/objects/object_routes.h"
#include "server/round/run_observer.h"
#include "server/service/call_checks.h"
#include "server/service/grpc_endpoint.h"
#include "server/status/run_history.h"
#include "server/status/status_routes.h"
#include "server/status/worker_rates.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxRunJsonBytes = 1 << 20;
// A step of the round thread, with its writes, takes less.
constexpr absl::Duration kStepHangs = absl::Seconds(60);
// Extra time for the round thread to end a drain by its own clock.
constexpr absl::Duration kDrainMargin = absl::Seconds(2);

// Connection limits above those of CallRates, so that a caller gets a status before its connection
// is closed.
ConnectionLimits ConnectionsOf(const AggregatorOptions& options) {
  ConnectionLimits limits = options.connections;
  limits.calls_per_second = std::max(
      limits.calls_per_second, 2 * CallsPerSecond(options.limits, options.heartbeat_interval));
  limits.calls_burst = std::max(limits.calls_burst, 5 * limits.calls_per_second / 2);
  return limits;
}

// The HTTP port until the run is there.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartLoadingHttp(const std::string& http) {
  DISTRO_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(http));
  return HttpEndpoint::Start(
      address.host, address.port,
      {HealthRoute(), ReadyRoute([] {
         return ReadyReport{.checks = {{"loaded", false, "the run is being read"}}};
       })});
}

// A function that forwards only the first call.
std::function<void(absl::Status)> Once(std::function<void(absl::Status)> call) {
  auto called = std::make_shared<std::atomic<bool>>(false);
  return [called, call = std::move(call)](absl::Status status) {
    if (!called->exchange(true)) call(std::move(status));
  };
}

}  // namespace

// In order of dependency: the last is stopped first.
struct AggregatorServer::Impl {
  Impl(const AggregatorOptions& options_in, const Clock* clock_in, Log* log_in,
       std::function<bool()> cancelled_in)
      : options(options_in),
        cancelled(std::move(cancelled_in)),
        clock(clock_in),
        log(log_in),
        metrics(clock_in, options_in.insecure),
        history(clock_in),
        connections(ConnectionsOf(options_in)),
        limiter(options_in.limits, clock_in),
        call_rates(CallsPerSecond(options_in.limits, options_in.heartbeat_interval), clock_in) {}

  absl::Status OpenCredentials();
  absl::Status OpenHost(Disk* disk, std::function<void(absl::Status)> on_fatal);
  absl::Status CheckOtherPorts() const;
  absl::Status CheckRun(RunStore* store);
  absl::Status InDataDir(const absl::Status& status) const;
  absl::Status StartHttp();
  absl::Status StartObjects();
  std::vector<prometheus::MetricFamily> AllMetrics();
  absl::Status LoadRun();
  absl::Status StartGrpc(std::function<void(absl::Status)> on_fatal);
  absl::Status CredentialsProblem() const;
  ReadyReport Ready() const;
  void SayDraining();

  const AggregatorOptions options;
  const std::function<bool()> cancelled;  // null: never
  const Clock* const clock;
  Log* const log;
  AggregatorMetrics metrics;
  CallMetrics calls;
  RunHistory history;
  ObserverList observers{{&metrics, &history}};
  WorkerReports reports;
  WorkerRates rates;
  ConnectionTable connections;
  StreamLimiter limiter;
  CallRates call_rates;
  std::atomic<bool> loaded{false};
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};   // no request waits for the bucket any more
  std::unique_ptr<ServerTls> tls;      // null: insecure
  std::unique_ptr<TokenStore> tokens;  // null: none are valid
  std::unique_ptr<Authorizer> authorizer;
  std::unique_ptr<CallChecks> call_checks;
  std::unique_ptr<S3Client> bucket;         // null: the run is in the data folder alone
  std::unique_ptr<BucketDisk> bucket_disk;  // the same
  std::optional<v1::RunConfig> to_create;   // of --run, where there is no run yet
  std::unique_ptr<RunHost> host;
  std::unique_ptr<HttpEndpoint> http;
  std::unique_ptr<HttpEndpoint> objects;  // null: not served
  std::unique_ptr<GrpcEndpoint> grpc;
  std::string http_address;
  std::string objects_address;  // empty: not served
};

absl::Status AggregatorServer::Impl::OpenCredentials() {
  if (options.insecure) {
    authorizer = std::make_unique<Authorizer>(&connections);
    return absl::OkStatus();
  }
  const TlsFiles files = {.ca = options.ca, .cert = options.cert, .key = options.key};
  DISTRO_ASSIGN_OR_RETURN(tls, ServerTls::Open(files, clock, log, &metrics));
  if (!options.tokens_file.empty()) {
    DISTRO_ASSIGN_OR_RETURN(tokens, TokenStore::Open(options.tokens_file, clock, log, &metrics));
  }
  authorizer = std::make_unique<Authorizer>(tokens.get(), &metrics, &connections);
  return absl::OkStatus();
}

absl::Status AggregatorServer::Impl::OpenHost(Disk* disk,
                                              std::function<void(absl::Status)> on_fatal) {
  if (!options.log_url.empty()) {
    const auto ends = [this] { return stopping || (!loaded && cancelled && cancelled()); };
    DISTRO_ASSIGN_OR_RETURN(bucket, S3Client::Open(options.log_url, clock, {.cancelled = ends}));
    bucket_disk = std::make_unique<BucketDisk>(
        bucket.get(), disk, options.data_dir,
        LeaderOptions{.interval = options.takeover_after / 4,
                      .patience = options.standby ? options.takeover_after : absl::ZeroDuration(),
                      .on_fenced = on_fatal},
        log);
    disk = bucket_disk.get();
  }
  // Reading, and fetching from a bucket, may take minutes: a supervisor must not end it meanwhile.
  auto loading = StartLoadingHttp(options.http);
  // What prevents this start must not end the aggregator that serves the run.
  const auto check = [&](RunStore* store) -> absl::Status {
    if (!loading.ok()) loading = StartLoadingHttp(options.http);
    DISTRO_RETURN_IF_ERROR(loading.status());
    DISTRO_RETURN_IF_ERROR(CheckOtherPorts());
    DISTRO_RETURN_IF_ERROR(GrpcEndpoint::CheckOpenFiles());
    if (!options.port_file.empty()) {
      const absl::Status written = TryOutputFile(options.port_file);
      if (!written.ok()) return Annotate(written, "--port_file");
    }
    return CheckRun(store);
  };
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store,
                          RunStore::Open(options.data_dir, disk, clock, log, check));
  const RoundManagerOptions rounds{.suspect_after = options.SuspectAfter(),
                                   .lease = options.lease,
                                   .heartbeat_interval = options.heartbeat_interval,
                                   .drain_grace = options.drain_grace,
                                   .ring_bytes = options.ring_bytes,
                                   .serves_objects = !options.objects.empty(),
                                   .mirrors = options.mirrors};
  host = std::make_unique<RunHost>(std::move(store), clock, log, &observers, rounds,
                                   std::move(on_fatal));
  host->SetFsyncObserver([this](absl::Duration time) { metrics.OnFsync(time); });
  return absl::OkStatus();
}

absl::Status AggregatorServer::Impl::StartHttp() {
  DISTRO_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(options.http));
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
  DISTRO_ASSIGN_OR_RETURN(http, HttpEndpoint::Start(address.host, address.port, std::move(routes)));
  http_address = JoinHostPort(address.host, http->port());
  return options.objects.empty() ? absl::OkStatus() : StartObjects();
}

absl::Status AggregatorServer::Impl::StartObjects() {
  DISTRO_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(options.objects));
  const ObjectSources sources{.host = host.get(), .transfers = &metrics, .log = log};
  DISTRO_ASSIGN_OR_RETURN(objects, HttpEndpoint::Start(address.host, address.port,
                                                       {ObjectRoute(sources)}, ObjectLimits()));
  objects_address = JoinHostPort(address.host, objects->port());
  log->Info("serving objects", {{"objects", objects_address}});
  return absl::OkStatus();
}

std::vector<prometheus::MetricFamily> AggregatorServer::Impl::AllMetrics() {
  if (tls != nullptr) metrics.SetCertificateExpiry(tls->expiry());
  std::vector<prometheus::MetricFamily> families = metrics.Collect(*host, options.data_dir);
  AppendFamilies(StreamMetrics(limiter), &families);
  AppendFamilies(ConnectionMetrics(connections), &families);
  AppendFamilies(calls.Collect(), &families);
  return families;
}

// Besides --http, at which this start listens already.
absl::Status AggregatorServer::Impl::CheckOtherPorts() const {
  absl::StatusOr<std::unique_ptr<HttpEndpoint>> objects_port = nullptr;
  if (!options.objects.empty()) objects_port = StartLoadingHttp(options.objects);
  if (!objects_port.ok()) return Annotate(objects_port.status(), "--objects");
  DISTRO_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(options.listen));
  return Annotate(ListeningSockets::Open(address.host, address.port).status(), "--listen");
}

absl::Status AggregatorServer::Impl::CheckRun(RunStore* store) {
  if (options.run.empty()) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(options.run, kMaxRunJsonBytes));
  absl::StatusOr<v1::RunConfig> config = ReadRunConfig(json);
  if (!config.ok()) return Annotate(config.status(), options.run);
  if (!store->has_run()) {
    to_create = *std::move(config);
    return absl::OkStatus();
  }
  // Creates nothing: compares with the run that is there.
  return InDataDir(RefusalOf(store->CreateRunFromFolder(*config, options.model)));
}

absl::Status AggregatorServer::Impl::LoadRun() {
  if (to_create) return InDataDir(host->CreateFromFolder(*to_create, options.model));
  DISTRO_RETURN_IF_ERROR(host->Continue());
  if (host->manager() == nullptr) log->Info("no run yet: waiting for one to be created");
  return absl::OkStatus();
}

absl::Status AggregatorServer::Impl::InDataDir(const absl::Status& status) const {
  const bool other_run = absl::IsFailedPrecondition(status);
  return other_run ? Annotate(status, absl::StrCat("--data_dir: ", options.data_dir)) : status;
}

absl::Status AggregatorServer::Impl::StartGrpc(std::function<void(absl::Status)> on_fatal) {
  call_checks = std::make_unique<CallChecks>(authorizer.get(), &call_rates, &metrics, log);
  const GrpcSources sources{.host = host.get(),
                            .tls = tls.get(),
                            .authorizer = authorizer.get(),
                            .checks = call_checks.get(),
                            .limiter = &limiter,
                            .transfers = &metrics,
                            .calls = &calls,
                            .reports = &reports,
                            .clock = clock,
                            .log = log};
  DISTRO_ASSIGN_OR_RETURN(grpc, GrpcEndpoint::Start(options, sources, std::move(on_fatal)));
  return absl::OkStatus();
}

// Not called with --insecure.
absl::Status AggregatorServer::Impl::CredentialsProblem() const {
  if (tokens != nullptr) DISTRO_RETURN_IF_ERROR(tokens->problem());
  return tls->problem();
}

ReadyReport AggregatorServer::Impl::Ready() const {
  ReadyReport report{.ready = loaded && !draining, .checks = {}};
  report.checks.push_back({"loaded", loaded, loaded ? "" : "the run is being loaded"});
  report.checks.push_back({"not_draining", !draining, ""});
  if (!loaded) return report;
  const bool accepting = grpc->accepting();
  report.ready &= accepting;
  report.checks.push_back(
      {"accepting", accepting, accepting ? "" : "the gRPC port takes no connections"});
  if (tls != nullptr) {
    const absl::Status dates = tls->CheckDates();
    report.ready &= dates.ok();
    report.checks.push_back({"certificate", dates.ok(), std::string(dates.message())});
    const absl::Status problem = CredentialsProblem();
    report.checks.push_back({"credentials", problem.ok(), std::string(problem.message())});
  }
  const RoundManager* manager = host->manager();
  report.checks.push_back(
      {"run", manager != nullptr,
       manager == nullptr ? "there is no run yet: create one" : manager->run().run_id});
  if (manager == nullptr) return report;
  const absl::Duration step = manager->round_thread().StepTakes();
  const bool turns = step < kStepHangs;
  report.ready &= turns;
  report.checks.push_back({"rounds", turns,
                           turns ? ""
                                 : absl::StrCat("one step has taken ", absl::ToInt64Seconds(step),
                                                " s: the disk of the data folder, or the bucket of "
                                                "--log, does not answer")});
  const RunStatus status = manager->status();
  const bool waits = status.state == v1::RUN_STATE_WAITING;
  report.checks.push_back({"workers", !waits, status.reason});
  report.checks.push_back({"disk", status.disk_error.empty(), status.disk_error});
  const uint64_t damaged = manager->DamagedRecordCount();
  report.checks.push_back(
      {"log", damaged == 0, damaged == 0 ? "" : absl::StrCat(damaged, " records are damaged")});
  return report;
}

absl::StatusOr<std::unique_ptr<AggregatorServer>> AggregatorServer::Start(
    const AggregatorOptions& options, const Clock* clock, Log* log,
    std::function<void(absl::Status)> on_fatal, Disk* disk, std::function<bool()> cancelled) {
  DISTRO_RETURN_IF_ERROR(options.Validate());
  on_fatal = Once(std::move(on_fatal));
  if (options.insecure)
    log->Warning("insecure: all traffic is plaintext and nobody is authenticated");
  std::unique_ptr<AggregatorServer> server(
      new AggregatorServer(std::make_unique<Impl>(options, clock, log, std::move(cancelled))));
  Impl* const impl = server->impl_.get();
  DISTRO_RETURN_IF_ERROR(impl->OpenCredentials());
  DISTRO_RETURN_IF_ERROR(impl->OpenHost(disk, on_fatal));
  DISTRO_RETURN_IF_ERROR(impl->StartHttp());
  DISTRO_RETURN_IF_ERROR(impl->LoadRun());
  DISTRO_RETURN_IF_ERROR(impl->StartGrpc(on_fatal));
  impl->loaded = true;
  std::string addresses =
      absl::StrCat("grpc=", impl->grpc->address(), " http=", impl->http_address);
  if (!impl->objects_address.empty())
    absl::StrAppend(&addresses, " objects=", impl->objects_address);
  log->Info("listening", {{"grpc", impl->grpc->address()}, {"http", impl->http_address}});
  if (!options.port_file.empty())
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(options.port_file, addresses + "\n"));
  return server;
}

AggregatorServer::AggregatorServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AggregatorServer::~AggregatorServer() {
  impl_->SayDraining();
  impl_->stopping = true;
  if (impl_->host != nullptr) impl_->host->Stop();
  if (impl_->grpc != nullptr) impl_->grpc->Stop();
  impl_->http.reset();  // these two use the others
  impl_->objects.reset();
  impl_->grpc.reset();
  impl_->host.reset();
}

void AggregatorServer::Impl::SayDraining() {
  if (draining.exchange(true)) return;
  if (grpc != nullptr) grpc->SayNotServing();
}

void AggregatorServer::Drain() {
  impl_->SayDraining();
  impl_->host->Drain();
}

void AggregatorServer::AwaitDrained() const {
  impl_->host->AwaitDrained(impl_->options.drain_grace + kDrainMargin);
}

const std::string& AggregatorServer::grpc_address() const { return impl_->grpc->address(); }
const std::string& AggregatorServer::http_address() const { return impl_->http_address; }
const std::string& AggregatorServer::objects_address() const { return impl_->objects_address; }

}  // namespace distro::server
