// A TCP socket that somebody else owns, looked at from outside. Its number may be another file's by
// now; the kernel's cookie says which socket it is. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "server/connections/connection_table.h"

namespace distro::server {

struct SocketName {
  int fd = -1;
  uint64_t cookie = 0;
};

// Not set: `fd` is no open socket.
std::optional<SocketName> NameSocket(int fd);

// What the kernel counted. Not set: it is closed, as far as its owner is concerned.
std::optional<ConnectionBytes> BytesOf(const SocketName& socket);

// Resets the connection; what its owner has not read yet is gone, and its next read fails, so that
// it closes the socket. Nothing happens where it is closed.
void Disconnect(const SocketName& socket);

// The peer's end of `fd`, which we own, gets a reset: nothing lingers.
void Reset(int fd);

}  // namespace distro::server
