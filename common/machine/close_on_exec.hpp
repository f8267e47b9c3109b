/// Keeps a descriptor of a library that does not do so itself, such as a socket of Asio, from
/// programs that this process starts. Source: fcntl(2), FD_CLOEXEC.
#pragma once

#include <fcntl.h>

namespace leasehold {

/// Does nothing for a descriptor that is not open.
inline void set_close_on_exec(int fd) {
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace leasehold
