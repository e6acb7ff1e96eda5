// The checks of every call before its handler (docs/protocol.md, "Limits"): authorization, the
// caller's rate, and for a call of one message its bytes. A handler sees only messages of callers
// who may make the call. Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/auth/authorizer.h"
#include "server/auth/tokens/token_store.h"
#include "server/limits/call_rates.h"
#include "server/service/raw_message.h"

namespace distro::server {

// A call of one message, as the generated code hands it over; all borrowed from gRPC.
struct UnaryCall {
  grpc::CallbackServerContext* context;
  Rpc rpc;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// A request of a worker, for itself.
template <typename Request>
concept NamesItsWorker = requires(const Request& request) {
  request.worker().name();
};

class CallDesk {
 public:
  // All are borrowed.
  CallDesk(const Authorizer* authorizer, CallRates* rates, AuthObserver* observer, Log* log)
      : authorizer_(authorizer), rates_(rates), observer_(observer), log_(log) {}

  // The caller of a stream that begins. As Authorizer::Check; ResourceExhausted `limit`: this
  // credential's calls come too fast. With --insecure nobody is known yet, and nothing counts.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context, Rpc rpc) const;

  // Which is told of every message of a stream.
  ConnectionTable* connections() const { return authorizer_->connections(); }

  // Answers the call with what `handler` of `service` makes of its request, or with the status that
  // it returns. No path of this machine leaves in it (ForCaller).
  template <typename Service, typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(const UnaryCall& call, Service* service,
                                   absl::Status (Service::*handler)(const Request&,
                                                                    Response*)) const {
    Response response;
    Request request;
    absl::Status status = Take(call, &request);
    if (status.ok()) status = (service->*handler)(request, &response);
    if (status.ok()) *call.response = SerializeMessage(response);
    return Finish(call, status);
  }

 private:
  // A credential's call counts before its bytes are looked at; with --insecure they say whose it
  // is.
  template <typename Request>
  absl::Status Take(const UnaryCall& call, Request* request) const {
    DISTRO_ASSIGN_OR_RETURN(const Caller caller, Admit(*call.context, call.rpc));
    connections()->OnMessage(EndpointOfGrpcPeer(call.context->peer()), call.request->Length());
    DISTRO_RETURN_IF_ERROR(ParseMessage(*call.request, request));
    std::string worker;
    if constexpr (NamesItsWorker<Request>) worker = request->worker().name();
    if (caller.name().empty()) DISTRO_RETURN_IF_ERROR(Count(worker, call.rpc));
    if constexpr (NamesItsWorker<Request>) return caller.MayActAs(worker);
    return absl::OkStatus();
  }

  absl::Status Count(const std::string& name, Rpc rpc) const;
  grpc::ServerUnaryReactor* Finish(const UnaryCall& call, const absl::Status& status) const;

  const Authorizer* const authorizer_;
  CallRates* const rates_;
  AuthObserver* const observer_;
  Log* const log_;
};

// What a call that needs a run is told while there is none.
absl::Status NoRun();

// What a caller is told when the aggregator's disk fails: which operation, not which path
// (docs/protocol.md, "Statuses"). Unavailable `disk`: "the aggregator cannot OPERATION: its log
// says why"; of stored bytes that are damaged DataLoss, with the same. The log gets all of
// `status`.
absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log);

// WithoutPath where `status` is the disk's; any other as it is.
absl::Status ForCaller(const absl::Status& status, absl::string_view operation, Log* log);

}  // namespace distro::server
