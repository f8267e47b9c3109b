// The events of the requests of one answer, and the wakes between them.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include "ipc/client/timers.hpp"
#include "worker/http/generations.hpp"

using namespace leasehold;
using namespace leasehold::http;

TEST_CASE("http generations: a wake is not lost while events wait to be taken") {
  boost::asio::io_context io;
  client::AsioTimers timers(io);
  client::SessionConfig config;
  config.broker_path = "/missing";  // the requests end without a broker
  const auto generations = Generations::start(io, timers, {config, config});
  io.poll();
  generations->wake();
  std::vector<bool> woken;
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
          co_await generations->changed();
          woken.push_back(generations->take_wake());
          if (i > 0) CHECK(generations->next().has_value());
        }
        CHECK_FALSE(generations->has_waiting());
      },
      boost::asio::detached);
  io.restart();
  io.poll();
  CHECK(woken == std::vector<bool>{true, false, false});
}
