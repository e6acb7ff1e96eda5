// Admits and ends connections, below all handlers (docs/security.md, "Connections"). A connection
// is anonymous until a call on it presents a credential. Anonymous connections are limited in
// number, time and bytes; their cost is charged to their address and to all of them together, and a
// credential returns the charge. A connection with a credential may carry many calls and any number
// of message bytes, but few other bytes, which bounds the CPU time that a peer can cost by headers.
//
// Does not use sockets: its owner (Acceptor) reports events and closes the connections that the
// table ends. The caller passes the time: `now` is monotonic. Thread-safe: handlers report calls
// while the owner accepts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "server/connections/connection_limits.h"
#include "server/limits/token_bucket.h"

namespace distro::server {

// Why a connection was refused or ended: label values of distro_aggregator_connections_ended_total.
enum class ConnectionEnd {
  kFull,               // refused: there are `connections` already
  kRate,               // refused: its address, or all anonymous ones together, are over the rate
  kNoCredential,       // anonymous for too long
  kAnonymousBytes,     // sent too much without a credential
  kMadeRoom,           // the oldest anonymous one, ended by a new one
  kNewerOfCredential,  // the oldest of its credential, ended by a new one
  kCalls,     // too many calls: refused ones without a credential, or those of its credential
  kOverhead,  // bytes other than messages exceeded overhead_bytes_per_second
};
inline constexpr int kConnectionEnds = 8;
absl::string_view ConnectionEndName(ConnectionEnd end);

using ConnectionId = uint64_t;

// Totals of a connection, as the kernel counts them.
struct ConnectionBytes {
  uint64_t received = 0;      // and read by its owner
  uint64_t acknowledged = 0;  // of what was sent to the peer
};

// A connection that its owner must end now.
struct EndedConnection {
  ConnectionId id = 0;
  ConnectionEnd why = ConnectionEnd::kFull;
  Peer peer;
  std::string credential;  // empty: anonymous
};

class ConnectionTable {
 public:
  explicit ConnectionTable(const ConnectionLimits& limits);

  // --- For the owner, one thread. Sets the function that is called when a handler's call ended a
  // connection; nullptr: none. It must not call back.
  void SetWake(std::function<void()> wake);
  // Adds a connection: returns its id, or why it is refused. An earlier one with the same endpoint
  // counts as closed.
  struct Admission {
    std::optional<ConnectionEnd> refused = std::nullopt;
    ConnectionId id = 0;
  };
  Admission Admit(const Peer& peer, absl::Duration now);
  // Reports the kernel's byte counts of a connection: of an anonymous one a few milliseconds after
  // it sent something, and of every one when it ends. Returns whether it is still anonymous and not
  // ended.
  bool Observe(ConnectionId id, const ConnectionBytes& bytes, absl::Duration now);
  // The connection is closed.
  void Closed(ConnectionId id);
  // The connections to close, each returned once, including those whose time is over. They stay in
  // the table until Closed.
  std::vector<EndedConnection> TakeEnded(absl::Duration now);

  // --- For handlers. Endpoints that are not in the table are ignored. A call presented this
  // credential. Empty: authentication is off (--insecure), and of_credential and the limits of
  // calls and overhead do not apply.
  void OnCall(absl::string_view endpoint, absl::string_view credential, absl::Duration now);
  // A call presented no valid credential.
  void OnRefusedCall(absl::string_view endpoint, absl::Duration now);
  // A message of this many bytes arrived on the connection.
  void OnMessage(absl::string_view endpoint, uint64_t bytes);

  // For metrics and readiness.
  int anonymous() const;
  int authenticated() const;
  std::array<uint64_t, kConnectionEnds> ends() const;  // [ConnectionEnd], so far

 private:
  struct Connection {
    ConnectionId id = 0;
    Peer peer;
    absl::Duration since;
    bool authenticated = false;
    bool ended = false;
    std::string credential = {};
    uint64_t charged = 0;    // while anonymous
    int refused_calls = 0;   // likewise
    uint64_t messages = 0;   // bytes that handlers took
    uint64_t explained = 0;  // bytes that Observe attributed to messages, calls, acknowledgements
    uint64_t seen = 0;       // bytes that Observe saw
  };
  struct Address {
    TokenBucket bucket;
    int anonymous = 0;
    int authenticated = 0;
    absl::Duration known_until = -absl::InfiniteDuration();

    bool Known(absl::Duration now) const { return authenticated > 0 || now < known_until; }
  };
  struct Credential {
    TokenBucket calls;
    TokenBucket overhead;
    std::set<ConnectionId> connections = {};  // that were not ended; oldest first
  };

  Address& AddressOf(const std::string& address, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIdle(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndExpired(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Charge(Connection* connection, uint64_t total, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBack(Connection* connection, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeRoom(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndOldestAnonymous(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Credential& CredentialOf(absl::string_view name, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Authenticate(Connection* connection, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns false if the credential is over a limit; the connection was ended.
  bool Adopt(Connection* connection, absl::string_view credential, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ObserveOverhead(Connection* connection, const ConnectionBytes& bytes, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(Connection* connection, ConnectionEnd why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUpPlaces(const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remove(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Connection* Find(absl::string_view endpoint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ConnectionLimits limits_;

  mutable absl::Mutex mu_;
  ConnectionId next_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<ConnectionId, Connection> connections_ ABSL_GUARDED_BY(mu_);  // oldest first
  std::map<std::string, ConnectionId, std::less<>> endpoints_ ABSL_GUARDED_BY(mu_);
  std::set<ConnectionId> anonymous_ ABSL_GUARDED_BY(mu_);  // that were not ended; oldest first
  std::map<std::string, Credential, std::less<>> credentials_
      ABSL_GUARDED_BY(mu_);  // that have connections, or took something lately
  std::map<std::string, Address> addresses_
      ABSL_GUARDED_BY(mu_);  // of connections, in debt, or known
  TokenBucket all_anonymous_ ABSL_GUARDED_BY(mu_);
  absl::Duration forget_at_ ABSL_GUARDED_BY(mu_);
  std::function<void()> wake_ ABSL_GUARDED_BY(mu_);
  std::vector<EndedConnection> ended_ ABSL_GUARDED_BY(mu_);
  std::array<uint64_t, kConnectionEnds> ends_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace distro::server
