// A user who floods the broker over many connections does not delay other users.
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <new>
#include <thread>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/process/broker/forked_process.hpp"
#include "tests/support/raw_socket.hpp"

using namespace leasehold;

namespace {

constexpr int kConnections = 16;

/// Sends until the socket is full and reads what has arrived. Returns the number of reply lines, or
/// nothing when the connection is closed.
std::optional<std::uint64_t> send_and_receive(int fd, const std::string& lines) {
  ::send(fd, lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  char bytes[1 << 16];
  const ssize_t got = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN)) return {};
  return got < 0 ? 0 : std::count(bytes, bytes + got, '\n');
}

void flood(const std::string& path, const std::string& lines,
           std::atomic<std::uint64_t>& answered) {
  std::vector<UniqueFd> fds(kConnections);
  for (;;) {
    std::vector<pollfd> polled;
    for (UniqueFd& fd : fds) {
      const auto replies_received = send_and_receive(fd.get(), lines);
      if (!replies_received) fd = testing::connect_raw(path);
      answered += replies_received.value_or(0);
      polled.push_back({fd.get(), POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), 1);
  }
}

/// A process of another user that floods the broker; counts the replies it receives.
class Flood {
 public:
  Flood(const std::string& socket, const std::string& line)
      : shared_(::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        answered_(*new(shared_) std::atomic<std::uint64_t>(0)),
        foreign_user_process_(kNobody, [&] {
          std::string lines;
          while (lines.size() < 60'000) lines += line;
          std::thread([=, this] { flood(socket, lines, answered_); }).detach();
        }) {}
  std::uint64_t answered() const { return answered_; }

 private:
  void* shared_;  ///< Never unmapped; the test process is short.
  std::atomic<std::uint64_t>& answered_;
  ForkedProcess foreign_user_process_;
};

/// Without a rate limit the broker answers some hundred thousand messages per second. The user's
/// budget needs almost a minute for that number.
constexpr std::uint64_t kMany = 100'000;

void check_operator_is_served_during(const std::string& line) {
  if (!can_change_user()) return;
  BrokerProcess broker;
  const Flood flood(broker.socket(), line);
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  REQUIRE(eventually([&] { return flood.answered() > 500; }));

  const std::uint64_t before = flood.answered();
  for (int i = 0; i < 20; ++i) broker.status(client);
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  broker.revoke(client, lease).value();
  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(flood.answered() - before < kMany);
}

}  // namespace

TEST_CASE("security: operators and workers are served while another user sends garbage") {
  check_operator_is_served_during("x\n");
}

TEST_CASE("security: operators and workers are served while another user floods with calls") {
  check_operator_is_served_during(R"({"jsonrpc":"2.0","method":"a"})"
                                  "\n"
                                  R"({"jsonrpc":"2.0","id":1,"method":"a"})"
                                  "\n");
}
