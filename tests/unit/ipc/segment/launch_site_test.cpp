#include "ipc/segment/launch_site.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace leasehold;

TEST_CASE("launch site: every site has a unique name") {
  std::set<std::string_view> names;
  for (int i = 0; i < kLaunchSiteCount; ++i) {
    const std::string_view text = name(static_cast<LaunchSite>(i));
    CHECK_FALSE(text.empty());
    CHECK(names.insert(text).second);
  }
  CHECK(name(LaunchSite::KvAppend) == "kv_append");
  CHECK(name(LaunchSite::Commit) == "commit");
}

TEST_CASE("touches: a wider scope has a greater value, and two bits hold it") {
  STATIC_REQUIRE(Touches::Nothing < Touches::WeightsAndScratch);
  STATIC_REQUIRE(Touches::WeightsAndScratch < Touches::TenantMemory);
  STATIC_REQUIRE(static_cast<int>(Touches::TenantMemory) < 4);
}
