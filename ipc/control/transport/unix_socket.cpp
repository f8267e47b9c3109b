// connect_to and listen_on.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {
namespace {

using boost::asio::local::stream_protocol;

constexpr auto kConnectTimeout = std::chrono::seconds(5);
constexpr auto kLockRetryInterval = std::chrono::milliseconds(10);
constexpr int kLockAttempts = 100;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path) || path.contains('\0')) {
    return fail(Errc::BadRequest,
                fmt::format("the path of a Unix socket has 1 to {} bytes, this one has {}: {}",
                            sizeof(address.sun_path) - 1, path.size(), path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> new_socket(int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return fail_errno(Errc::SystemError, "socket", errno);
  return fd;
}

/// Returns 0, or the errno of connect(2).
int try_connect(const UniqueFd& fd, const sockaddr_un& address) {
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof(address)) == 0 ? 0 : errno;
}

bool is_socket(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_socket(path, ignored);
}

std::unexpected<Error> refuse_connect(const std::string& path, int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return fail(Errc::FileNotFound, fmt::format("there is no socket {}; start leasehold-broker, "
                                                  "or the worker that listens there",
                                                  path));
    case EACCES:
    case EPERM:
      return fail(Errc::PermissionDenied,
                  fmt::format("this user may not connect to {}; check its mode and owner", path));
    case ECONNREFUSED:
    case EPROTOTYPE:
      if (!is_socket(path))
        return fail(Errc::ConnectionRefused, fmt::format("{} is not a socket", path));
      return fail(Errc::ConnectionRefused,
                  fmt::format("no process listens on {}; start the one that created it", path));
    case EAGAIN:
    case EINPROGRESS:
      return fail(Errc::ConnectionRefused,
                  fmt::format("the process at {} does not accept connections; retry", path));
    default:
      return fail_errno(Errc::SystemError, "connect to " + path, error_number);
  }
}

/// Prevents two starting processes from both finding a stale file, where one would then unlink the
/// other's new socket. Any process that may read the directory can lock it and keep the lock, so
/// after a second the start continues without the lock: processes of this program hold it for a
/// moment only.
Result<UniqueFd> lock_directory_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == EACCES)
    return fail(Errc::PermissionDenied,
                fmt::format("this user may not read {}; run as its owner", directory));
  if (!fd && (errno == ENOENT || errno == ENOTDIR))
    return fail(Errc::FileNotFound, fmt::format("there is no directory {}; create it", directory));
  if (!fd) return fail_errno(Errc::SystemError, "open " + directory, errno);
  for (int i = 0; i < kLockAttempts && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++i)
    std::this_thread::sleep_for(kLockRetryInterval);
  return fd;
}

/// Removes a socket file that no process listens on; leaves any other file alone.
Result<void> clear_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return {};  // bind reports any other problem
  if (!S_ISSOCK(status.st_mode)) {
    return fail(Errc::SocketInUse,
                fmt::format("{} exists and is not a socket; move it or listen elsewhere", path));
  }
  const UniqueFd probe = TRY(new_socket(SOCK_NONBLOCK));
  const int error_number = try_connect(probe, address);
  if (error_number == EACCES || error_number == EPERM)
    return fail(Errc::PermissionDenied,
                fmt::format("{} belongs to another user; remove it or listen elsewhere", path));
  if (error_number != ECONNREFUSED && error_number != ENOENT) {
    return fail(Errc::SocketInUse,
                fmt::format("a process listens on {}; stop it or listen elsewhere", path));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail_errno(Errc::PermissionDenied, "remove the stale socket " + path, errno);
  return {};
}

std::unexpected<Error> refuse_bind(const std::string& path, int error_number) {
  const bool denied = error_number == EACCES || error_number == EPERM || error_number == EROFS;
  if (denied) return fail_errno(Errc::PermissionDenied, "listen on " + path, error_number);
  if (error_number == EADDRINUSE)
    return fail(Errc::SocketInUse,
                fmt::format("another process just started to listen on {}; retry", path));
  return fail_errno(Errc::SystemError, "listen on " + path, error_number);
}

/// Sets the mode on the socket, so that bind creates the file with this mode, less the umask.
/// Restores the umask's bits before listen lets a process connect. So the file is never more open
/// than `mode`.
Result<void> bind_with_mode(const UniqueFd& fd, const sockaddr_un& address, mode_t mode) {
  const std::string path = address.sun_path;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::fchmod(fd.get(), mode) != 0) return fail_errno(Errc::SystemError, "fchmod", errno);
  if (::bind(fd.get(), generic, sizeof(address)) != 0) return refuse_bind(path, errno);
  if (::chmod(path.c_str(), mode) != 0) return fail_errno(Errc::SystemError, "chmod", errno);
  if (::listen(fd.get(), SOMAXCONN) != 0) return fail_errno(Errc::SystemError, "listen", errno);
  return {};
}

template <class Handle>
Result<Handle> adopt(boost::asio::io_context& io, UniqueFd fd) {
  Handle handle(io);
  boost::system::error_code error;
  handle.assign(stream_protocol(), fd.get(), error);
  if (error) return fail(Errc::SystemError, "adopt a socket: " + error.message());
  fd.release();
  return handle;
}

}  // namespace

Result<Socket> connect_to(boost::asio::io_context& io, const std::string& path) {
  const sockaddr_un address = TRY(address_of(path));
  UniqueFd fd = TRY(new_socket(0));
  // Without the timeout, a listener with a full queue would block connect(2) forever.
  const timeval timeout{.tv_sec = kConnectTimeout.count(), .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (const int error_number = try_connect(fd, address)) return refuse_connect(path, error_number);
  return adopt<Socket>(io, std::move(fd));
}

Result<stream_protocol::acceptor> listen_on(boost::asio::io_context& io, const std::string& path,
                                            mode_t mode) {
  const sockaddr_un address = TRY(address_of(path));
  const UniqueFd lock = TRY(lock_directory_of(path));
  TRY(clear_stale(path, address));
  UniqueFd fd = TRY(new_socket(0));
  TRY(bind_with_mode(fd, address, mode));
  return adopt<stream_protocol::acceptor>(io, std::move(fd));
}

Result<stream_protocol::acceptor> adopt_listener(boost::asio::io_context& io, UniqueFd kept,
                                                 const std::string& path) {
  sockaddr_un address{};
  socklen_t address_size = sizeof(address);
  int listens = 0;
  socklen_t size = sizeof(listens);
  const bool is_listener =
      ::getsockopt(kept.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
      ::getsockname(kept.get(), reinterpret_cast<sockaddr*>(&address), &address_size) == 0;
  const std::string_view bound(address.sun_path,
                               ::strnlen(address.sun_path, sizeof(address.sun_path)));
  if (!is_listener || address.sun_family != AF_UNIX || path != bound) {
    return fail(Errc::BadRequest, fmt::format("the kept socket does not listen on {}", path));
  }
  return adopt<stream_protocol::acceptor>(io, std::move(kept));
}

}  // namespace leasehold::control
