#include "common/turns.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace leasehold;

TEST_CASE("turns: an owner waits for one piece of each other owner, however much those queued") {
  Turns<std::string> turns;
  std::vector<std::string> done;
  const auto add = [&](const std::string& owner, int count) {
    for (int i = 0; i < count; ++i)
      turns.add(owner, [&done, owner, i] { done.push_back(owner + std::to_string(i)); });
  };
  add("flood", 60);
  add("calm", 2);
  for (int i = 0; i < 3; ++i) turns.do_next();
  CHECK(done == std::vector<std::string>{"flood0", "calm0", "flood1"});
  add("late", 1);
  for (int i = 0; i < 3; ++i) turns.do_next();
  CHECK(std::vector(done.begin() + 3, done.end()) ==
        std::vector<std::string>{"calm1", "flood2", "late0"});
}

TEST_CASE("turns: all work of one owner is done, in order, and then none") {
  Turns<int> turns;
  std::vector<int> done;
  for (int i = 0; i < 3; ++i) turns.add(1, [&done, i] { done.push_back(i); });
  for (int i = 0; i < 5; ++i) turns.do_next();
  CHECK(done == std::vector<int>{0, 1, 2});
}

TEST_CASE("turns: two threads do at most one piece of an owner at a time, and none is forgotten") {
  Turns<std::string> turns;
  std::vector<std::string> done;
  // While a piece of "flood" is done, another thread looks for work twice.
  turns.add("flood", [&] {
    done.push_back("flood0");
    turns.do_next();
    turns.do_next();
    done.push_back("end of flood0");
  });
  turns.add("flood", [&] { done.push_back("flood1"); });
  turns.add("calm", [&] { done.push_back("calm0"); });
  turns.do_next();
  CHECK(done == std::vector<std::string>{"flood0", "calm0", "end of flood0", "flood1"});
  turns.do_next();
  CHECK(done.size() == 4);
}
