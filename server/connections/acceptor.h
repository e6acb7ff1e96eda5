// Accepts connections and hands them to gRPC, which has no limits of its own and whose listener
// ends for good when files run out (CVE-2023-4785). The connection table decides; here are the
// sockets: accept, look at what they received, end them.
//
// gRPC owns the socket of a connection. The acceptor knows it by its number and the kernel's
// cookie, so that it sees when gRPC has closed it, and never touches another file that got the same
// number.
//
// One thread. Thread-safe.
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

  // Listens from now on; connections wait in the kernel until Start. `table` and `log` are
  // borrowed. Statuses of ListeningSockets::Open.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& host, int port,
                                                          ConnectionTable* table, Log* log);
  // Stop().
  ~Acceptor();

  int port() const { return sockets_.port(); }

  // Begins to accept. `on_dead` is called at most once, by the acceptor's thread, when a listening
  // socket does not accept any more: the process should end with that status, so that its
  // supervisor starts it again.
  void Start(Handover handover, std::function<void(absl::Status)> on_dead);
  // Accepts no more; connections stay with whoever they were handed to. Again: nothing happens.
  void Stop();

  // Sockets are accepted: false before Start, after Stop and when the thread ended or hangs.
  bool accepting() const;

 private:
  enum class Accepted { kOne, kNone, kDead };

  Acceptor(ListeningSockets sockets, ConnectionTable* table, Log* log);
  void Run();
  // Waits for connections, at most until somebody must be looked at.
  void Wait();
  // As many as one turn may take. False: a socket does not accept any more.
  bool AcceptSome();
  Accepted AcceptOne(int listener);
  void TurnAwayOne(int listener);
  void Admit(int fd, const Peer& peer);
  void Wake();
  // Tells the table, once, when an anonymous connection sends something.
  void Watch(ConnectionId id, int fd, int operation);
  void LookAt(ConnectionId id, absl::Duration now);
  // At those that sent something.
  void LookAtActive(absl::Duration now);
  void LookAround(absl::Duration now);
  void EndConnections(absl::Duration now);
  // At most once a minute of strangers, and of those with a credential.
  void Note(absl::string_view why, absl::string_view address, absl::string_view credential);

  const ListeningSockets sockets_;
  ConnectionTable* const table_;
  Log* const log_;
  const Clock* const clock_ = Clock::Real();  // sockets know no other
  const int wake_fd_;                         // eventfd
  const int active_fd_;                       // epoll, of anonymous connections
  int spare_fd_;                              // given up to turn one away when no file is left

  // Of the thread.
  Handover handover_;
  std::function<void(absl::Status)> on_dead_;
  std::map<ConnectionId, SocketName> open_;
  bool full_turn_ = false;  // the last turn took as many as it may
  absl::Duration look_at_all_at_;
  absl::Duration note_at_;
  absl::Duration note_of_credentials_at_;

  std::atomic<bool> running_{false};
  std::atomic<int64_t> turned_at_{0};  // monotonic nanoseconds of the thread's last turn
  std::thread thread_;
};

}  // namespace distro::server
