// Counters that a scrape reads, and the text that it gets.
#include <catch2/catch.hpp>
#include <thread>

#include "common/metrics/exposition.hpp"
#include "common/metrics/latest.hpp"
#include "common/metrics/recent.hpp"

using namespace leasehold;
using namespace leasehold::metrics;
using namespace std::chrono_literals;

TEST_CASE("metrics: a second scrape within the second makes no new text") {
  ManualClock clock;
  int made = 0;
  Recent<std::string> page(clock, [&] { return "made " + std::to_string(++made); });
  CHECK(page.read() == "made 1");
  clock.advance(999ms);
  CHECK(page.read() == "made 1");
  clock.advance(1ms);
  CHECK(page.read() == "made 2");
}

TEST_CASE("metrics: a duration is counted in the first bucket whose bound it does not exceed") {
  static constexpr std::array<double, 2> kBounds{0.001, 0.01};
  Histogram histogram(kBounds);
  histogram.observe(-5ms);
  histogram.observe(1ms);
  histogram.observe(2ms);
  histogram.observe(10s);
  const HistogramCounts counts = histogram.counts();
  CHECK(counts.counts == std::vector<std::uint64_t>{2, 1, 1});
  CHECK(counts.sum_s == Approx(10.003));
}

TEST_CASE("metrics: the buckets of the text add up, and the last one has no bound") {
  Exposition page;
  page.counter({"a_total", "What a counts"}, 3, {{"kind", "x\"y"}});
  page.counter({"a_total", "What a counts"}, 4, {{"kind", "z"}});
  page.histogram({"b_seconds", "How long"},
                 {.bounds_s = {0.5, 1}, .counts = {1, 0, 2}, .sum_s = 7.25});
  CHECK(page.text() == R"(# HELP a_total What a counts
# TYPE a_total counter
a_total{kind="x\"y"} 3
a_total{kind="z"} 4
# HELP b_seconds How long
# TYPE b_seconds histogram
b_seconds_count 3
b_seconds_sum 7.25
b_seconds_bucket{le="0.5"} 1
b_seconds_bucket{le="1"} 1
b_seconds_bucket{le="+Inf"} 3
)");
}

TEST_CASE("metrics: a reader gets whole values, and never an older one after a newer one") {
  struct Pair {
    std::uint64_t one = 0;
    std::uint64_t same = 0;
  };
  constexpr std::uint64_t kLast = 200'000;
  Latest<Pair> latest;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kLast; ++i) latest.publish({i, i});
  });
  std::uint64_t before = 0;
  bool is_whole = true;
  while (before < kLast) {
    const Pair read = latest.read();
    is_whole = is_whole && read.one == read.same && read.one >= before;
    before = read.one;
  }
  writer.join();
  CHECK(is_whole);
  CHECK(latest.read().one == kLast);
}
