#include "worker/program/worker_signals.hpp"

#include <signal.h>

#include <catch2/catch.hpp>
#include <vector>

using namespace leasehold;

namespace {

struct Fixture {
  boost::asio::io_context io;
  WorkerSignals signals{io};
  std::vector<int> stops;
  int reloads = 0;

  void raise_signal(int signal) {
    REQUIRE(::raise(signal) == 0);
    io.restart();
    io.poll();
  }
  void set_on_reload() {
    signals.on_reload([this] { ++reloads; });
    io.restart();
    io.poll();
  }
};

}  // namespace

TEST_CASE("worker signals: a reload that is requested too early happens once it is possible") {
  Fixture fixture;
  fixture.raise_signal(SIGHUP);
  CHECK(fixture.reloads == 0);
  fixture.set_on_reload();
  CHECK(fixture.reloads == 1);
}

TEST_CASE("worker signals: every later SIGHUP reloads") {
  Fixture fixture;
  fixture.set_on_reload();
  CHECK(fixture.reloads == 0);
  fixture.raise_signal(SIGHUP);
  fixture.raise_signal(SIGHUP);
  CHECK(fixture.reloads == 2);
}

TEST_CASE("worker signals: the handler gets every signal that stops the worker") {
  Fixture fixture;
  fixture.signals.on_stop([&](int signal) { fixture.stops.push_back(signal); });
  fixture.raise_signal(SIGTERM);
  fixture.raise_signal(SIGINT);
  CHECK(fixture.stops == std::vector{SIGTERM, SIGINT});
}
