#include "ipc/control/transport/queue_meter.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "ipc/control/transport/inbox.hpp"
#include "peer_fixture.hpp"

using namespace leasehold;
using control::QueueCharge;
using control::QueueShares;

TEST_CASE("queue meter: a charge counts for its owner and in total, until it ends or moves") {
  QueueShares<std::string> shares(100);
  {
    QueueCharge charge;
    charge.set(10);
    CHECK(shares.owner_share("ann").taken == 0);
    charge.set_meter(shares.meter_of("ann"));
    charge.set(30);
    CHECK(shares.owner_share("ann").held == 30);
    charge.set_meter(shares.meter_of("bob"));
    charge.set(20);
    CHECK(shares.owner_share("ann").held == 0);
    CHECK(shares.owner_share("bob").held == 20);
    CHECK(shares.owner_share("bob").taken == 20);
  }
  CHECK(shares.owner_share("bob").taken == 0);
  CHECK(shares.meter_of("bob") == shares.meter_of("bob"));
}

TEST_CASE("queue meter: only the largest owner is beyond its share, and only while it is") {
  QueueShares<std::string> shares(100);
  CHECK_FALSE(shares.largest_over_share());
  QueueCharge anns, bobs;
  anns.set_meter(shares.meter_of("ann"));
  bobs.set_meter(shares.meter_of("bob"));
  anns.set(49);
  CHECK_FALSE(shares.largest_over_share());
  anns.set(50);
  CHECK(shares.largest_over_share() == "ann");
  anns.set(40);
  bobs.set(30);  // bob fits, but leaves less than ann holds
  CHECK(shares.largest_over_share() == "ann");
  anns.set(20);
  CHECK_FALSE(shares.largest_over_share());
  bobs.set(500);
  CHECK(shares.largest_over_share() == "bob");
}

TEST_CASE("queue meter: input that waits is counted, and its owner may refuse to hold it") {
  boost::asio::io_context io;
  auto [socket, fd] = leasehold::testing::socket_and_raw_fd(io);
  leasehold::testing::RawSocket other(io, std::move(fd));
  const auto meter = std::make_shared<control::QueueMeter>();
  Duration wait = Duration::zero();
  std::size_t most = 1 << 20;
  leasehold::testing::RecordedCalls seen;
  control::Peer::Handlers handlers = seen.handlers();
  handlers.throttle = [&](std::size_t) { return wait; };
  handlers.refuse_input = [&]() -> std::optional<Error> {
    if (meter->queued_bytes <= most) return std::nullopt;
    return Error{Errc::QueueFull, "too much"};
  };
  const auto peer = control::Peer::create(std::move(socket), handlers);
  peer->set_input_meter(meter);
  peer->start();
  const auto send = [&](const std::string& text) {
    other.send(text);
    io.restart();
    io.poll();
  };

  send(std::string(40'000, ' '));
  CHECK(meter->queued_bytes >= 40'000);
  send(R"({"jsonrpc":"2.0","method":"n"})"
       "\n");
  CHECK(seen.notifications.size() == 1);
  CHECK(meter->queued_bytes == 0);
  wait = std::chrono::hours(1);
  send(std::string(40'000, ' ') + R"({"jsonrpc":"2.0","method":"n"})" + "\n");
  CHECK(seen.notifications.size() == 1);
  CHECK(meter->queued_bytes >= 40'000);

  auto [another_socket, another_fd] = leasehold::testing::socket_and_raw_fd(io);
  leasehold::testing::RawSocket another(io, std::move(another_fd));
  const auto second = control::Peer::create(std::move(another_socket), handlers);
  second->set_input_meter(meter);
  second->start();
  most = meter->queued_bytes;
  another.send("{");
  CHECK(another.read_required()["error"]["data"]["code"] == "QueueFull");
  CHECK_FALSE(another.read().has_value());
  CHECK(meter->queued_bytes == most);
  peer->close_now();
  CHECK(meter->queued_bytes == 0);
  io.restart();
  io.poll();
}

TEST_CASE("queue meter: a connection that waits keeps no memory of its longest line") {
  control::Inbox inbox({.max_line_bytes = 1 << 20});
  inbox.add(std::string(900'000, 'x') + "\nshort\n", {});
  CHECK(inbox.held_bytes() > 900'000);
  CHECK(inbox.next().value()->text == std::string(900'000, 'x'));
  CHECK(inbox.next().value()->text == "short");
  CHECK(inbox.held_bytes() == 0);
  inbox.add("rest", {});
  CHECK_FALSE(inbox.next().value());
  CHECK(inbox.held_bytes() < 100);
}
