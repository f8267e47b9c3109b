#include "broker/books/latency_histogram.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "broker/server/views/views.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

TEST_CASE("latency histogram: a quantile is never too low and at most an eighth too high") {
  const auto seed = GENERATE(range(1u, 9u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  LatencyHistogram histogram;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(static_cast<std::int64_t>(random() >> (24 + random() % 40)));
    histogram.add(Duration(values.back()));
  }
  std::ranges::sort(values);

  CHECK(histogram.count() == values.size());
  CHECK(histogram.max().count() == values.back());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    CAPTURE(share);
    const auto rank = static_cast<std::size_t>(std::ceil(share * 5000.0));
    const std::int64_t exact = values.at(rank - 1);
    CHECK(histogram.quantile(share).count() >= exact);
    CHECK(histogram.quantile(share).count() <= exact + exact / 8);
  }
}

TEST_CASE("latency histogram: zero, negative and very long durations are counted") {
  LatencyHistogram histogram;
  CHECK(histogram.quantile(0.5) == Duration::zero());
  histogram.add(Duration::zero());
  histogram.add(-5s);
  CHECK(histogram.quantile(1.0) == Duration::zero());
  histogram.add(Duration::max());
  CHECK(histogram.count() == 3);
  CHECK(histogram.quantile(0.5) == Duration::zero());
  CHECK(histogram.max() == Duration::max());
}

TEST_CASE("latency history: the last minute forgets, the total does not") {
  LatencyHistory history;
  const TimePoint start{1'000'000'000'000};
  for (int i = 0; i < 180; ++i) history.add(std::chrono::milliseconds(i), start + i * 1s);
  const TimePoint end = start + 179s;

  CHECK(history.since_start().count() == 180);
  CHECK(history.last_minute(end).count() == 60);  // `end` ends a step
  CHECK(history.last_minute(end).max() == 179ms);
  CHECK(history.last_minute(end + 30s).count() == 30);
  CHECK(history.last_minute(end + 60s).count() == 0);
  CHECK(history.last_minute(end + 1h).count() == 0);
}

TEST_CASE("status: a lease that its holder released counts in no clock of revocations") {
  LeasedWorld world;
  world.call(kHolder, wire::LeaseRelease{.lease = world.lease});
  CHECK(world.record(world.lease).end.clocks.reuse_ns >= 0);
  for (const auto& clock : status_view(world.state, world.clock.now()).clocks)
    CHECK(clock.since_start.count == 0);
}

TEST_CASE(
    "status: it summarizes the clocks of revocations since the start and in the last minute") {
  LeasedWorld world;
  const auto clock = [&](std::size_t i) {
    return status_view(world.state, world.clock.now()).clocks.at(i);
  };
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.revoke(world.lease);
  world.clock.advance(3ms);
  const events::ForwardRevoked refused{.lease = world.lease, .since_flip_ns = 1'000'000};
  world.post(WorkerReported{kWorkerSocket, {refused, world.clock.now()}});
  world.post(WorkerReported{kWorkerSocket, {refused, world.clock.now()}});  // only the first counts
  world.end_unit(world.worker);

  CHECK(clock(0).clock == "t_refuse");
  CHECK(clock(0).since_start.count == 1);
  CHECK(clock(0).since_start.max_ns == 1'000'000);
  CHECK(clock(1).since_start.count == 0);
  CHECK(clock(2).clock == "t_quiet");
  CHECK(clock(2).last_minute.p99_ns == 3'000'000);
  CHECK(clock(3).since_start.count == 1);

  world.clock.advance(2min);
  CHECK(clock(2).last_minute.count == 0);
  CHECK(clock(2).since_start.p50_ns == 3'000'000);
}
