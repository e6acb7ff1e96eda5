// Accepts connections and passes them to gRPC, which has no limits on connections and whose
// listener stops for good when file descriptors run out (CVE-2023-4785). The connection table
// decides which to refuse or close; the acceptor handles the sockets.
//
// gRPC owns the socket of a connection. The acceptor identifies it by its number and the kernel's
// cookie, so that it notices when gRPC has closed it and never touches another file with the same
// number.
//
// Runs one thread. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/connections/connection_table.h"
#include "server/connections/listening_sockets.h"
#include "server/connections/socket.h"

namespace distro::server {

class Acceptor {
 public:
  // Takes the socket of a connection, non-blocking.
  using Handover = std::function<void(int fd)>;

  // Starts to listen; connections wait in the kernel until Start. `table` and `log` are borrowed.
  // Statuses of ListeningSockets::Open.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& host, int port,
                                                          ConnectionTable* table, Log* log);
  // Stop().
  ~Acceptor();

  int port() const { return sockets_.port(); }

  // Starts to accept. `on_dead` is called at most once, by the acceptor's thread, when a listening
  // socket no longer accepts: the process should exit with that status, so that its supervisor
  // restarts it.
  void Start(Handover handover, std::function<void(absl::Status)> on_dead);
  // Stops accepting; existing connections stay open. Idempotent.
  void Stop();

  // Whether connections are accepted: false before Start, after Stop, and when the thread has ended
  // or hangs.
  bool accepting() const;

 private:
  enum class Accepted { kOne, kNone, kDead };

  Acceptor(ListeningSockets sockets, ConnectionTable* table, Log* log);
  void Run();
  // Waits for connections, at most until an existing one must be inspected.
  void Wait();
  // Accepts as many as one turn may. Returns false if a socket no longer accepts.
  bool AcceptSome();
  Accepted AcceptOne(int listener);
  void RefuseOne(int listener);
  void Admit(int fd, const Peer& peer);
  void Wake();
  // Requests one event when an anonymous connection sends something.
  void Watch(ConnectionId id, int fd, int operation);
  void LookAt(ConnectionId id, absl::Duration now);
  // Inspects the connections that sent something.
  void LookAtActive(absl::Duration now);
  void LookAround(absl::Duration now);
  void EndConnections(absl::Duration now);
  // Logs at most once a minute for anonymous connections, and for those with a credential.
  void Note(absl::string_view why, absl::string_view address, absl::string_view credential);

  const ListeningSockets sockets_;
  ConnectionTable* const table_;
  Log* const log_;
  const Clock* const clock_ = Clock::Real();  // sockets use real time
  const int wake_fd_;                         // eventfd
  const int active_fd_;                       // epoll, of anonymous connections
  int spare_fd_;                              // closed to refuse a connection when none is free

  // Used by the thread only.
  Handover handover_;
  std::function<void(absl::Status)> on_dead_;
  std::map<ConnectionId, SocketName> open_;
  bool full_turn_ = false;  // the last turn accepted the maximum
  absl::Duration look_at_all_at_;
  absl::Duration note_at_;
  absl::Duration note_of_credentials_at_;

  std::atomic<bool> running_{false};
  std::atomic<int64_t> turned_at_{0};  // monotonic nanoseconds of the thread's last turn
  std::thread thread_;
};

}  // namespace distro::server
