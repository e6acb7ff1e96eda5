#include "server/connections/connection_table.h"

#include <algorithm>
#include <utility>

namespace distro::server {
namespace {

constexpr uint64_t kCallsOfConnection = 20;  // likewise, for a peer with a credential
// Bytes read by a peer per byte of acknowledgements, at least.
constexpr uint64_t kReadBytesOfAnAcknowledgement = 512;
// Bytes of messages per byte of HTTP/2 frames and TLS records around them, at least.
constexpr uint64_t kMessageBytesOfFraming = 16;
constexpr uint64_t kCallBytes = 512;  // assumed size of a call's metadata
constexpr absl::Duration kForgetEvery = absl::Seconds(10);

}  // namespace

ConnectionTable::ConnectionTable(const ConnectionLimits& limits)
    : limits_(limits),
      all_anonymous_(limits.anonymous_bytes_per_second, limits.anonymous_burst,
                     absl::ZeroDuration()) {}

ConnectionTable::Address& ConnectionTable::AddressOf(const std::string& address,
                                                     absl::Duration now) {
  const TokenBucket full(limits_.address_bytes_per_second, limits_.address_burst, now);
  return addresses_.try_emplace(address, Address{.bucket = full}).first->second;
}

ConnectionTable::Admission ConnectionTable::Admit(const Peer& peer, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  if (const auto same = endpoints_.find(peer.endpoint); same != endpoints_.end())
    Remove(same->second);
  const auto refuse = [this](ConnectionEnd why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++ends_[static_cast<size_t>(why)];
    return Admission{.refused = why};
  };
  if (connections_.size() >= static_cast<size_t>(limits_.connections))
    return refuse(ConnectionEnd::kFull);
  const auto known = addresses_.find(peer.address);
  const bool trusted = known != addresses_.end() && known->second.Known(now);
  if (known != addresses_.end() && known->second.bucket.Empty(now))
    return refuse(ConnectionEnd::kRate);
  if (!trusted && all_anonymous_.Empty(now)) return refuse(ConnectionEnd::kRate);
  MakeRoom(peer.address);
  const ConnectionId id = ++next_id_;
  Connection& added = connections_[id];
  added.id = id;
  added.peer = peer;
  added.since = now;
  endpoints_[peer.endpoint] = id;
  anonymous_.insert(id);
  ++AddressOf(peer.address, now).anonymous;
  Charge(&added, kConnectionCost, now);
  return {.id = id};
}

void ConnectionTable::Charge(Connection* connection, uint64_t total, absl::Duration now) {
  if (total <= connection->charged) return;
  const uint64_t more = total - std::exchange(connection->charged, total);
  Address& address = AddressOf(connection->peer.address, now);
  address.bucket.Charge(more, now);
  if (!address.Known(now)) all_anonymous_.Charge(more, now);
}

void ConnectionTable::GiveBack(Connection* connection, absl::Duration now) {
  const uint64_t charged = std::exchange(connection->charged, 0);
  Address& address = AddressOf(connection->peer.address, now);
  address.bucket.GiveBack(charged, now);
  if (!address.Known(now)) all_anonymous_.GiveBack(charged, now);
}

void ConnectionTable::MakeRoom(const std::string& address) {
  const auto own = addresses_.find(address);
  if (own != addresses_.end() && own->second.anonymous >= limits_.anonymous_of_address)
    return EndOldestAnonymous(address);
  if (anonymous_.size() < static_cast<size_t>(limits_.anonymous)) return;
  const auto most = std::ranges::max_element(
      addresses_, {}, [](const auto& entry) { return entry.second.anonymous; });
  EndOldestAnonymous(most->first);
}

void ConnectionTable::EndOldestAnonymous(const std::string& address) {
  for (const ConnectionId id : anonymous_) {
    Connection& connection = connections_[id];
    if (connection.peer.address == address) return End(&connection, ConnectionEnd::kMadeRoom);
  }
}

// Frees the connection's places of its address and credential.
void ConnectionTable::GiveUpPlaces(const Connection& connection) {
  anonymous_.erase(connection.id);
  Address& address = addresses_.at(connection.peer.address);
  --(connection.authenticated ? address.authenticated : address.anonymous);
  const auto credential = credentials_.find(connection.credential);
  if (credential != credentials_.end()) credential->second.connections.erase(connection.id);
}

void ConnectionTable::End(Connection* connection, ConnectionEnd why) {
  connection->ended = true;
  ++ends_[static_cast<size_t>(why)];
  ended_.push_back({connection->id, why, connection->peer, connection->credential});
  if (wake_) wake_();
  GiveUpPlaces(*connection);
}

void ConnectionTable::Remove(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  if (!connection.ended) GiveUpPlaces(connection);
  const auto endpoint = endpoints_.find(connection.peer.endpoint);
  if (endpoint != endpoints_.end() && endpoint->second == id) endpoints_.erase(endpoint);
  connections_.erase(found);
}

void ConnectionTable::SetWake(std::function<void()> wake) {
  absl::MutexLock lock(&mu_);
  wake_ = std::move(wake);
}

void ConnectionTable::Closed(ConnectionId id) {
  absl::MutexLock lock(&mu_);
  Remove(id);
}

ConnectionTable::Connection* ConnectionTable::Find(absl::string_view endpoint) {
  const auto found = endpoints_.find(endpoint);
  if (found == endpoints_.end()) return nullptr;
  Connection* connection = &connections_.at(found->second);
  return connection->ended ? nullptr : connection;
}

ConnectionTable::Credential& ConnectionTable::CredentialOf(absl::string_view name,
                                                           absl::Duration now) {
  const auto found = credentials_.find(name);
  if (found != credentials_.end()) return found->second;
  const TokenBucket calls(limits_.calls_per_second, limits_.calls_burst, now);
  const TokenBucket overhead(limits_.overhead_bytes_per_second, limits_.overhead_burst, now);
  return credentials_.emplace(std::string(name), Credential{.calls = calls, .overhead = overhead})
      .first->second;
}

void ConnectionTable::Authenticate(Connection* connection, absl::Duration now) {
  connection->authenticated = true;
  anonymous_.erase(connection->id);
  GiveBack(connection, now);
  Address& address = AddressOf(connection->peer.address, now);
  --address.anonymous;
  ++address.authenticated;
  address.known_until = now + limits_.known_for;
}

// Done before the charge is returned, so that a credential over its limit cannot reconnect for
// free.
bool ConnectionTable::Adopt(Connection* connection, absl::string_view name, absl::Duration now) {
  Credential& credential = CredentialOf(name, now);
  connection->credential = std::string(name);
  if (credential.overhead.Empty(now)) {
    End(connection, ConnectionEnd::kOverhead);
    return false;
  }
  if (credential.calls.Take(kCallsOfConnection, now) > absl::ZeroDuration()) {
    End(connection, ConnectionEnd::kCalls);
    return false;
  }
  credential.connections.insert(connection->id);
  if (credential.connections.size() > static_cast<size_t>(limits_.of_credential))
    End(&connections_.at(*credential.connections.begin()), ConnectionEnd::kNewerOfCredential);
  return true;
}

void ConnectionTable::OnCall(absl::string_view endpoint, absl::string_view credential,
                             absl::Duration now) {
  absl::MutexLock lock(&mu_);
  Connection* connection = Find(endpoint);
  if (connection == nullptr) return;
  if (connection->credential.empty() && !credential.empty() &&
      !Adopt(connection, credential, now)) {
    return;
  }
  if (!connection->authenticated) Authenticate(connection, now);
  if (connection->credential.empty()) return;
  connection->messages += kCallBytes;
  if (CredentialOf(connection->credential, now).calls.Take(1, now) > absl::ZeroDuration())
    End(connection, ConnectionEnd::kCalls);
}

void ConnectionTable::OnRefusedCall(absl::string_view endpoint, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  Connection* connection = Find(endpoint);
  if (connection == nullptr) return;
  const bool too_many =
      connection->credential.empty()
          ? ++connection->refused_calls > limits_.anonymous_calls
          : CredentialOf(connection->credential, now).calls.Take(1, now) > absl::ZeroDuration();
  if (too_many) End(connection, ConnectionEnd::kCalls);
}

void ConnectionTable::OnMessage(absl::string_view endpoint, uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  if (Connection* connection = Find(endpoint); connection != nullptr) connection->messages += bytes;
}

bool ConnectionTable::Observe(ConnectionId id, const ConnectionBytes& bytes, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  Connection& connection = found->second;
  if (!connection.authenticated) Charge(&connection, bytes.received, now);
  if (connection.ended) return false;
  if (connection.authenticated) {
    ObserveOverhead(&connection, bytes, now);
    return false;
  }
  if (bytes.received <= limits_.anonymous_bytes) return true;
  End(&connection, ConnectionEnd::kAnonymousBytes);
  return false;
}

void ConnectionTable::EndExpired(absl::Duration now) {
  while (!anonymous_.empty()) {
    Connection& oldest = connections_.at(*anonymous_.begin());
    if (now - oldest.since < limits_.anonymous_time) return;
    End(&oldest, ConnectionEnd::kNoCredential);
  }
}

// A message's bytes arrive before its handler gets it: they count as overhead at first, and are
// returned afterwards. This cannot accumulate credit: the bucket holds no more than its burst.
void ConnectionTable::ObserveOverhead(Connection* connection, const ConnectionBytes& bytes,
                                      absl::Duration now) {
  if (connection->credential.empty()) return;
  const uint64_t explained = connection->messages + connection->messages / kMessageBytesOfFraming +
                             bytes.acknowledged / kReadBytesOfAnAcknowledgement;
  TokenBucket& overhead = CredentialOf(connection->credential, now).overhead;
  const uint64_t received = std::max(bytes.received, connection->seen);
  const uint64_t came = received - std::exchange(connection->seen, received);
  const uint64_t is_explained = explained - std::exchange(connection->explained, explained);
  if (came >= is_explained) {
    overhead.Charge(came - is_explained, now);
  } else {
    overhead.GiveBack(is_explained - came, now);
  }
  if (overhead.Empty(now)) End(connection, ConnectionEnd::kOverhead);
}

// Without connections, only recent charges must be remembered.
void ConnectionTable::ForgetIdle(absl::Duration now) {
  if (now < forget_at_) return;
  forget_at_ = now + kForgetEvery;
  std::erase_if(addresses_, [now](const auto& entry) {
    const Address& address = entry.second;
    return address.anonymous == 0 && !address.Known(now) && address.bucket.Full(now);
  });
  std::erase_if(credentials_, [now](const auto& entry) {
    const Credential& credential = entry.second;
    return credential.connections.empty() && credential.calls.Full(now) &&
           credential.overhead.Full(now);
  });
}

std::vector<EndedConnection> ConnectionTable::TakeEnded(absl::Duration now) {
  absl::MutexLock lock(&mu_);
  EndExpired(now);
  ForgetIdle(now);
  return std::exchange(ended_, {});
}

int ConnectionTable::anonymous() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(anonymous_.size());
}

int ConnectionTable::authenticated() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(std::ranges::count_if(connections_, [](const auto& entry) {
    return entry.second.authenticated && !entry.second.ended;
  }));
}

std::array<uint64_t, kConnectionEnds> ConnectionTable::ends() const {
  absl::MutexLock lock(&mu_);
  return ends_;
}

absl::string_view ConnectionEndName(ConnectionEnd end) {
  constexpr std::array<absl::string_view, kConnectionEnds> kNames = {
      "full",  "rate",    "no_credential", "anonymous_bytes", "made_room", "newer_of_credential",
      "calls", "overhead"};
  return kNames[static_cast<size_t>(end)];
}

}  // namespace distro::server
