/// A Unix socket that does not use the project's client code.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <utility>

#include "common/machine/unique_fd.hpp"

namespace leasehold::testing {

/// Connected to the socket at `path`; invalid when no process listens there.
inline UniqueFd connect_raw(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), to, sizeof(address)) == 0 ? std::move(fd) : UniqueFd();
}

}  // namespace leasehold::testing
