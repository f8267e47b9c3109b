// What a client learns when its key cannot be checked.
#include "worker/http/keys/key_check.hpp"

#include <catch2/catch.hpp>

#include "ipc/http/http_errors.hpp"

using namespace leasehold;
using namespace leasehold::http;

TEST_CASE("http key check: a broker that is gone or silent is BrokerLost with 503, not a timeout") {
  for (const Errc code : {Errc::ConnectionLost, Errc::TimedOut}) {
    const Error reported = key_check_failure({code, "the connection is closed"});
    CHECK(reported.code == Errc::BrokerLost);
    CHECK_THAT(reported.detail, Catch::Contains("lost its broker"));
    CHECK(refusal(reported).status == 503);
    CHECK(refusal(reported).retry_after_s >= 1);
  }
}

TEST_CASE("http key check: what the broker refuses stays as it is") {
  const Error reported = key_check_failure({Errc::BadToken, "no such key"});
  CHECK(reported.code == Errc::BadToken);
  CHECK(reported.detail == "no such key");
}
