#include "tests/checks/attack/raw_peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>

namespace leasehold::attack {
namespace {

constexpr std::size_t kMaxLineBytes = 4 << 20;
constexpr Duration kPollInterval = std::chrono::milliseconds(20);

/// One wait of at most kPollInterval for all open connections.
void wait_for(const std::vector<RawPeer>& peers, Replies replies, TimePoint until) {
  std::vector<pollfd> polled;
  for (const RawPeer& peer : peers) {
    const int events = (replies == Replies::Read ? POLLIN : 0) | (peer.has_unsent() ? POLLOUT : 0);
    if (peer.is_open()) polled.push_back({peer.fd(), static_cast<short>(events), 0});
  }
  const Duration left = std::clamp(until - SystemClock().now(), Duration::zero(), kPollInterval);
  ::poll(polled.data(), polled.size(), static_cast<int>(left / std::chrono::milliseconds(1)) + 1);
}

bool has_work(const RawPeer& peer, Replies replies) {
  return peer.is_open() && (replies == Replies::Read || peer.has_unsent());
}

}  // namespace

RawPeer::RawPeer(const std::string& path, Outcome& outcome)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), outcome_(&outcome) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  // Set first: with a full backlog connect() of a blocking socket would wait.
  ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  ++outcome.connections;
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return;
  ++outcome.refused_connections;
  fd_.reset();
}

void RawPeer::end() {
  ++outcome_->closed_connections;
  close();
}

void RawPeer::write() {
  while (has_unsent()) {
    const std::string& text = *unsent_.front();
    const ssize_t n = ::send(fd_.get(), text.data() + sent_, text.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno != EAGAIN) end();
      return;
    }
    outcome_->bytes_sent += static_cast<std::uint64_t>(n);
    sent_ += static_cast<std::size_t>(n);
    if (sent_ < text.size()) continue;
    unsent_.pop_front();
    sent_ = 0;
  }
}

void RawPeer::read() {
  std::array<char, 64 * 1024> bytes;
  while (is_open()) {
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return end();
    received_.append(bytes.data(), static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (auto at = received_.find('\n'); at != std::string::npos;
         at = received_.find('\n', begin)) {
      const auto line = std::string_view(received_).substr(begin, at - begin);
      const auto tokens = outcome_->tokens;
      count_line(*outcome_, line);
      if (outcome_->tokens == tokens) line_ = std::string(line);
      begin = at + 1;
    }
    received_.erase(0, begin);
    if (received_.size() > kMaxLineBytes) return end();
  }
}

std::optional<std::string> RawPeer::read_line() {
  return std::exchange(line_, std::nullopt);
}

void pump(std::vector<RawPeer>& peers, Replies replies, TimePoint until) {
  const SystemClock clock;
  while (clock.now() < until &&
         std::ranges::any_of(peers, [&](const auto& peer) { return has_work(peer, replies); })) {
    for (RawPeer& peer : peers) {
      peer.write();
      if (replies == Replies::Read) peer.read();
    }
    wait_for(peers, replies, until);
  }
}

std::optional<wire::Json> call(RawPeer& peer, std::string line, TimePoint until) {
  peer.queue(std::move(line));
  const SystemClock clock;
  while (peer.is_open() && clock.now() < until) {
    peer.write();
    peer.read();
    if (const auto reply = peer.read_line()) return wire::Json::parse(*reply, nullptr, false);
    pollfd entry{peer.fd(), static_cast<short>(POLLIN | (peer.has_unsent() ? POLLOUT : 0)), 0};
    ::poll(&entry, 1, static_cast<int>(kPollInterval / std::chrono::milliseconds(1)));
  }
  return std::nullopt;
}

void sleep_until(TimePoint until) {
  std::this_thread::sleep_for(std::max(Duration::zero(), until - SystemClock().now()));
}

}  // namespace leasehold::attack
