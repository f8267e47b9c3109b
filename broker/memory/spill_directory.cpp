#include "broker/memory/spill_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/machine/private_directory.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> open_error(const std::string& path, int error_number) {
  switch (error_number) {
    case ENOENT:
      return fail(Errc::BadRequest,
                  fmt::format("the spill directory {} does not exist; create it, mode 0700, for "
                              "the broker's user, or name another with --spill-dir",
                              path));
    case ENOTDIR:
    case ELOOP:
      return fail(Errc::BadRequest,
                  fmt::format("{} is a symbolic link or no directory; name the directory itself "
                              "with --spill-dir",
                              path));
    case EACCES:
    case EPERM:
      return fail(Errc::PermissionDenied,
                  fmt::format("user {} cannot open the spill directory {}; give it to the "
                              "broker's user, mode 0700",
                              ::geteuid(), path));
    default:
      return fail_errno(Errc::SystemError, path, error_number);
  }
}

}  // namespace

/// Removes slashes at the end, which would make the kernel follow a symbolic link.
Result<SpillDirectory> SpillDirectory::open(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return open_error(name, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, name, errno);
  TRY(check_private_directory(status, "spill", name));
  return SpillDirectory(std::move(fd), std::move(name));
}

/// Uses fallocate(2), because posix_fallocate writes the whole file if the file system cannot
/// allocate space.
Result<UniqueFd> SpillDirectory::create_file(std::uint64_t size_bytes) const {
  UniqueFd file(::openat(fd_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return file_error(size_bytes, errno);
  int allocated = -1;
  do allocated = ::fallocate(file.get(), 0, 0, static_cast<off_t>(size_bytes));
  while (allocated != 0 && errno == EINTR);
  if (allocated != 0) return file_error(size_bytes, errno);
  return file;
}

std::unexpected<Error> SpillDirectory::file_error(std::uint64_t size_bytes,
                                                  int error_number) const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) == 0 && status.st_nlink == 0) {
    return fail(
        Errc::BadRequest,
        fmt::format("the spill directory {} was removed; create it and restart the broker", path_));
  }
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return fail(Errc::DiskFull,
                  fmt::format("no room for a spill file of {} bytes in {}; make room there, or "
                              "lower --spill-capacity",
                              size_bytes, path_));
    case EROFS:
      return fail(
          Errc::BadRequest,
          fmt::format("{} is on a read-only file system; name another with --spill-dir", path_));
    case EOPNOTSUPP:
    case EISDIR:
      return fail(Errc::BadRequest,
                  fmt::format("the file system of {} cannot allocate files without a name; name "
                              "a directory on ext4 or XFS with --spill-dir",
                              path_));
    default:
      return fail_errno(Errc::SystemError, fmt::format("a spill file in {}", path_), error_number);
  }
}

}  // namespace leasehold
