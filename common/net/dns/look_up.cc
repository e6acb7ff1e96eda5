#include "common/net/dns/look_up.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/steady_cond_var.h"

namespace distro {
namespace {

absl::StatusOr<std::vector<SocketAddress>> AskSystem(const std::string& host, int port, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(error == EAI_SYSTEM ? absl::AsciiStrToLower(std::strerror(errno))
                                                      : gai_strerror(error));
  }
  const auto free = absl::MakeCleanup([list] { freeaddrinfo(list); });
  std::vector<SocketAddress> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    SocketAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    found.push_back(address);
  }
  if (found.empty()) return absl::UnavailableError("the name has no address");
  return found;
}

}  // namespace

// Shared with the thread; the result is valid when it is done.
struct LookUp::State {
  SteadyNotification done;
  absl::StatusOr<std::vector<SocketAddress>> result = absl::UnknownError("no result");

  void End(absl::StatusOr<std::vector<SocketAddress>> with) {
    result = std::move(with);
    done.Notify();
  }
};

std::string SocketAddress::Text() const {
  char text[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  return text;
}

LookUp::LookUp(const std::string& host, int port, HostResolver resolver)
    : state_(std::make_shared<State>()) {
  auto literal = AskSystem(host, port, AI_NUMERICHOST);
  if (literal.ok()) {
    state_->End(std::move(literal));
    return;
  }
  try {
    std::thread([state = state_, resolver = std::move(resolver), host, port] {
      state->End(resolver ? resolver(host, port) : AskSystem(host, port, 0));
    }).detach();
  } catch (const std::system_error& error) {
    state_->End(absl::UnavailableError(absl::StrCat("no thread for it: ", error.what())));
  }
}

bool LookUp::WaitFor(absl::Duration timeout) { return state_->done.WaitFor(timeout); }

const absl::StatusOr<std::vector<SocketAddress>>& LookUp::result() const { return state_->result; }

}  // namespace distro
