// Which connections may be there, below every handler (docs/security.md, "Connections"). A connection is anonymous until a
// call on it has shown a credential. Anonymous ones are few, short and may send little, and what they cost is charged to
// their address and to all of them together; a credential gives the charge back. One with a credential may hold many calls
// and any number of bytes of messages, but little beyond them: a peer that burns processor time on headers sends no messages.
//
// Knows nothing of sockets: its owner (Acceptor) tells what happens and ends the connections that the table gives up. The
// caller has the clock: `now` is monotonic. Thread-safe: handlers tell of calls while the owner accepts.
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
#include "server/connections/peer.h"
#include "server/limits/token_bucket.h"

namespace distro::server {

// The defaults are far above what honest peers need; docs/security.md has the arithmetic.
struct ConnectionLimits {
  // At one time, anonymous ones included.
  int connections = 4096;
  // Anonymous ones at one time, of all addresses and of one. One more ends the oldest of the address that has most, or of its
  // own, so that silent connections cannot keep others out.
  int anonymous = 512;
  int anonymous_of_address = 128;
  // How long one may stay anonymous, and how many bytes it may send as such: a TLS handshake with a certificate chain and the
  // metadata of a call are about 5 KiB.
  absl::Duration anonymous_time = absl::Seconds(10);
  uint64_t anonymous_bytes = 16 << 10;
  // What anonymous connections may cost, in bytes: each counts as 4 KiB at least. An address that has connections with a
  // credential is held to its own share only.
  uint64_t anonymous_bytes_per_second = 64 << 10;
  uint64_t anonymous_burst = 512 << 10;
  uint64_t address_bytes_per_second = 32 << 10;
  uint64_t address_burst = 256 << 10;
  // Calls on one that were refused for want of a credential.
  int anonymous_calls = 16;
  // Of one credential; a worker holds three. One more ends the oldest.
  int of_credential = 8;
  // Calls that begin on connections of a credential; a connection counts as 20.
  uint64_t calls_per_second = 200;
  uint64_t calls_burst = 500;
  // Bytes beyond messages, of a credential's connections. The burst is what may be on its way to handlers.
  uint64_t overhead_bytes_per_second = 64 << 10;
  uint64_t overhead_burst = 4 << 20;

  // As above for a process that may have so many files open. A connection is a file, and whoever follows the log through one
  // reads a second; 256 are for everything else.
  static ConnectionLimits ForOpenFiles(uint64_t open_files);
};

// Below this the aggregator does not start: 384 connections.
inline constexpr uint64_t kMinOpenFiles = 1024;

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

  // --- The owner's side, one thread.
  // From now on `wake` is called when a handler's call ended a connection; null: no more. It must not call back.
  void SetWake(std::function<void()> wake);
  // A connection came: its id, or why it is refused. Another one of the same endpoint is gone, then.
  struct Admission {
    std::optional<ConnectionEnd> refused = std::nullopt;
    ConnectionId id = 0;
  };
  Admission Admit(const Peer& peer, absl::Duration now);
  // What the kernel says of a connection: of an anonymous one a few milliseconds after it sent something, and when it is ended.
  // Whether it still is anonymous, and not ended.
  bool Observe(ConnectionId id, const ConnectionBytes& bytes, absl::Duration now);
  // It is closed.
  void Closed(ConnectionId id);
  // Those to end, each once, also those whose time is over. They stay in the table until Closed.
  std::vector<EndedConnection> TakeEnded(absl::Duration now);

  // --- The handlers' side. An endpoint that is not (or no more) in the table is ignored.
  // A call showed this credential; empty: nobody is authenticated (--insecure), then neither of_credential nor the limits of
  // calls and overhead hold.
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
    uint64_t accounted = 0;  // of what Observe saw beyond them
  };
  struct Address {
    TokenBucket bucket;
    int anonymous = 0;
    int authenticated = 0;
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
  std::map<std::string, Address> addresses_ ABSL_GUARDED_BY(mu_);  // of connections, or in debt
  TokenBucket all_anonymous_ ABSL_GUARDED_BY(mu_);
  absl::Duration forget_at_ ABSL_GUARDED_BY(mu_);
  std::function<void()> wake_ ABSL_GUARDED_BY(mu_);
  std::vector<EndedConnection> ended_ ABSL_GUARDED_BY(mu_);
  std::array<uint64_t, kConnectionEnds> ends_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace distro::server
