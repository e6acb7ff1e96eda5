// Inspects and ends a TCP socket owned by other code. Its number may have been reused for another
// file; the kernel's cookie identifies the socket. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "server/connections/connection_table.h"

namespace distro::server {

struct SocketName {
  int fd = -1;
  uint64_t cookie = 0;
};

// nullopt: `fd` is not an open socket.
std::optional<SocketName> NameSocket(int fd);

// The kernel's byte counts. nullopt: its owner has closed it.
std::optional<ConnectionBytes> BytesOf(const SocketName& socket);

// Resets the connection. Unread data is lost, and the owner's next read fails, so that it closes
// the socket. Does nothing if it is closed.
void Disconnect(const SocketName& socket);

// Closes `fd`, which the caller owns, with a reset instead of lingering.
void Reset(int fd);

}  // namespace distro::server
