/// Sets close-on-exec on a descriptor, so that programs that this process starts do not inherit it.
/// For descriptors of libraries that do not set it, such as Asio's sockets. Source: fcntl(2),
/// FD_CLOEXEC.
#pragma once

#include <fcntl.h>

namespace leasehold {

/// Does nothing for a descriptor that is not open.
inline void set_close_on_exec(int fd) {
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace leasehold
