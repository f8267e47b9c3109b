// The text of a killed resumable tenant must come whole to the next process with its request id.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/checks/soak/judge.hpp"

using namespace leasehold;
using namespace leasehold::soak;

namespace {

TenantInstance process(bool was_killed, bool is_whole) {
  TenantInstance tenant{
      .tenant = "bob", .undisturbed = {7, 8}, .was_killed = was_killed, .request_id = "bob-0"};
  tenant.record.tokens = {7};
  if (!is_whole) return tenant;
  tenant.record.tokens.push_back(8);
  tenant.record.completed = "MaxTokensReached";
  return tenant;
}

bool is_found(std::vector<TenantInstance> tenants) {
  const History history{.tenants = std::move(tenants), .canaries = CanaryReport{}};
  const auto checks = judge(history);
  const auto found = std::ranges::find_if(checks, [](const demo::Check& check) {
    return check.promise.find("came whole to the next one") != std::string::npos;
  });
  REQUIRE(found != checks.end());
  return !found->ok;
}

}  // namespace

TEST_CASE("soak judge: finds the text of a killed process that no other process completes") {
  const TenantInstance killed = process(true, false), whole = process(false, true);
  CHECK_FALSE(is_found({killed, whole}));
  CHECK_FALSE(is_found({killed, killed, whole}));
  CHECK(is_found({killed}));
  CHECK(is_found({killed, killed}));
  CHECK(is_found({killed, process(false, false)}));
  CHECK(is_found({whole}));  // no text was resumed
  TenantInstance forgets = process(true, false);
  forgets.request_id.clear();
  CHECK(is_found({forgets, whole}));  // it was not resumable
}
