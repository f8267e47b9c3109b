#include "common/machine/service_manager.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace leasehold {
namespace {

/// Set when the manager does not take a message in time, so that later messages do not wait.
std::atomic<bool> is_stuck{false};

struct ManagerAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// Reads NOTIFY_SOCKET: a path, or an abstract name that begins with '@'. Nothing for other forms.
std::optional<ManagerAddress> manager_address() {
  const char* text = std::getenv("NOTIFY_SOCKET");
  const std::string_view name = text == nullptr ? "" : text;
  ManagerAddress manager;
  manager.address.sun_family = AF_UNIX;
  const bool is_known = name.starts_with('/') || name.starts_with('@');
  if (!is_known || name.size() >= sizeof(manager.address.sun_path)) return std::nullopt;
  std::memcpy(manager.address.sun_path, name.data(), name.size());
  if (name.starts_with('@')) manager.address.sun_path[0] = '\0';
  manager.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return manager;
}

/// Sends one message, with a descriptor unless `fd` is -1. Returns 0 or the errno.
int try_send(const UniqueFd& socket, std::string_view state, int fd) {
  iovec part{.iov_base = const_cast<char*>(state.data()), .iov_len = state.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
  }
  return ::sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

Result<void> send(std::string_view state, int fd) {
  const auto manager = manager_address();
  if (!manager) return {};
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&manager->address);
  if (!socket || ::connect(socket.get(), address, manager->size) != 0)
    return fail_errno(Errc::SystemError, "connect to the service manager", errno);
  int error_number = try_send(socket, state, fd);
  if (error_number == EAGAIN && !is_stuck) {
    pollfd writable{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    (void)::poll(&writable, 1, static_cast<int>(kManagerTimeout.count()));
    error_number = try_send(socket, state, fd);
  }
  is_stuck = error_number == EAGAIN;
  if (error_number == EAGAIN)
    return fail(Errc::TimedOut, "the service manager does not read its socket");
  if (error_number != 0)
    return fail_errno(Errc::SystemError, "send to the service manager", error_number);
  return {};
}

}  // namespace

void notify_service_manager(const std::string& state) {
  (void)send(state, -1);
}

Result<void> send_to_service_manager(const std::string& state, const UniqueFd& fd) {
  return send(state, fd.get());
}

}  // namespace leasehold
