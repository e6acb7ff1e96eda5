// Checks every call before its handler (docs/protocol.md, "Limits"): authorization, the caller's
// rate, and the message of a unary call. A handler sees only valid messages of authorized callers.
// Thread-safe.
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

// A unary call as received from the generated code; all borrowed from gRPC.
struct UnaryCall {
  grpc::CallbackServerContext* context;
  Rpc rpc;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// A request that names the worker which sends it.
template <typename Request>
concept NamesItsWorker = requires(const Request& request) {
  request.worker().name();
};

class CallChecks {
 public:
  // All are borrowed.
  CallChecks(const Authorizer* authorizer, CallRates* rates, AuthObserver* observer, Log* log)
      : authorizer_(authorizer), rates_(rates), observer_(observer), log_(log) {}

  // Returns the caller of a new stream. As Authorizer::Check; ResourceExhausted `limit`: the
  // credential exceeds its call rate. With --insecure the caller is not known yet, and nothing is
  // charged.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context, Rpc rpc) const;

  // The table to which streams report every message.
  ConnectionTable* connections() const { return authorizer_->connections(); }

  // Calls `handler` of `service` with the request, and answers the call with its response or
  // status. Removes paths of this machine from the status (ForCaller).
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
  // Charges the call to its credential before parsing it; with --insecure, to the worker named in
  // the message.
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

// The status of a call that needs a run while there is none.
absl::Status NoRun();

// The status for a caller when the aggregator's disk fails: names the operation but no path
// (docs/protocol.md, "Statuses"). Unavailable `disk`: "the aggregator cannot OPERATION: its log
// says why"; DataLoss with the same text for damaged stored bytes. Logs the whole `status`.
absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log);

// WithoutPath if the disk caused `status`; otherwise `status`.
absl::Status ForCaller(const absl::Status& status, absl::string_view operation, Log* log);

}  // namespace distro::server
