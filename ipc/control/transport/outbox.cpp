#include "ipc/control/transport/outbox.hpp"

#include "ipc/control/transport/fd_socket.hpp"

namespace leasehold::control {
namespace {

constexpr std::size_t kFdCostBytes = 4096;
/// Lines without descriptors are sent together up to about this size.
constexpr std::size_t kMaxJoinedBytes = 64 * 1024;

}  // namespace

void Outbox::push(std::string line, std::vector<UniqueFd> fds) {
  cost_.set(cost_.bytes() + line.size() + fds.size() * kFdCostBytes);
  const bool joins = !lines_.empty() && lines_.back().fds.empty() && fds.empty() &&
                     lines_.back().text.size() < kMaxJoinedBytes;
  if (joins) {
    lines_.back().text += line;
  } else {
    lines_.push_back({.text = std::move(line), .fds = std::move(fds)});
  }
}

Result<void> Outbox::flush(int socket) {
  while (!lines_.empty()) {
    Outgoing& front = lines_.front();
    const std::string_view rest = std::string_view(front.text).substr(front.sent);
    const std::size_t size_bytes = TRY(send_some(socket, rest, front.fds));
    if (size_bytes == 0) return {};
    cost_.set(cost_.bytes() - size_bytes - front.fds.size() * kFdCostBytes);
    front.fds.clear();
    front.sent += size_bytes;
    if (front.sent == front.text.size()) lines_.pop_front();
  }
  return {};
}

void Outbox::clear() {
  lines_.clear();
  cost_.set(0);
}

}  // namespace leasehold::control
