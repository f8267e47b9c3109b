/// Leases that change while requests run: growth, return of memory, TTL, drain.
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <map>
#include <stdexcept>

#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

control::Client connect(const System& system) {
  return control::Client::connect(system.broker_socket()).value();
}

RequestId fresh_id() {
  return {mint_request_id()};
}

using Texts = std::map<std::string, std::vector<std::int32_t>>;

/// Runs several requests for one text together; returns their tokens by request. The worker is
/// stopped until all are sent. Calls `when_accepted` once the worker has accepted all of them.
Texts decode_together(
    System& system, const wire::LeaseAcquired& lease, const TenantSpec& spec, int requests,
    const std::function<void()>& when_accepted = [] {}) {
  boost::asio::io_context io;
  Texts texts;
  int accepted = 0;
  int completed = 0;
  const auto peer = connect_peer(
      io, lease,
      [&](const std::string& method, const control::Payload& params) {
        if (method == "request.completed") {
          ++completed;
          const auto end = wire::RequestCompleted::from_json(params.body).value();
          CHECK(end.reason == "MaxTokensReached");
        } else {
          const auto token = wire::TokenEmitted::from_json(params.body).value();
          texts[token.request.value].push_back(token.token);
        }
      },
      [](const Error& why) { throw std::runtime_error(why.detail); });
  system.while_worker_stopped([&] {
    for (int i = 0; i < requests; ++i) {
      const wire::RequestSubmit ask{.token = lease.token,
                                    .request_id = {"r" + std::to_string(i)},
                                    .prompt = spec.prompt,
                                    .max_emitted_tokens = spec.max_tokens,
                                    .ignore_eos = true};
      peer->call("request.submit", {ask.to_json(), {}}, [&](const auto& reply) {
        CHECK(reply);
        ++accepted;
      });
    }
    io.poll();
  });
  while (accepted < requests) REQUIRE(io.run_one_for(std::chrono::seconds(60)) > 0);
  when_accepted();
  while (completed < requests) REQUIRE(io.run_one_for(std::chrono::seconds(60)) > 0);
  return texts;
}

}  // namespace

TEST_CASE("a lease grows when its requests need more than it holds, and gives extents back") {
  System system({.worker_arguments = {}});
  system.admit("ann", {"--ttl-ms", "600000"});
  // One extent holds 102 blocks; each of these requests needs more than 30.
  const TenantSpec spec{.tenant = "ann", .prompt = "In the garden", .max_tokens = 490};
  const auto alone = system.undisturbed(spec);
  auto client = connect(system);
  const auto acquired = acquire(client, "ann");

  const auto texts = decode_together(system, acquired, spec, 5);

  CHECK(texts.size() == 5);
  for (const auto& [request, tokens] : texts) CHECK((tokens == alone));
  CHECK(system.lease(acquired.lease).extents >= 2);

  const wire::LeaseShrink shrink{.lease = acquired.lease, .extents = 8, .request_id = fresh_id()};
  const auto resized = wire::LeaseResized::from_json(
      client.call("lease.shrink", {.body = shrink.to_json()}).value().body);
  REQUIRE(resized);
  CHECK(resized->extents < 2);
  CHECK(eventually([&] {
    const auto status = system.status();
    return status.free_bytes + status.owned_bytes == status.capacity_bytes;
  }));
}

TEST_CASE("a holder that does not renew loses its lease at the deadline; one that does keeps it") {
  System system({.worker_arguments = {"--slow-motion-us", "300"}});
  system.admit("ann", {"--ttl-ms", "4000"});
  // leasehold-tenant renews its lease, so this text may take several TTLs.
  const auto kept = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 1);
  auto client = connect(system);
  const auto acquired = acquire(client, "ann");

  REQUIRE(system.eventually_fenced(acquired.lease));
  CHECK(system.lease(acquired.lease).reason == RevokeReason::TtlExpired);
  REQUIRE(kept->child().signal(SIGINT));
  CHECK(kept->finish() == 0);
  CHECK(system.lease(kept->record().leases.front()).reason == RevokeReason::Released);
}

TEST_CASE("a drained lease finishes every accepted request, grows for it, and then ends at once") {
  System system({.worker_arguments = {"--slow-motion-us", "10"}});
  system.admit("ann", {"--ttl-ms", "600000", "--max-blocks", "4096"});
  // One extent holds 102 blocks; 12 requests need more than 360. Four of them have to wait.
  const TenantSpec spec{.tenant = "ann", .prompt = "In the garden", .max_tokens = 490};
  const auto alone = system.undisturbed(spec);
  auto client = connect(system);
  const auto acquired = acquire(client, "ann");

  const auto texts = decode_together(system, acquired, spec, 12, [&] {
    REQUIRE(system.brokerctl({"drain", to_string(acquired.lease), "--grace-ms", "3600000"}) == 0);
    auto worker = connect_to_worker(acquired);
    const wire::RequestSubmit late{
        .token = acquired.token, .request_id = fresh_id(), .prompt = spec.prompt};
    const auto refused = worker.call("request.submit", {late.to_json(), {}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::Draining);
  });

  CHECK(texts.size() == 12);
  for (const auto& [request, tokens] : texts) CHECK((tokens == alone));
  REQUIRE(system.eventually_fenced(acquired.lease));
  const wire::LeaseView lease = system.lease(acquired.lease);
  CHECK(lease.reason == RevokeReason::Released);
  CHECK(lease.times.revoked_boottime_ns < lease.drain_deadline_boottime_ns);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("a drained lease without requests ends at once") {
  System system;
  system.admit("ann", {"--ttl-ms", "600000"});
  auto client = connect(system);
  const auto acquired = acquire(client, "ann");

  REQUIRE(system.brokerctl({"drain", to_string(acquired.lease), "--grace-ms", "3600000"}) == 0);

  REQUIRE(system.eventually_fenced(acquired.lease));
  CHECK(system.lease(acquired.lease).reason == RevokeReason::Released);
}

TEST_CASE("a drained tenant gets no lease until undrain, and its running text finishes") {
  System system({.worker_arguments = {"--slow-motion-us", "10"}, .tenants = {"ann", "bob"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 400}, 3);

  REQUIRE(system.brokerctl({"drain", "--tenant", "ann", "--grace-ms", "3600000"}) == 0);

  const auto late = system.start_tenant({.tenant = "ann", .max_tokens = 5});
  CHECK(late->finish() == exit_code(Errc::Draining));
  CHECK(ann->finish() == 0);
  CHECK(ann->record().tokens.size() == 400);
  CHECK(system.undisturbed({.tenant = "bob", .max_tokens = 5}).size() == 5);
  REQUIRE(system.brokerctl({"undrain", "--tenant", "ann"}) == 0);
  CHECK(system.undisturbed({.tenant = "ann", .max_tokens = 5}).size() == 5);
}

TEST_CASE("a drained worker finishes what runs, takes nothing new, and is shown as drained") {
  System system({.worker_arguments = {"--slow-motion-us", "10"}, .tenants = {"ann"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 400}, 3);

  REQUIRE(system.brokerctl({"drain", "--worker", "w1", "--grace-ms", "3600000"}) == 0);

  const auto late = system.start_tenant({.tenant = "ann", .max_tokens = 5});
  CHECK(late->finish() == exit_code(Errc::Draining));
  CHECK(ann->finish() == 0);
  CHECK(ann->record().tokens.size() == 400);
  CHECK(eventually([&] { return system.view().workers().value().at(0).drain == "drained"; }));
  CHECK(system.brokerctl({"drain", "--worker", "w1", "--wait"}) == 0);
  REQUIRE(system.brokerctl({"undrain", "--worker", "w1"}) == 0);
  CHECK(system.undisturbed({.tenant = "ann", .max_tokens = 5}).size() == 5);
}

TEST_CASE("a drain of a worker that is killed is reported as such") {
  System system({.tenants = {"ann"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 5);
  Child drain =
      system.start_brokerctl({"drain", "--worker", "w1", "--grace-ms", "3600000", "--wait"});
  REQUIRE(eventually([&] { return system.view().workers().value().at(0).drain == "draining"; }));
  // A tenant that sees the worker's end before the broker does releases its lease itself.
  REQUIRE(ann->child().signal(SIGSTOP));
  REQUIRE(eventually([&] { return is_stopped(ann->child().pid()); }));

  system.remove_worker("w1");

  CHECK(exit_status_of(drain) == exit_code(Errc::LeaseRevoked));
  REQUIRE(ann->child().signal(SIGCONT));
  ann->finish();
}

TEST_CASE("an interrupted wait for a drain exits with 130, and the drain goes on") {
  System system({.tenants = {"ann"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 5);
  Child drain =
      system.start_brokerctl({"drain", "--worker", "w1", "--grace-ms", "3600000", "--wait"});
  const auto drain_state = [&] { return system.view().workers().value().at(0).drain; };
  REQUIRE(eventually([&] { return drain_state() == "draining"; }));
  REQUIRE(ann->child().signal(SIGSTOP));  // its lease does not end

  REQUIRE(drain.signal(SIGINT));

  CHECK(exit_status_of(drain) == 130);
  CHECK(drain_state() == "draining");
  REQUIRE(ann->child().signal(SIGCONT));
  CHECK(ann->finish() == 0);
}

TEST_CASE("a draining lease takes no new requests and is revoked at its deadline") {
  System system({.tenants = {"ann"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 5);
  const LeaseId lease = ann->record().leases.front();

  CHECK(system.brokerctl({"drain", to_string(lease), "--grace-ms", "200", "--wait"}) ==
        exit_code(Errc::LeaseRevoked));

  REQUIRE(system.eventually_fenced(lease));
  CHECK(system.lease(lease).reason == RevokeReason::DrainDeadline);
  ann->finish();
}

}  // namespace leasehold::testing
