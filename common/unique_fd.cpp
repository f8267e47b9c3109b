#include "common/unique_fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leasehold {

std::unexpected<Error> fail_errno(Errc code, std::string_view what, int error_number) {
  return fail(code, fmt::format("{}: {}", what, std::strerror(error_number)));
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<UniqueFd> UniqueFd::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno(Errc::SystemError, "fcntl(F_DUPFD_CLOEXEC)", errno);
  return UniqueFd(copy);
}

}  // namespace leasehold
