// The broker's connections over real sockets. The test's user is an operator.
#include "broker/server/connections/connections.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

/// A client that reads nothing by itself.
struct MuteClient {
  MuteClient(boost::asio::io_context& io, const std::string& path)
      : socket(control::connect_to(io, path).value()) {}
  void call(const std::string& method) {
    const std::string line = R"({"jsonrpc":"2.0","id":1,"method":")" + method + "\"}\n";
    REQUIRE(::send(socket.native_handle(), line.data(), line.size(), MSG_NOSIGNAL) > 0);
  }
  /// Sends a part of a line, until all is sent or the broker has closed.
  void send_unfinished(std::size_t size_bytes, const std::function<void()>& run) {
    const std::string text(size_bytes, ' ');
    for (std::size_t sent = 0; sent < size_bytes && !is_closed();) {
      const ssize_t n = ::send(socket.native_handle(), text.data() + sent, size_bytes - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      run();
    }
  }
  std::size_t received() {
    char bytes[4096];
    const ssize_t n = ::recv(socket.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  bool is_closed() const {
    pollfd state{const_cast<control::Socket&>(socket).native_handle(), 0, 0};
    ::poll(&state, 1, 0);
    return (state.revents & POLLHUP) != 0;
  }
  control::Socket socket;
};

struct ConnectionsFixture {
  ConnectionsFixture() { connections.start(); }
  MuteClient& connect() { return clients.emplace_back(io, path); }
  void run() {
    do io.restart();
    while (io.poll() > 0);
  }
  std::size_t closed() const {
    return static_cast<std::size_t>(std::ranges::count_if(clients, &MuteClient::is_closed));
  }

  const TemporaryDirectory directory = TemporaryDirectory::create("connections").value();
  const std::string path = directory.file("socket");
  boost::asio::io_context io;
  ManualClock clock;
  std::size_t reply_bytes = 0;
  int changes = 0;
  Connections connections{
      io,
      control::listen_on(io, path, 0600).value(),
      {.on_call =
           [this](ConnectionId, const std::string&, control::Payload, control::Responder respond) {
             respond(control::Payload{.body = {{"text", std::string(reply_bytes, 'x')}}});
           },
       .on_notification = {},
       .on_closed = [](ConnectionId) {},
       .on_holder_exit = {},
       .on_change = [this] { ++changes; }},
      clock,
      {}};
  std::deque<MuteClient> clients;
};

constexpr std::size_t kLongReply = 1'000'000;

}  // namespace

TEST_CASE("connections: one that makes no call in time is closed") {
  ConnectionsFixture fixture;
  MuteClient& silent = fixture.connect();
  MuteClient& caller = fixture.connect();
  caller.call("status");
  fixture.run();
  fixture.clock.advance(AdmissionLimits{}.first_call_timeout - 1ns);
  fixture.connections.close_silent();
  fixture.run();
  CHECK_FALSE(silent.is_closed());
  fixture.clock.advance(1ns);
  fixture.connections.close_silent();
  fixture.run();
  CHECK(silent.is_closed());
  CHECK_FALSE(caller.is_closed());
  CHECK(fixture.connections.take_report() == ConnectionAdmission::Report{.silent = 1});
}

TEST_CASE("connections: one that leaves more unread than the longest messages is closed") {
  ConnectionsFixture fixture;
  fixture.reply_bytes = kLongReply;
  MuteClient& mute = fixture.connect();
  for (int i = 0; i < 2; ++i) mute.call("event.list");
  fixture.run();
  CHECK_FALSE(mute.is_closed());
  for (int i = 0; i < 2; ++i) mute.call("event.list");
  fixture.run();
  CHECK(mute.is_closed());
  CHECK(fixture.connections.take_report() == ConnectionAdmission::Report{.bytes = 1});
}

TEST_CASE("connections: of a user beyond its share, those with the most unread output are closed") {
  ConnectionsFixture fixture;
  fixture.reply_bytes = kLongReply;
  MuteClient& modest = fixture.connect();
  modest.call("status");
  fixture.run();
  // Half of the total is the share of one user.
  constexpr std::size_t kClients = Connections::kMaxUnsentBytes / kLongReply;
  for (std::size_t i = 0; i < kClients; ++i) {
    MuteClient& mute = fixture.connect();
    for (int call = 0; call < 2; ++call) mute.call("event.list");
    fixture.run();
  }
  const std::size_t closed = fixture.closed();
  CHECK_FALSE(modest.is_closed());
  CHECK(closed >= kClients / 2);
  CHECK(fixture.connections.take_report() == ConnectionAdmission::Report{.bytes = closed});
  CHECK((fixture.clients.size() - closed) * kLongReply <= Connections::kMaxUnsentBytes / 2);
}

TEST_CASE("connections: unfinished lines of a user hold a share of the memory, and calls go on") {
  ConnectionsFixture fixture;
  MuteClient& caller = fixture.connect();
  constexpr std::size_t kUnfinished = 1'000'000;
  constexpr std::size_t kClients = Connections::kMaxWaitingInputBytes / kUnfinished;
  for (std::size_t i = 0; i < kClients; ++i) {
    fixture.connect().send_unfinished(kUnfinished, [&] { fixture.run(); });
  }
  const std::size_t closed = fixture.closed();
  CHECK(closed >= kClients / 2);
  CHECK(closed <= kClients * 3 / 4);
  CHECK(fixture.connections.take_report() == ConnectionAdmission::Report{.bytes = closed});
  caller.call("status");
  fixture.run();
  CHECK(caller.received() > 0);
}

TEST_CASE("connections: events that were dropped need one check") {
  ConnectionsFixture fixture;
  const auto burst = static_cast<std::size_t>(RateConfig{}.events.burst);
  CHECK(fixture.connections.admit_events({1}, burst) == burst);
  CHECK_FALSE(fixture.connections.has_pending_checks());
  CHECK(fixture.changes == 0);
  CHECK(fixture.connections.admit_events({1}, 3) == 0);
  CHECK(fixture.connections.has_pending_checks());
  CHECK(fixture.changes == 1);
  fixture.connections.check();
  CHECK_FALSE(fixture.connections.has_pending_checks());
}
