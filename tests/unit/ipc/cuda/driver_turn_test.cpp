// Turns at the driver: of a thread that tries, and of long calls.
#include "ipc/cuda/driver_turn.hpp"

#include <catch2/catch.hpp>
#include <latch>
#include <thread>

using namespace leasehold::cuda;
using namespace std::chrono_literals;

TEST_CASE("driver turn: a thread that tries has no turn while a long call runs") {
  DriverTurn turn;
  {
    const DriverTurn::Long call(turn);
    CHECK_FALSE(turn.try_take());
  }
  CHECK(turn.try_take());
}

TEST_CASE("driver turn: a long call gives way to a thread whose try failed before it") {
  DriverTurn turn(1h);
  auto running = std::make_unique<DriverTurn::Long>(turn);
  REQUIRE_FALSE(turn.try_take());
  std::latch began(1);
  std::jthread next([&] {
    began.count_down();
    const DriverTurn::Long call(turn);
  });
  began.wait();
  running.reset();
  CHECK(turn.try_take());
}
