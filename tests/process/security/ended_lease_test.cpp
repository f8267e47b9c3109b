// The token of a lease that has ended opens no connection at a worker and submits nothing.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

Result<control::Payload> submit(control::Client& worker, const wire::LeaseAcquired& lease) {
  const wire::RequestSubmit request{.token = lease.token,
                                    .request_id = {mint_request_id()},
                                    .prompt = "Once upon a time",
                                    .max_emitted_tokens = 4};
  return worker.call(std::string(request.kMethod), {.body = request.to_json()});
}

}  // namespace

TEST_CASE("security: the token of an ended lease opens no connection, however often it is shown") {
  System system({.tenants = {"ann"}});
  control::Client broker = control::Client::connect(system.broker_socket()).value();
  const wire::LeaseAcquired ended = acquire(broker, "ann");
  control::Client early = connect_to_worker(ended);
  REQUIRE(system.brokerctl({"revoke", to_string(ended.lease)}) == 0);
  REQUIRE(system.eventually_fenced(ended.lease));

  CHECK(submit(early, ended).error().code == Errc::LeaseFenced);
  std::vector<control::Client> kept;
  for (int i = 0; i < 300; ++i) {
    kept.push_back(control::Client::connect(ended.address).value());
    const wire::ConnectionAuthenticate message{.token = ended.token};
    const auto answer = kept.back().call(std::string(message.kMethod), {.body = message.to_json()});
    REQUIRE_FALSE(answer.has_value());
    REQUIRE(answer.error().code == Errc::LeaseFenced);
  }

  const wire::LeaseAcquired live = acquire(broker, "ann");
  control::Client late = connect_to_worker(live);
  CHECK(submit(late, live).has_value());
}

}  // namespace leasehold::testing
