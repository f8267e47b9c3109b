#include "common/fair_bounded_queue.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "common/random.hpp"

namespace leasehold {
namespace {

using Queue = FairBoundedQueue<std::string, int, int>;
using Keys = std::vector<int>;

}  // namespace

TEST_CASE("owned queue: beyond the capacity the owner with the most loses its oldest") {
  Queue queue(4);
  for (const int key : {1, 2, 3}) REQUIRE_FALSE(queue.push({"greedy", key}));
  REQUIRE_FALSE(queue.push({"ann", 10}));
  const auto dropped = queue.push({"ann", 11});
  REQUIRE(dropped);
  CHECK(dropped->owner == "greedy");
  CHECK(dropped->key == 1);
  CHECK(queue.front(9) == Keys{2, 3, 10, 11});
}

TEST_CASE("owned queue: a flood of one owner leaves the others' entries alone") {
  Queue queue(8);
  for (const int key : {1, 2}) (void)queue.push({"ann", key});
  (void)queue.push({"bob", 3});
  for (int key = 100; key < 1'000; ++key) (void)queue.push({"greedy", key});
  CHECK(queue.front(9) == Keys{1, 2, 3, 995, 996, 997, 998, 999});
}

TEST_CASE("owned queue: a key is there once, keeps its place and gets the newest value") {
  Queue queue(2);
  (void)queue.push({"ann", 1, 7});
  (void)queue.push({"bob", 2});
  CHECK_FALSE(queue.push({"bob", 1, 9}));
  const auto all = queue.take_all();
  REQUIRE(all.size() == 2);
  CHECK(all[0].owner == "ann");
  CHECK(all[0].value == 9);
  CHECK(queue.size() == 0);
  CHECK(queue.capacity() == 2);
}

TEST_CASE("owned queue: what is erased is gone, once, and makes room for its owner") {
  Queue queue(2);
  (void)queue.push({"ann", 1});
  (void)queue.push({"bob", 2});
  CHECK(queue.erase(1));
  CHECK_FALSE(queue.erase(1));
  CHECK_FALSE(queue.contains(1));
  CHECK_FALSE(queue.push({"ann", 3}));
  CHECK(queue.front(1) == Keys{2});
}

TEST_CASE("owned queue: an owner with its part of the capacity, or less, loses nothing") {
  constexpr std::size_t kOwners = 5, kCapacity = 40;
  SeededRandom random(15);
  Queue queue(kCapacity);
  std::map<std::string, std::size_t> held;
  for (int key = 0; key < 5'000; ++key) {
    const std::uint64_t pick = random.below(12);  // the last owner adds most of the entries
    const std::string owner = std::to_string(std::min<std::uint64_t>(pick, kOwners - 1));
    ++held[owner];
    if (const auto dropped = queue.push({owner, key})) {
      CHECK(held[dropped->owner] > kCapacity / kOwners);
      --held[dropped->owner];
    }
    REQUIRE(queue.size() <= kCapacity);
  }
}

}  // namespace leasehold
