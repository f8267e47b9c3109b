#include "common/machine/unique_fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leasehold {

/// Reports a lack of file descriptors as QueueFull, which is retryable; SystemError is final.
std::unexpected<Error> fail_errno(Errc code, std::string_view what, int error_number) {
  if (code == Errc::SystemError && (error_number == EMFILE || error_number == ENFILE)) {
    return fail(Errc::QueueFull, fmt::format("{}: no file descriptor is free; try again in a "
                                             "moment, or raise the limit of open files (ulimit -n)",
                                             what));
  }
  return fail(code, fmt::format("{}: {}", what, std::strerror(error_number)));
}

namespace {

Errc errc_of_file(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::DiskFull;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::PermissionDenied;
    case ENOENT:
    case ENOTDIR:
      return Errc::FileNotFound;
    default:
      return Errc::SystemError;
  }
}

}  // namespace

std::unexpected<Error> fail_file(std::string_view what, int error_number) {
  return fail_errno(errc_of_file(error_number), what, error_number);
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
