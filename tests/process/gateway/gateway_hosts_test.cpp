// What a gateway says of its hosts.
#include <catch2/catch.hpp>

#include "tests/process/gateway/fake_host.hpp"
#include "tests/process/gateway/gateway_process.hpp"

using Catch::Contains;

namespace leasehold::testing {

TEST_CASE("gateway: hosts that compute a model differently are reported before a text must move") {
  FakeHost one("one"), other("other", "another");
  GatewayProcess gateway({one.address(), other.address()}, {"--metrics", "127.0.0.1:0"});
  CHECK(eventually([&] { return gateway.logs("hosts compute a model differently"); }));
  CHECK(gateway.logs("no text moves between them"));
  CHECK(gateway.send(get("/health", "")).json().at("models_computed_differently") == 1);
  const auto page = [&] {
    HttpClient metrics(gateway.logged_address("metrics ready address="));
    metrics.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return metrics.reply().body;
  };
  CHECK_THAT(page(), Contains("leasehold_gateway_model_identities{model=\"m\"} 2"));
  other.die();
  CHECK(eventually([&] { return page().contains("model_identities{model=\"m\"} 1"); }));
  CHECK(gateway.send(get("/health", "")).json().at("models_computed_differently") == 0);
}

}  // namespace leasehold::testing
