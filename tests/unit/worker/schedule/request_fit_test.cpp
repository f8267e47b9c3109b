// Whether a request fits the context and its tenant's blocks, without a scheduler.
#include "worker/schedule/request_fit.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {

TEST_CASE(
    "request fit: a default token limit is lowered to the tenant's blocks, an explicit one not") {
  PartsFixture test;
  const RequestFit fit(test.limits, test.tenancies);
  PromptRequest request = test.request(test.lease(1, 8, 5), "long", 10);
  request.max_emitted_tokens = 1'000;
  fit.shorten(request, ~std::uint64_t{0});
  CHECK(request.max_emitted_tokens == 1'000);
  request.may_shorten = true;
  fit.shorten(request, ~std::uint64_t{0});
  CHECK(request.max_emitted_tokens == 4 * 16 - 10);  // the fifth block is for the record
  CHECK(fit.check(request));
  fit.shorten(request, 12);
  CHECK(request.max_emitted_tokens == 2);
}

TEST_CASE(
    "request fit: blocks on other workers may come back, and blocks above the quota may not") {
  PartsFixture test;
  const Tenancy& tenancy = test.lease(1, 8);
  test.tenancies.set_quota(
      {.tenant = tenancy.tenant, .max_concurrent = 8, .max_blocks = 2, .request_blocks = 4});
  const RequestFit fit(test.limits, test.tenancies);
  PromptRequest request = test.request(tenancy, "a", 40);
  const auto later = fit.check(request);
  REQUIRE_FALSE(later);
  CHECK(later.error().code == Errc::QuotaBlocks);
  CHECK(later.error().retry_after_ms == kOtherLeaseEnds_ms);
  request.max_emitted_tokens = 100;
  const auto never = fit.check(request);
  REQUIRE_FALSE(never);
  CHECK(never.error().code == Errc::QuotaBlocks);
  CHECK_FALSE(never.error().retry_after_ms);
}

TEST_CASE("request fit: a prompt that fills the context is too long, unless its text continues") {
  PartsFixture test;
  const RequestFit fit(test.limits, test.tenancies);
  PromptRequest request = test.request(test.lease(1, 32), "full", 256);
  CHECK(fit.check(request).error().code == Errc::PromptTooLong);
  request.emitted.assign(1, request.prompt.back());
  request.prompt.pop_back();
  CHECK(fit.check(request));
  CHECK(fit.most_positions(request) == 256);
}

}  // namespace leasehold::testing
