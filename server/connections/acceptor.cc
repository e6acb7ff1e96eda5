#include "server/connections/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

// Connections accepted per turn, after which the thread sleeps: so a flood of refused connections
// costs a few hundredths of a core.
constexpr int kAcceptedOfTurn = 64;
constexpr absl::Duration kRest = absl::Milliseconds(25);
constexpr absl::Duration kLookAtAnonymous = absl::Milliseconds(10);
constexpr absl::Duration kLookAtAll = absl::Seconds(1);
constexpr absl::Duration kNoteEvery = absl::Minutes(1);
// The thread counts as hanging after this time; it normally has a turn at least every second.
constexpr absl::Duration kHangs = absl::Seconds(20);

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOfOneConnection(int error) {
  return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM ||
         error == ENETDOWN || error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}

bool IsOfWholeMachine(int error) { return error == ENOBUFS || error == ENOMEM; }

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& host, int port,
                                                           ConnectionTable* table, Log* log) {
  DISTRO_ASSIGN_OR_RETURN(ListeningSockets sockets, ListeningSockets::Open(host, port));
  return std::unique_ptr<Acceptor>(new Acceptor(std::move(sockets), table, log));
}

Acceptor::Acceptor(ListeningSockets sockets, ConnectionTable* table, Log* log)
    : sockets_(std::move(sockets)),
      table_(table),
      log_(log),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      active_fd_(epoll_create1(EPOLL_CLOEXEC)),
      spare_fd_(OpenSpare()) {}

Acceptor::~Acceptor() {
  Stop();
  close(wake_fd_);
  close(active_fd_);
  close(spare_fd_);
}

void Acceptor::Start(Handover handover, std::function<void(absl::Status)> on_dead) {
  handover_ = std::move(handover);
  on_dead_ = std::move(on_dead);
  turned_at_ = absl::ToInt64Nanoseconds(clock_->MonotonicNow());
  running_ = true;
  table_->SetWake([this] { Wake(); });
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  table_->SetWake(nullptr);
  running_ = false;
  Wake();
  thread_.join();
}

void Acceptor::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof(one));
}

bool Acceptor::accepting() const {
  const absl::Duration turned = absl::Nanoseconds(turned_at_.load());
  return running_ && clock_->MonotonicNow() - turned < kHangs;
}

void Acceptor::Run() {
  while (running_) {
    turned_at_ = absl::ToInt64Nanoseconds(clock_->MonotonicNow());
    Wait();
    if (!running_) return;
    if (!AcceptSome()) break;
    LookAround(clock_->MonotonicNow());
    EndConnections(clock_->MonotonicNow());
  }
  if (!running_.exchange(false)) return;
  on_dead_(absl::InternalError("a listening socket does not accept connections any more"));
}

void Acceptor::Wait() {
  std::vector<pollfd> events = {{wake_fd_, POLLIN, 0}};
  const absl::Duration most = table_->anonymous() > 0 ? kLookAtAnonymous : kLookAtAll;
  if (std::exchange(full_turn_, false))  // regardless of events
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kRest)));
  for (const int fd : sockets_.fds()) events.push_back({fd, POLLIN, 0});
  poll(events.data(), events.size(), static_cast<int>(absl::ToInt64Milliseconds(most)));
  uint64_t wakes;
  (void)!read(wake_fd_, &wakes, sizeof(wakes));
}

bool Acceptor::AcceptSome() {
  int left = kAcceptedOfTurn;
  for (const int listener : sockets_.fds()) {
    Accepted accepted = Accepted::kOne;
    while (left > 0 && accepted == Accepted::kOne) {
      accepted = AcceptOne(listener);
      --left;
    }
    if (accepted == Accepted::kDead) return false;
  }
  full_turn_ |= left == 0;
  return true;
}

Acceptor::Accepted Acceptor::AcceptOne(int listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  const int fd =
      accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    Admit(fd, PeerOf(address));
    return Accepted::kOne;
  }
  const int error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK) return Accepted::kNone;
  if (IsOfOneConnection(error)) return Accepted::kOne;
  if (error == EMFILE || error == ENFILE || IsOfWholeMachine(error)) {
    Note(std::strerror(error), "", "");
    RefuseOne(listener);
    full_turn_ = true;  // sleep before the next turn
    return Accepted::kNone;
  }
  log_->Error("listening socket failed", {{"error", std::strerror(error)}});
  return Accepted::kDead;
}

// Without a free file descriptor the connection would stay in the kernel's queue and wake every
// turn.
void Acceptor::RefuseOne(int listener) {
  if (spare_fd_ >= 0) close(std::exchange(spare_fd_, -1));
  if (const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0) Reset(fd);
  spare_fd_ = OpenSpare();
}

void Acceptor::Admit(int fd, const Peer& peer) {
  const std::optional<SocketName> name = NameSocket(fd);
  if (!name || peer.endpoint.empty()) return Reset(fd);
  const ConnectionTable::Admission admission = table_->Admit(peer, clock_->MonotonicNow());
  if (admission.refused) {
    Note(ConnectionEndName(*admission.refused), peer.address, "");
    return Reset(fd);
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  open_[admission.id] = *name;
  Watch(admission.id, fd, EPOLL_CTL_ADD);
  handover_(fd);
}

void Acceptor::LookAt(ConnectionId id, absl::Duration now) {
  const auto socket = open_.find(id);
  if (socket == open_.end()) return;
  const std::optional<ConnectionBytes> bytes = BytesOf(socket->second);
  if (!bytes) {
    table_->Closed(id);
    open_.erase(socket);
  } else if (table_->Observe(id, *bytes, now)) {
    Watch(id, socket->second.fd, EPOLL_CTL_MOD);
  }
}

// One-shot events: a connection with a credential causes no more, however much it sends.
void Acceptor::Watch(ConnectionId id, int fd, int operation) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = id;
  epoll_ctl(active_fd_, operation, fd, &event);
}

// Inspects all active connections before any of them is watched again.
void Acceptor::LookAtActive(absl::Duration now) {
  std::vector<ConnectionId> active;
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = epoll_wait(active_fd_, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) active.push_back(events[i].data.u64);
  } while (count == static_cast<int>(events.size()));
  for (const ConnectionId id : active) LookAt(id, now);
}

void Acceptor::LookAround(absl::Duration now) {
  LookAtActive(now);
  if (now < look_at_all_at_) return;
  look_at_all_at_ = now + kLookAtAll;
  std::vector<ConnectionId> all;
  for (const auto& [id, socket] : open_) all.push_back(id);
  for (const ConnectionId id : all) LookAt(id, now);
}

void Acceptor::EndConnections(absl::Duration now) {
  for (const EndedConnection& ended : table_->TakeEnded(now)) {
    LookAt(ended.id, now);  // the last bytes are charged too
    const auto socket = open_.find(ended.id);
    if (socket != open_.end()) Disconnect(socket->second);
    Note(ConnectionEndName(ended.why), ended.peer.address, ended.credential);
  }
}

void Acceptor::Note(absl::string_view why, absl::string_view address,
                    absl::string_view credential) {
  const absl::Duration now = clock_->MonotonicNow();
  absl::Duration& note_at = credential.empty() ? note_at_ : note_of_credentials_at_;
  if (now < note_at) return;
  note_at = now + kNoteEvery;
  log_->Warning("connections are refused or ended: at most one line a minute",
                {{"reason", why},
                 {"address", address},
                 {"credential", credential},
                 {"anonymous", table_->anonymous()}});
}

}  // namespace distro::server
