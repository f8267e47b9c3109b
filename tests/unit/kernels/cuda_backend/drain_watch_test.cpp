/// Waiters for drained launches are called neither too early nor twice.
#include <catch2/catch.hpp>

#include "kernels/cuda/drain_watch.hpp"

namespace leasehold::cuda {
namespace {

struct Count {
  int told = 0;
  DrainWatch::Callback callback() {
    return [this] { ++told; };
  }
};

}  // namespace

TEST_CASE("drain watch: without launches a waiter is called at once") {
  DrainWatch watch;
  Count count;
  watch.when_drained(count.callback());
  CHECK(count.told == 1);
}

TEST_CASE(
    "drain watch: a waiter is called when all earlier launches are over, whatever came later") {
  DrainWatch watch;
  Count count;
  watch.issued();
  watch.issued();
  watch.when_drained(count.callback());
  watch.issued();
  watch.finished(1);
  CHECK(count.told == 0);
  watch.finished(2);
  CHECK(count.told == 1);
  watch.finished(3);
  CHECK(count.told == 1);
}

TEST_CASE("drain watch: a waiter is called when a gate of a running graph has seen its mirror") {
  DrainWatch watch;
  Count count;
  watch.issued();
  watch.when_drained(count.callback());
  watch.seen(4);
  CHECK(count.told == 0);
  watch.stamp(watch.unstamped(), 5);
  watch.seen(4);
  CHECK(count.told == 0);
  watch.seen(5);
  CHECK(count.told == 1);
}

TEST_CASE("drain watch: a waiter that arrives during a poll waits for the next poll") {
  DrainWatch watch;
  Count early;
  Count late;
  watch.issued();
  watch.when_drained(early.callback());
  const std::uint64_t asked = watch.unstamped();
  watch.when_drained(late.callback());  // may know of a word that the current poll missed
  watch.stamp(asked, 5);
  watch.seen(5);
  CHECK(early.told == 1);
  CHECK(late.told == 0);
  REQUIRE(watch.unstamped() != 0);
  watch.stamp(watch.unstamped(), 6);
  CHECK(watch.unstamped() == 0);
  watch.seen(6);
  CHECK(late.told == 1);
}

TEST_CASE("drain watch: after the device is lost no waiter is called") {
  DrainWatch watch;
  Count count;
  watch.issued();
  watch.when_drained(count.callback());
  watch.mark_lost();
  watch.finished(1);
  watch.when_drained(count.callback());
  CHECK(count.told == 0);
}

}  // namespace leasehold::cuda
