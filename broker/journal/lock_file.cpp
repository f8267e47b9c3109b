#include "broker/journal/lock_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

namespace leasehold::journal {

Result<UniqueFd> lock_state_dir(const std::string& state_dir) {
  const std::string path = state_dir + "/broker.lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    const Errc code = errno == ENOENT ? Errc::FileNotFound : Errc::SystemError;
    return fail_errno(code, path, errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return fail_errno(Errc::SystemError, path, errno);
  return fail(
      Errc::SocketInUse,
      fmt::format("another broker works with {}; end it or choose another --state-dir", state_dir));
}

}  // namespace leasehold::journal
