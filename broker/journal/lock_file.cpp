#include "broker/journal/lock_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

#include "broker/journal/state_file.hpp"

namespace leasehold::journal {

Result<UniqueFd> lock_state_dir(const std::string& state_dir) {
  const std::string path = state_dir + "/broker.lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return state_file_error(path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return fail_errno(Errc::SystemError, path, errno);
  return fail(
      Errc::SocketInUse,
      fmt::format("another broker uses {}; end it or choose another --state-dir", state_dir));
}

}  // namespace leasehold::journal
