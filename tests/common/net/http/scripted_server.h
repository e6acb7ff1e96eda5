// An HTTP server that plays a script, byte by byte, for tests of clients.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace distro::testing {

class ScriptedServer {
 public:
  using Answers = std::vector<std::string>;
  using Script = std::vector<Answers>;

  // For each connection, in turn, the answers to its requests; after the last one the connection is
  // closed. "stays": it stays open, silent, until the server ends. Further connections are closed.
  explicit ScriptedServer(Script script)
      : script_(std::move(script)), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    for (const int open : open_) close(open);
    close(fd_);
  }
  ScriptedServer(const ScriptedServer&) = delete;

  int port() const { return port_; }
  int connections() const {
    absl::MutexLock lock(&mu_);
    return connections_;
  }
  // The head of the request, in the order of all connections.
  std::string request(size_t index) const {
    absl::MutexLock lock(&mu_);
    return requests_.at(index);
  }

 private:
  void Serve() {
    for (size_t i = 0;; ++i) {
      const int connection = accept(fd_, nullptr, nullptr);
      if (connection < 0) return;
      {
        absl::MutexLock lock(&mu_);
        ++connections_;
      }
      if (i >= script_.size() || Play(connection, script_[i])) close(connection);
    }
  }

  // Whether to close the connection.
  bool Play(int connection, const Answers& answers) {
    for (const std::string& answer : answers) {
      if (answer == "stays") {
        open_.push_back(connection);
        return false;
      }
      std::string head;
      char byte = 0;
      while (!absl::EndsWith(head, "\r\n\r\n") && recv(connection, &byte, 1, 0) == 1) head += byte;
      {
        absl::MutexLock lock(&mu_);
        requests_.push_back(head);
      }
      send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    return true;
  }

  const Script script_;
  const int fd_;
  int port_ = 0;
  std::vector<int> open_;  // of the thread
  mutable absl::Mutex mu_;
  int connections_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace distro::testing
