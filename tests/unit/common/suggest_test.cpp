#include "common/cli/suggest.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace leasehold;

TEST_CASE("suggest: an inserted, deleted, changed or swapped letter counts as one") {
  CHECK(edit_distance("revoke", "revoke") == 0);
  CHECK(edit_distance("revok", "revoke") == 1);
  CHECK(edit_distance("revokee", "revoke") == 1);
  CHECK(edit_distance("rewoke", "revoke") == 1);
  CHECK(edit_distance("reovke", "revoke") == 1);
  CHECK(edit_distance("", "drain") == 5);
}

TEST_CASE("suggest: the nearest word is suggested unless it is too far") {
  const std::vector<std::string> verbs{"status", "revoke", "drain", "watch"};
  CHECK(nearest("statsu", verbs) == "status");
  CHECK(nearest("wach", verbs) == "watch");
  CHECK(nearest("dance", verbs).empty());
  CHECK(nearest("x", {}).empty());
}
