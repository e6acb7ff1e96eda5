// Admits and ends connections, below every handler (docs/security.md, "Connections"). A connection
// is anonymous until a call on it has shown a credential. Anonymous ones are few, short and may
// send little, and their cost is charged to their address and to all of them together; a credential
// returns the charge. A connection with a credential may hold many calls and any number of bytes of
// messages, but little beyond them: a peer that burns processor time on headers sends no messages.
//
// Knows nothing of sockets: its owner (Acceptor) tells what happens and ends the connections that
// the table gives up. The caller has the clock: `now` is monotonic. Thread-safe: handlers tell of
// calls while the owner accepts.
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
  kFull,               // refused: `connections` are there
  kRate,               // refused: its address, or anonymous ones together, cost too much
  kNoCredential,       // anonymous for too long
  kAnonymousBytes,     // sent too much without a credential
  kMadeRoom,           // the oldest anonymous one, when a further one came
  kNewerOfCredential,  // the oldest of its credential, when a further one came
  kCalls,     // too many calls: refused ones without a credential, or those of its credential
  kOverhead,  // more bytes beyond messages than overhead_bytes_per_second
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

  // --- The owner's side, one thread. From now on `wake` is called when a handler's call ended a
  // connection; null: no more. It must not call back.
  void SetWake(std::function<void()> wake);
  // A connection came: its id, or why it is refused. Another one of the same endpoint is gone,
  // then.
  struct Admission {
    std::optional<ConnectionEnd> refused = std::nullopt;
    ConnectionId id = 0;
  };
  Admission Admit(const Peer& peer, absl::Duration now);
  // What the kernel says of a connection: of an anonymous one a few milliseconds after it sent
  // something, and when it is ended. Whether it still is anonymous, and not ended.
  bool Observe(ConnectionId id, const ConnectionBytes& bytes, absl::Duration now);
  // It is closed.
  void Closed(ConnectionId id);
  // Those to end, each once, also those whose time is over. They stay in the table until Closed.
  std::vector<EndedConnection> TakeEnded(absl::Duration now);

  // --- The handlers' side. An endpoint that is not (or no more) in the table is ignored. A call
  // showed this credential; empty: nobody is authenticated (--insecure), then neither of_credential
  // nor the limits of calls and overhead hold.
  void OnCall(absl::string_view endpoint, absl::string_view credential, absl::Duration now);
  // A call showed no credential that is known.
  void OnRefusedCall(absl::string_view endpoint, absl::Duration now);
  // A message of so many bytes came on it.
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
    uint64_t explained = 0;  // what Observe last took for messages, calls and acknowledgements
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
  // False: the credential took too much, and the connection was ended.
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
