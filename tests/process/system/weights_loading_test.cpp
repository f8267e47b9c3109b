/// Requests that meet revoked weights: they wait for the restore, and none fails for good.
#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <map>
#include <stdexcept>

#include "common/machine/process.hpp"
#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

constexpr int kRequests = 40;
constexpr int kRounds = 4;  // in one alone the restore may win the race

LeaseId live_engine_lease(System& system) {
  for (const wire::LeaseView& lease : system.engine_leases()) {
    if (lease.state == LeaseState::Live) return lease.lease;
  }
  throw std::runtime_error("the worker has no live engine lease");
}

std::uint64_t weights_bytes() {
  System system;
  return system.lease(live_engine_lease(system)).size_bytes;
}

/// A worker that stops while it loads, at a fault point. Its first engine lease is revoked before
/// it continues.
class RevokedLoad {
 public:
  RevokedLoad(const std::string& stops_at, std::vector<std::string> worker_arguments,
              std::vector<std::string> broker_arguments = {})
      : system_({.broker_arguments = std::move(broker_arguments),
                 .worker_arguments = std::move(worker_arguments),
                 .start_worker = false}) {
    system_.admit("ann");
    system_.start_worker("w1", stops_at);
    REQUIRE(eventually([&] { return is_stopped(worker()); }));
    first_lease_ = std::ranges::min(system_.engine_leases(), {}, &wire::LeaseView::lease).lease;
    REQUIRE(system_.lease(first_lease_).state == LeaseState::Live);
    REQUIRE(system_.brokerctl({"revoke", to_string(first_lease_)}) == 0);
    REQUIRE(::kill(worker(), SIGCONT) == 0);
  }

  void check_serves() {
    REQUIRE(eventually([&] { return system_.worker_is_ready() || is_dead(); }));
    INFO(system_.worker_log() + system_.broker_log());
    REQUIRE_FALSE(is_dead());
    const TenantSpec spec{.tenant = "ann", .max_tokens = 20};
    CHECK((system_.undisturbed(spec) == System::alone(spec)));
    CHECK(system_.eventually_fenced(first_lease_));
    CHECK(live_engine_lease(system_) != first_lease_);
    // The broker kills a worker that does not unmap in time.
    CHECK(count_of(system_.broker_log(), "did not unmap") == 0);
    CHECK_FALSE(is_dead());
  }

 private:
  pid_t worker() { return system_.worker().pid(); }
  bool is_dead() { return has_exited(system_.worker().pidfd()); }

  System system_;
  LeaseId first_lease_;
};

/// The requests of one tenant on one connection, and how they ended.
struct Burst {
  explicit Burst(System& system, const std::string& tenant) {
    auto client = control::Client::connect(system.broker_socket()).value();
    lease = acquire(client, tenant);
    broker.emplace(std::move(client));
    peer = connect_peer(
        io, lease,
        [this](const std::string& method, const control::Payload& params) {
          note(method, params.body);
        },
        [](const Error& why) { throw std::runtime_error(why.detail); });
  }

  void note(const std::string& method, const control::Json& body) {
    if (method == wire::RequestCompleted::kMethod) {
      ends.push_back(wire::RequestCompleted::from_json(body).value());
    } else {
      const auto token = wire::TokenEmitted::from_json(body).value();
      texts[token.request.value].push_back(token.token);
    }
  }

  void submit(const TenantSpec& spec, int round) {
    for (int i = 0; i < kRequests; ++i) {
      const wire::RequestSubmit ask{.token = lease.token,
                                    .request_id = {std::to_string(round) + "." + std::to_string(i)},
                                    .prompt = spec.prompt,
                                    .max_emitted_tokens = spec.max_tokens,
                                    .ignore_eos = true};
      peer->call("request.submit", {ask.to_json(), {}}, [this](const auto& reply) {
        if (!reply) refusals.push_back(reply.error());
      });
    }
    io.poll();
  }

  void run(std::size_t requests) {
    while (ends.size() + refusals.size() < requests) {
      REQUIRE(io.run_one_for(std::chrono::seconds(60)) > 0);
    }
  }

  boost::asio::io_context io;
  std::optional<control::Client> broker;  // holds the lease
  wire::LeaseAcquired lease;
  std::shared_ptr<control::Peer> peer;
  std::map<std::string, std::vector<std::int32_t>> texts;
  std::vector<wire::RequestCompleted> ends;
  std::vector<Error> refusals;
};

}  // namespace

TEST_CASE("40 requests submitted right after the weights are revoked wait, and all end whole") {
  System system({.worker_arguments = {}});
  system.admit("ann", {"--ttl-ms", "600000"});
  const TenantSpec spec{.tenant = "ann", .prompt = "In the garden", .max_tokens = 12};
  const auto alone = system.undisturbed(spec);
  Burst burst(system, "ann");

  for (int round = 1; round <= kRounds; ++round) {
    const LeaseId engine = live_engine_lease(system);
    system.while_worker_stopped([&] {
      REQUIRE(system.brokerctl({"revoke", to_string(engine)}) == 0);
      burst.submit(spec, round);
    });
    burst.run(static_cast<std::size_t>(round) * kRequests);
    CHECK(live_engine_lease(system) != engine);
  }

  for (const Error& refusal : burst.refusals) FAIL_CHECK(name(refusal.code));
  for (const wire::RequestCompleted& end : burst.ends) CHECK(end.reason == "MaxTokensReached");
  CHECK(burst.texts.size() == kRounds * kRequests);
  for (const auto& [request, tokens] : burst.texts) CHECK((tokens == alone));
}

TEST_CASE("a worker whose engine lease is revoked while it fills the weights loads them again") {
  RevokedLoad load("worker.unit.polled:stop:3", {});
  load.check_serves();
}

TEST_CASE("a worker whose engine lease is revoked before it publishes loads the weights again") {
  RevokedLoad load("worker.weights.filled:stop", {});
  load.check_serves();
}

TEST_CASE("a worker loads the first part again when it is revoked during the second") {
  RevokedLoad load("worker.weights.filled:stop:2", {"--weights-scope", "layer"});
  load.check_serves();
}

TEST_CASE("weights that are revoked while they load need no room for two copies") {
  const auto capacity = std::to_string(weights_bytes() * 3 / 2);
  RevokedLoad load("worker.unit.polled:stop:3", {}, {"--weights-capacity", capacity});
  load.check_serves();
}

TEST_CASE("a rebinding tenant comes through repeated revocations of the weights and its lease") {
  System system({.tenants = {"ann"}});
  const TenantSpec spec{.tenant = "ann", .max_tokens = 120, .rebind = true};
  const auto alone = system.undisturbed(spec);
  const auto ann = system.start_streaming(spec, 5);

  for (std::size_t tokens = 15; tokens <= 75; tokens += 15) {
    REQUIRE(ann->read_tokens(tokens));
    system.while_worker_stopped([&] {
      REQUIRE(system.brokerctl({"revoke", "--tenant", "ann"}) == 0);
      REQUIRE(system.brokerctl({"revoke", to_string(live_engine_lease(system))}) == 0);
    });
  }

  check_whole(*ann, alone);
}

}  // namespace leasehold::testing
