#include "worker/lease/retry_while_loading.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("retry while loading: it waits as long as another worker loads") {
  constexpr int kTenHours = 360'000;  // pauses of 100 ms
  int pauses = 0;

  const auto opened = retry_while_loading(
      [&]() -> Result<int> {
        if (pauses < kTenHours) return fail(Errc::WeightsLoading, "this region is being filled");
        return 7;
      },
      [&] { ++pauses; });

  CHECK(opened == 7);
  CHECK(pauses == kTenHours);
}

TEST_CASE("retry while loading: any other error ends the wait at once") {
  for (const Errc code : {Errc::ConnectionLost, Errc::PoolExhausted, Errc::TimedOut}) {
    int asked = 0;
    const auto refused = retry_while_loading(
        [&]() -> Result<int> { return fail(++asked < 3 ? Errc::WeightsLoading : code, ""); },
        [] {});

    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == code);
    CHECK(asked == 3);
  }
}
