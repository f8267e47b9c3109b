// Clients that ask a broker for long answers and read none cost it little memory, and the other
// clients nothing.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <fstream>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

constexpr int kTenants = 1'000;  ///< Each admission is an event, so a page of events is long.
constexpr int kClients = 40;
constexpr int kCallsOfEach = 10;  ///< Their answers stay below the bound of one connection.
constexpr std::size_t kMaxGrowthBytes = 36 << 20;

std::size_t peak_memory_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  FAIL("the broker's peak memory is not known");
  return 0;
}

bool is_closed(control::Socket& socket) {
  pollfd state{socket.native_handle(), 0, 0};
  ::poll(&state, 1, 0);
  return (state.revents & POLLHUP) != 0;
}

std::string calls() {
  std::string lines;
  for (int i = 0; i < kCallsOfEach; ++i) {
    lines += R"({"jsonrpc":"2.0","id":1,"method":"event.list","params":{"limit":1000}})"
             "\n"
             R"({"jsonrpc":"2.0","id":1,"method":"status"})"
             "\n";
  }
  return lines;
}

}  // namespace

TEST_CASE_METHOD(BrokerWithWorker,
                 "security: unread answers cost the broker little, and a revoke is answered") {
  for (int i = 0; i < kTenants; ++i) broker.admit(client, "t" + std::to_string(i));
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  client.call("event.list", {control::Json{{"limit", 1000}}, {}}).value();
  const std::size_t before = peak_memory_bytes(broker.pid());

  boost::asio::io_context io;
  std::deque<control::Socket> mute;
  for (int i = 0; i < kClients; ++i) {
    mute.push_back(control::connect_to(io, broker.socket()).value());
    const std::string lines = calls();
    const ssize_t sent =
        ::send(mute.back().native_handle(), lines.data(), lines.size(), MSG_NOSIGNAL);
    REQUIRE(sent == static_cast<ssize_t>(lines.size()));
  }
  broker.revoke(client, lease).value();

  CHECK(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(eventually([&] { return std::ranges::count_if(mute, is_closed) > kClients / 2; }));
  CHECK(peak_memory_bytes(broker.pid()) < before + kMaxGrowthBytes);
  CHECK(broker.status(client).isolation == "same-user");
}
