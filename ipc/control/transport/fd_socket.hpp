/// Non-blocking recvmsg(2) and sendmsg(2) with descriptors. Internal to ipc/control.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"

namespace leasehold::control {

struct Received {
  std::size_t size_bytes = 0;  ///< 0 means that the other end has closed, unless would_block.
  bool would_block = false;
  bool fds_lost = false;  ///< MSG_CTRUNC: the kernel dropped some; `fds` has the rest.
  std::vector<UniqueFd> fds;
};

/// Returns a control buffer for `max_fds` descriptors in one recvmsg.
std::vector<std::uint64_t> control_buffer(std::size_t max_fds);

/// The received descriptors are close-on-exec. Errors: ConnectionLost.
Result<Received> receive_some(int socket, std::span<char> bytes, std::span<std::uint64_t> control);

/// Sends a part of `bytes`, and all of `fds` with its first byte. `bytes` is not empty. Returns the
/// size of that part; 0 means that the socket is full. Errors: ConnectionLost.
Result<std::size_t> send_some(int socket, std::string_view bytes, std::span<const UniqueFd> fds);

}  // namespace leasehold::control
