/// Who waits for launches is told neither too early nor twice.
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

TEST_CASE("drain watch: with nothing begun one is told at once") {
  DrainWatch watch;
  Count count;
  watch.when_drained(count.callback());
  CHECK(count.told == 1);
}

TEST_CASE("drain watch: one is told when what was begun before is over, whatever came after") {
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

TEST_CASE("drain watch: a running graph is past when a gate has seen the mirror of that moment") {
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

TEST_CASE("drain watch: who comes while the words are being looked at waits for the next look") {
  DrainWatch watch;
  Count early;
  Count late;
  watch.issued();
  watch.when_drained(early.callback());
  const std::uint64_t asked = watch.unstamped();
  watch.when_drained(late.callback());  // knows of a word that this look may have missed
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

TEST_CASE("drain watch: when the device is lost nobody is told any more") {
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
