#include "worker/index_sync/eviction_tracker.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold {
namespace {

using Ids = std::vector<RequestId>;

const RequestId kAnn1{"ann/req-1"};
const RequestId kAnn2{"ann/req-2"};
const RequestId kBob1{"bob/req-1"};
const RequestId kBob3{"bob/req-3"};

EvictionTracker with(const Ids& admitted, std::size_t max_tracked = EvictionTracker::kMaxTracked) {
  EvictionTracker tracker(max_tracked);
  for (const RequestId& id : admitted) tracker.admitted(id);
  return tracker;
}

void end_held(EvictionTracker& tracker, const RequestId& id) {
  tracker.kv_held(id);
  tracker.ended(id);
}

}  // namespace

TEST_CASE("eviction tracker: admission and blocks remove nothing") {
  EvictionTracker tracker = with({kAnn1, kAnn2});
  tracker.kv_held(kAnn1);
  CHECK(tracker.take_removed().empty());
}

TEST_CASE("eviction tracker: an end without blocks removes the id at once, and once") {
  EvictionTracker tracker = with({kAnn1});
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed() == Ids{kAnn1});
  tracker.ended(kAnn1);
  tracker.kv_gone(kAnn1);
  CHECK(tracker.take_removed().empty());
  CHECK(tracker.tracked() == 0);
}

TEST_CASE("eviction tracker: an end with cached blocks removes the id when they are gone") {
  EvictionTracker tracker = with({kAnn1, kAnn2});
  end_held(tracker, kAnn1);
  end_held(tracker, kAnn2);
  CHECK(tracker.take_removed().empty());
  tracker.kv_gone(kAnn2);
  CHECK(tracker.take_removed() == Ids{kAnn2});
  tracker.kv_gone(kAnn2);
  CHECK(tracker.take_removed().empty());
}

TEST_CASE("eviction tracker: blocks lost by a running request are removed with its end") {
  EvictionTracker tracker = with({kAnn1});
  tracker.kv_held(kAnn1);
  tracker.kv_gone(kAnn1);  // a swap-out without buffer, a swap timeout
  CHECK(tracker.take_removed().empty());
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed() == Ids{kAnn1});
}

TEST_CASE("eviction tracker: an admission rolled back and repeated is removed with its end") {
  EvictionTracker tracker = with({kAnn1});
  tracker.admitted(kAnn1);
  CHECK(tracker.take_removed().empty());
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed() == Ids{kAnn1});
}

TEST_CASE("eviction tracker: the end of the worker removes every id, held ones as they ended") {
  EvictionTracker tracker = with({kAnn1, kAnn2, kBob3});
  end_held(tracker, kBob3);
  end_held(tracker, kAnn1);
  tracker.kv_held(kAnn2);
  tracker.end_all();
  CHECK(tracker.take_removed() == Ids{kBob3, kAnn1, kAnn2});
  CHECK(tracker.tracked() == 0);
}

TEST_CASE("eviction tracker: an id used again stays until all blocks of both uses are gone") {
  EvictionTracker tracker = with({kAnn1});
  end_held(tracker, kAnn1);
  tracker.admitted(kAnn1);
  tracker.kv_held(kAnn1);
  tracker.kv_gone(kAnn1);
  CHECK(tracker.take_removed().empty());
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed().empty());
  tracker.kv_gone(kAnn1);
  CHECK(tracker.take_removed() == Ids{kAnn1});
  tracker.admitted(kAnn1);
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed() == Ids{kAnn1});
}

TEST_CASE("eviction tracker: an id of two tenants leaves with the last of them") {
  EvictionTracker tracker = with({kAnn1, kBob1});
  tracker.ended(kAnn1);
  CHECK(tracker.take_removed().empty());
  tracker.ended(kBob1);
  CHECK(tracker.take_removed() == Ids{kBob1});
}

TEST_CASE("eviction tracker: at its bound the longest held id leaves early") {
  EvictionTracker tracker = with({kAnn1, kAnn2}, 2);
  end_held(tracker, kAnn2);
  end_held(tracker, kAnn1);
  tracker.admitted(kBob3);
  CHECK(tracker.take_removed() == Ids{kAnn2});
  CHECK(tracker.removed_early() == 1);
  CHECK(tracker.tracked() == 2);
  tracker.kv_gone(kAnn2);
  CHECK(tracker.take_removed().empty());
}

TEST_CASE("eviction tracker: beyond its bound of running requests an id is counted and stays") {
  EvictionTracker tracker = with({kAnn1, kAnn2}, 2);
  tracker.admitted(kBob3);
  CHECK(tracker.untracked() == 1);
  CHECK(tracker.tracked() == 2);
  tracker.ended(kAnn2);
  CHECK(tracker.take_removed().empty());
  tracker.ended(kAnn1);
  tracker.ended(kBob3);
  CHECK(tracker.take_removed() == Ids{kAnn1, kBob3});
}

TEST_CASE("eviction tracker: a tenant's held or running requests cost no other tenant its own") {
  const bool are_held = GENERATE(true, false);
  EvictionTracker tracker(8);
  for (const RequestId& id : {kBob1, kBob3}) {
    tracker.admitted(id);
    end_held(tracker, id);
  }
  tracker.admitted(kAnn2);
  for (int i = 0; i < 100; ++i) {
    const RequestId id{"greedy/" + std::to_string(i)};
    tracker.admitted(id);
    if (are_held) end_held(tracker, id);
  }
  CHECK(tracker.tracked() == 8);
  CHECK((are_held ? tracker.removed_early() : tracker.untracked()) == 95);
  for (const RequestId& id : tracker.take_removed()) CHECK(id.value.starts_with("greedy/"));
  for (const RequestId& id : {kBob1, kBob3}) tracker.kv_gone(id);
  tracker.ended(kAnn2);
  CHECK(tracker.take_removed() == Ids{kBob1, kBob3, kAnn2});
}

namespace {

/// The engine's order of one request's events: random, but blocks are held before the end and gone
/// once for each time that they were held.
class RandomLife {
 public:
  RandomLife(RequestId id, SeededRandom& random) : id_(std::move(id)), random_(&random) {}

  /// Makes one step; returns true once it is over.
  bool step(EvictionTracker& tracker) {
    switch (at_++) {
      case 0:
        tracker.admitted(id_);
        if (random_->below(3) == 0) tracker.admitted(id_);
        return false;
      case 1:
        holds_ = random_->below(3);
        for (std::uint64_t n = holds_; n > 0; --n) tracker.kv_held(id_);
        return false;
      case 2:
        if (holds_ > 0 && random_->below(2) == 0) evict(tracker);
        return false;
      case 3:
        for (std::uint64_t n = random_->below(2) + 1; n > 0; --n) tracker.ended(id_);
        return false;
      default:
        if (holds_ > 0) evict(tracker);
        return holds_ == 0;
    }
  }
  bool may_have_left() const { return at_ >= 4 && holds_ == 0; }
  const RequestId& id() const { return id_; }

 private:
  void evict(EvictionTracker& tracker) {
    --holds_;
    tracker.kv_gone(id_);
  }

  RequestId id_;
  SeededRandom* random_;
  int at_ = 0;
  std::uint64_t holds_ = 0;
};

}  // namespace

TEST_CASE("eviction tracker: in random orders every id leaves once, when nothing of it is left") {
  const std::uint64_t seed = testing::test_seed(16);
  INFO("SEED=" << seed);
  SeededRandom random(seed);
  EvictionTracker tracker;
  std::vector<RandomLife> lives;
  for (int i = 0; i < 2'000; ++i)
    lives.emplace_back(RequestId{"t" + std::to_string(i % 7) + "/r" + std::to_string(i)}, random);
  std::map<RequestId, int> removed;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lives.size(); ++i) order.push_back(i);
  while (!order.empty()) {
    const std::size_t pick = random.below(order.size());
    RandomLife& life = lives[order[pick]];
    const bool over = life.step(tracker);
    const bool left = removed.contains(life.id());
    for (const RequestId& id : tracker.take_removed()) {
      CHECK(id == life.id());
      ++removed[id];
    }
    if (life.may_have_left() || left) {
      REQUIRE(removed[life.id()] == 1);
    } else {
      REQUIRE_FALSE(removed.contains(life.id()));
    }
    if (over) order.erase(order.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  CHECK(removed.size() == lives.size());
  CHECK(tracker.tracked() == 0);
}

}  // namespace leasehold
