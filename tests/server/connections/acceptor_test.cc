#include "server/connections/acceptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback.h"

namespace distro::server {
namespace {

using testing::ListeningSocketOf;
using testing::LoopbackClient;

// The owner of the sockets: keeps them until told.
class Owner {
 public:
  ~Owner() { CloseAll(); }
  void Take(int fd) {
    absl::MutexLock lock(&mu_);
    fds_.push_back(fd);
  }
  size_t held() {
    absl::MutexLock lock(&mu_);
    return fds_.size();
  }
  // Blocks until a socket is at its end, as gRPC would see it.
  void AwaitEnd(size_t index) {
    char byte;
    int fd;
    {
      absl::MutexLock lock(&mu_);
      fd = fds_[index];
    }
    fcntl(fd, F_SETFL, 0);
    while (recv(fd, &byte, 1, 0) > 0) {
    }
  }
  void CloseAll() {
    absl::MutexLock lock(&mu_);
    for (const int fd : fds_) close(fd);
    fds_.clear();
  }

 private:
  absl::Mutex mu_;
  std::vector<int> fds_;
};

class AcceptorTest : public ::testing::Test {
 protected:
  void Start(const ConnectionLimits& limits = {}) {
    table_ = std::make_unique<ConnectionTable>(limits);
    auto acceptor = Acceptor::Listen("127.0.0.1", 0, table_.get(), &log_);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    acceptor_->Start([this](int fd) { owner_.Take(fd); },
                     [this](absl::Status status) {
                       dead_ = status;
                       died_.Notify();
                     });
  }
  template <typename Condition>
  static void Await(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }

  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  Owner owner_;
  std::unique_ptr<ConnectionTable> table_;
  absl::Status dead_;
  absl::Notification died_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, HandsConnectionsOverAndCountsDownThoseThatTheirOwnerCloses) {
  Start();
  std::vector<LoopbackClient> clients(3);
  for (LoopbackClient& client : clients) ASSERT_TRUE(client.Connect(acceptor_->port()));
  Await([&] { return owner_.held() == 3; });
  EXPECT_EQ(table_->anonymous(), 3);
  owner_.CloseAll();
  Await([&] { return table_->anonymous() == 0; });
}

TEST_F(AcceptorTest, EndsWhoShowsNoCredential) {
  Start({.anonymous_time = absl::Milliseconds(1)});
  LoopbackClient client;
  ASSERT_TRUE(client.Connect(acceptor_->port()));
  Await([&] { return owner_.held() == 1; });
  EXPECT_TRUE(client.SeesTheEnd());
  owner_.AwaitEnd(0);
  owner_.CloseAll();
  Await([&] { return table_->anonymous() == 0; });
  EXPECT_EQ(table_->ends()[static_cast<size_t>(ConnectionEnd::kNoCredential)], 1);
}

TEST_F(AcceptorTest, EndsWhoSendsMuchWithoutACredential) {
  Start();
  LoopbackClient client;
  ASSERT_TRUE(client.Connect(acceptor_->port()));
  ASSERT_TRUE(client.Send(std::string(40'000, 'x')));
  Await([&] { return owner_.held() == 1; });
  owner_.AwaitEnd(0);
  EXPECT_EQ(table_->ends()[static_cast<size_t>(ConnectionEnd::kAnonymousBytes)], 1);
}

TEST_F(AcceptorTest, ResetsWhoIsRefused) {
  Start({.connections = 1});
  std::vector<LoopbackClient> clients(2);
  ASSERT_TRUE(clients[0].Connect(acceptor_->port()));
  Await([&] { return owner_.held() == 1; });
  ASSERT_TRUE(clients[1].Connect(acceptor_->port()));
  EXPECT_TRUE(clients[1].SeesTheEnd());
  EXPECT_EQ(owner_.held(), 1);
}

// Every number below the limit of open files is taken while the object lives.
class NoFilesLeft {
 public:
  NoFilesLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few = {.rlim_cur = 256, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = dup(STDIN_FILENO); fd >= 0; fd = dup(STDIN_FILENO)) taken_.push_back(fd);
  }
  ~NoFilesLeft() {
    for (const int fd : taken_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_ = {};
  std::vector<int> taken_;
};

TEST_F(AcceptorTest, AcceptsAgainAfterFilesRanOut) {
  Start();
  std::vector<LoopbackClient> clients(20);
  {
    const NoFilesLeft none;
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(clients[i].Connect(acceptor_->port()));
      EXPECT_TRUE(clients[i].SeesTheEnd()) << i;
    }
    EXPECT_EQ(owner_.held(), 0);
    EXPECT_TRUE(acceptor_->accepting());
  }
  for (int i = 10; i < 20; ++i) ASSERT_TRUE(clients[i].Connect(acceptor_->port()));
  Await([&] { return owner_.held() == 10; });
}

TEST_F(AcceptorTest, TellsWhenAListeningSocketAcceptsNoMore) {
  Start();
  EXPECT_TRUE(acceptor_->accepting());
  ASSERT_EQ(shutdown(ListeningSocketOf(acceptor_->port()), SHUT_RDWR), 0);
  died_.WaitForNotification();
  EXPECT_EQ(dead_.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(acceptor_->accepting());
}

TEST_F(AcceptorTest, AcceptsNobodyAfterItsStop) {
  Start();
  acceptor_->Stop();
  EXPECT_FALSE(acceptor_->accepting());
  acceptor_->Stop();
  EXPECT_FALSE(died_.HasBeenNotified());
}

TEST(SocketTest, SparesOtherFileWithSameNumber) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  std::optional<SocketName> name = NameSocket(pair[0]);
  ASSERT_TRUE(name);
  ++name->cookie;
  Disconnect(*name);
  EXPECT_FALSE(BytesOf(*name));
  EXPECT_EQ(write(pair[0], "x", 1), 1);
  close(pair[0]);
  close(pair[1]);
}

TEST(SocketTest, DropsUnreadOnDisconnect) {
  auto sockets = ListeningSockets::Open("127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok());
  LoopbackClient client;
  ASSERT_TRUE(client.Connect(sockets->port()));
  ASSERT_TRUE(client.Send("hello"));
  const int fd = accept4(sockets->fds()[0], nullptr, nullptr, SOCK_CLOEXEC);
  const std::optional<SocketName> name = NameSocket(fd);
  ASSERT_TRUE(name);
  Disconnect(*name);
  char byte;
  EXPECT_EQ(recv(fd, &byte, 1, 0), -1);
  EXPECT_TRUE(client.SeesTheEnd());
  close(fd);
}

TEST(SocketTest, IgnoresClosedSocket) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const std::optional<SocketName> name = NameSocket(fd);
  close(fd);
  ASSERT_TRUE(name);
  EXPECT_FALSE(BytesOf(*name));
  Disconnect(*name);
}

}  // namespace
}  // namespace distro::server
