#include "broker/journal/state_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace leasehold::journal {

std::unexpected<Error> state_file_error(const std::string& path, int error_number) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  switch (error_number) {
    case ENOENT:
      return fail(
          Errc::BadRequest,
          fmt::format("the state directory {} does not exist; create it, mode 0700, for the "
                      "broker's user, or name another with --state-dir",
                      directory));
    case ENOTDIR:
      return fail(Errc::BadRequest,
                  fmt::format("{} is no directory; name one with --state-dir", directory));
    case EROFS:
      return fail(Errc::BadRequest,
                  fmt::format("{} lies on a read-only file system; name another with --state-dir",
                              directory));
    case EACCES:
    case EPERM:
      return fail(Errc::PermissionDenied,
                  fmt::format("user {} may not use {}; the state directory must belong to the "
                              "broker's user",
                              ::geteuid(), path));
    case ELOOP:
      return fail(
          Errc::PermissionDenied,
          fmt::format("{} is a symbolic link, which the broker does not follow; remove it", path));
    case ENOSPC:
    case EDQUOT:
      return fail(Errc::DiskFull, fmt::format("there is no room for {}", path));
    default:
      return fail_errno(Errc::SystemError, path, error_number);
  }
}

}  // namespace leasehold::journal
