#include "ipc/control/transport/fd_socket.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace leasehold::control {
namespace {

std::vector<UniqueFd> extract_fds(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

void put_fds(msghdr& message, std::span<std::uint64_t> control, std::span<const UniqueFd> fds) {
  const std::size_t size_bytes = fds.size() * sizeof(int);
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(size_bytes);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(size_bytes);
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const int fd = fds[i].get();
    std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
  }
}

bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK;
}

}  // namespace

std::vector<std::uint64_t> control_buffer(std::size_t max_fds) {
  constexpr std::size_t kUnit = sizeof(std::uint64_t);
  return std::vector<std::uint64_t>((CMSG_SPACE(max_fds * sizeof(int)) + kUnit - 1) / kUnit);
}

Result<Received> receive_some(int socket, std::span<char> bytes, std::span<std::uint64_t> control) {
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size_bytes();
  ssize_t size = 0;
  do size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < 0 && would_block(errno)) return Received{.would_block = true};
  if (size < 0) return fail_errno(Errc::ConnectionLost, "recvmsg", errno);
  return Received{.size_bytes = static_cast<std::size_t>(size),
                  .fds_lost = (message.msg_flags & MSG_CTRUNC) != 0,
                  .fds = extract_fds(message)};
}

Result<std::size_t> send_some(int socket, std::string_view bytes, std::span<const UniqueFd> fds) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<std::uint64_t> control;
  if (!fds.empty()) {
    control = control_buffer(fds.size());
    put_fds(message, control, fds);
  }
  ssize_t size = 0;
  do size = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (size < 0 && errno == EINTR);
  if (size < 0 && would_block(errno)) return 0;
  if (size < 0) return fail_errno(Errc::ConnectionLost, "sendmsg", errno);
  return static_cast<std::size_t>(size);
}

}  // namespace leasehold::control
