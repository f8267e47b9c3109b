#include "broker/journal/state_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/machine/private_directory.hpp"

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
                  fmt::format("{} is not a directory; name one with --state-dir", directory));
    case EROFS:
      return fail(Errc::BadRequest,
                  fmt::format("{} is on a read-only file system; name another with --state-dir",
                              directory));
    case EACCES:
    case EPERM:
      return fail(Errc::PermissionDenied,
                  fmt::format("user {} cannot use {}; the state directory must belong to the "
                              "broker's user",
                              ::geteuid(), path));
    case ELOOP:
      return fail(Errc::PermissionDenied, fmt::format("{} is a symbolic link; remove it", path));
    case ENOSPC:
    case EDQUOT:
      return fail(Errc::DiskFull, fmt::format("no space for {}; make room in {}", path, directory));
    case EFBIG:
      return fail(
          Errc::DiskFull,
          fmt::format("no space for {} below the limit of file sizes; make room in {}, or raise "
                      "the limit (LimitFSIZE=, ulimit -f)",
                      path, directory));
    default:
      return fail_errno(Errc::SystemError, path, error_number);
  }
}

namespace {

/// Only the broker's user may write to the directory: another user could replace the journal and
/// the key that signs tokens.
Result<void> check_private(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return {};  // the later open reports it
  return check_private_directory(status, "state", directory);
}

}  // namespace

Result<UniqueFd> lock_state_dir(const std::string& state_dir) {
  TRY(check_private(state_dir));
  const std::string path = state_dir + "/broker.lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return state_file_error(path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return fail_errno(Errc::SystemError, path, errno);
  return fail(
      Errc::SocketInUse,
      fmt::format("another broker uses {}; stop it, or use another --state-dir", state_dir));
}

Result<FileIdentity> identity_of(const UniqueFd& file, const std::string& path) {
  struct statx status{};
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0)
    return fail_errno(Errc::SystemError, path, errno);
  const bool is_born = (status.stx_mask & STATX_BTIME) != 0;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return FileIdentity{
      .inode = status.stx_ino,
      .born_unix_ns =
          is_born ? status.stx_btime.tv_sec * kNsPerSecond + status.stx_btime.tv_nsec : 0};
}

Result<void> write_state_file(const std::string& path,
                              const std::function<std::string(const FileIdentity&)>& text_of) {
  const std::string fresh_path = path + ".new";
  ::unlink(fresh_path.c_str());
  const UniqueFd fd(::open(fresh_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return state_file_error(fresh_path, errno);
  const std::string text = text_of(TRY(identity_of(fd, fresh_path)));
  const ssize_t put = ::write(fd.get(), text.data(), text.size());
  if (put >= 0 && put != static_cast<ssize_t>(text.size())) return state_file_error(path, ENOSPC);
  if (put < 0 || ::fsync(fd.get()) != 0 || ::rename(fresh_path.c_str(), path.c_str()) != 0) {
    return state_file_error(fresh_path, errno);
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return state_file_error(path, errno);
  return {};
}

Result<std::optional<std::string>> read_secret_file(const std::string& path,
                                                    std::size_t max_bytes) {
  constexpr mode_t kGroupAndOthers = 0077;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return state_file_error(path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, path, errno);
  if ((status.st_mode & kGroupAndOthers) != 0 || status.st_uid != ::geteuid()) {
    return fail(Errc::PermissionDenied,
                fmt::format("{} has mode {:o} and owner {}; set mode 0600 and owner {}", path,
                            status.st_mode & 0777, status.st_uid, ::geteuid()));
  }
  std::string text(max_bytes + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace leasehold::journal
