#include "worker/program/worker_stop.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr auto kTimeOfCount = 20ms;
/// Counts during the wait for answers that wait for a lease.
constexpr int kLastPolls = WorkerStop::kLeaseWait / kTimeOfCount;

/// A worker whose state a test sets, by the number of counts that were taken. Each count takes
/// kTimeOfCount.
struct FakeWorker {
  boost::asio::io_context io;
  std::function<std::size_t(int count)> requests = [](int) { return std::size_t{0}; };
  std::function<bool(int count)> is_answering = [](int) { return false; };
  std::function<bool(int count)> is_writing = [](int) { return false; };
  std::function<bool(int count)> is_disconnected = [](int) { return false; };
  bool reports_usage = true;
  bool refuses_at_once = true;

  const WorkerStop::Clock::time_point began = WorkerStop::Clock::now();
  int counts = 0;
  int refusals = 0;
  int notices = 0;
  int stops = 0;
  std::function<void()> on_reported;
  std::function<void()> on_refused;

  WorkerStop stop{
      {.io = &io,
       .stop_loop = [this] { ++stops; },
       .refuse_requests =
           [this](std::function<void()> done) {
             ++refusals;
             refuses_at_once ? done() : void(on_refused = std::move(done));
           },
       .count_requests =
           [this](const std::function<void(std::size_t)>& done) { done(requests(++counts)); },
       .is_answering = [this] { return is_answering(counts); },
       .is_writing = [this] { return is_writing(counts); },
       .is_broker_disconnected = [this] { return is_disconnected(counts); },
       .notify_broker = [this] { ++notices; },
       .when_usage_reported =
           [this](std::function<void()> done) {
             if (reports_usage) return done();
             on_reported = std::move(done);
           },
       .poll_interval = 0ms,
       .now = [this] { return began + counts * kTimeOfCount; }}};

  void drain_and_run() {
    stop.drain(10min);
    run();
  }
  /// Runs handlers that are ready, at most `handlers`.
  void run(int handlers = 10'000) {
    for (int i = 0; i < handlers; ++i) {
      io.restart();
      io.poll_one();
    }
  }
};

}  // namespace

TEST_CASE("worker stop: a drain ends as soon as no request runs") {
  FakeWorker worker;
  worker.requests = [](int count) -> std::size_t { return count < 5 ? 2 : 0; };
  worker.drain_and_run();
  CHECK(worker.counts == 5);
  CHECK(worker.refusals == 1);
  CHECK(worker.notices == 1);
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: a drain that follows a wait counts what was admitted before it") {
  FakeWorker worker;
  worker.refuses_at_once = false;
  worker.requests = [](int count) -> std::size_t { return count == 1 ? 1 : 0; };
  worker.stop.stop_when_idle();
  worker.run(1);
  worker.stop.drain(10min);
  worker.run(100);
  CHECK(worker.stops == 0);  // a request that was admitted may not have reached the loop
  REQUIRE(worker.on_refused);
  worker.on_refused();
  worker.run();
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: a drain waits for answers while the broker is connected") {
  FakeWorker worker;
  worker.is_answering = [](int count) { return count < 300; };
  worker.drain_and_run();
  CHECK(worker.counts == 300);
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: without a broker an answer that is written slowly is still awaited") {
  FakeWorker worker;
  worker.is_answering = [](int count) { return count < 400; };
  worker.is_writing = [](int count) { return count < 300; };
  worker.is_disconnected = [](int) { return true; };
  worker.drain_and_run();
  CHECK(worker.counts == 299 + kLastPolls + 1);
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: without a broker an answer that waits for a lease ends the drain soon") {
  FakeWorker worker;
  worker.requests = [](int count) -> std::size_t { return count < 100 ? 1 : 0; };
  worker.is_answering = [](int) { return true; };
  worker.is_disconnected = [](int) { return true; };
  worker.drain_and_run();
  CHECK(worker.counts == 99 + kLastPolls + 1);
  CHECK(worker.stops == 1);
}

TEST_CASE(
    "worker stop: a broker that returns, or a request that runs again, starts the wait anew") {
  const bool returns = GENERATE(true, false);
  FakeWorker worker;
  worker.requests = [=](int count) -> std::size_t { return !returns && count == 40 ? 1 : 0; };
  worker.is_answering = [](int) { return true; };
  worker.is_disconnected = [=](int count) { return !returns || count != 40; };
  worker.drain_and_run();
  CHECK(worker.counts == 40 + kLastPolls + 1);
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: a drain waits for the usage records that a broker is about to confirm") {
  FakeWorker worker;
  worker.reports_usage = false;
  worker.stop.drain(10min);
  worker.run();
  CHECK(worker.stops == 0);
  REQUIRE(worker.on_reported);
  worker.on_reported();
  worker.run();
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: the timeout ends requests and waiting records") {
  FakeWorker worker;
  const bool runs = GENERATE(true, false);
  worker.requests = [=](int) -> std::size_t { return runs ? 1 : 0; };
  worker.reports_usage = false;
  worker.stop.drain(1ms);
  worker.io.run();
  CHECK(worker.stops == 1);
}

TEST_CASE("worker stop: a second drain and a timeout of 0 stop at once") {
  FakeWorker worker;
  worker.requests = [](int) -> std::size_t { return 1; };
  SECTION("twice") {
    worker.stop.drain(10min);
    worker.run(20);
    CHECK(worker.stops == 0);
    worker.stop.drain(10min);
  }
  SECTION("0") {
    worker.stop.drain(0ms);
    CHECK(worker.refusals == 0);
  }
  CHECK(worker.stops == 1);
}

TEST_CASE(
    "worker stop: a lost broker ends the worker after its requests, and nothing else is awaited") {
  FakeWorker worker;
  worker.requests = [](int count) -> std::size_t { return count < 5 ? 1 : 0; };
  worker.is_answering = [](int) { return true; };
  worker.reports_usage = false;
  worker.stop.stop_when_idle();
  worker.stop.stop_when_idle();
  worker.run();
  CHECK(worker.counts == 5);
  CHECK(worker.stops == 1);
  CHECK(worker.notices == 0);
}
