/// A tenant whose leases are revoked or replaced again and again, with real processes.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "common/machine/process.hpp"
#include "common/random.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kRebinding{.tenant = "ann", .max_tokens = 300, .rebind = true};

/// Slow enough that no request ends before it is revoked.
SystemSpec slow() {
  return {.worker_arguments = {"--slow-motion-us", "100"}};
}

bool is_limited(const runner::TenantEvent& event) {
  return event.event == "retry" && event.why == "RebindRateLimited";
}

bool was_limited(const runner::TenantRecord& record) {
  return std::ranges::any_of(record.reported, is_limited);
}

std::size_t rebounds(const runner::TenantRecord& record) {
  return static_cast<std::size_t>(
      std::ranges::count(record.reported, "rebound", &runner::TenantEvent::event));
}

std::size_t lines_matching(const std::string& words, const std::filesystem::path& path) {
  std::ifstream file(path);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.contains(words) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE(
    "rebind storm: the tenant meets its limit, waits as long as asked, and its text is the same") {
  System system(slow());
  system.admit("ann", {"--rebinds-per-minute", "6", "--rebind-burst", "1"});
  const auto alone = system.undisturbed(kRebinding);
  const auto ann = system.start_streaming(kRebinding, 4);
  // A token comes back every 10 s, so the second revocation meets the limit unless the machine
  // stalls for that long.
  for (std::size_t revocations = 1; revocations <= 10 && !was_limited(ann->record());
       ++revocations) {
    system.revoke_mid_request("ann");
    REQUIRE(ann->read_until([&](const runner::TenantRecord& record) {
      return was_limited(record) || rebounds(record) == revocations;
    }));
    if (!was_limited(ann->record())) REQUIRE(ann->read_tokens(ann->record().tokens.size() + 4));
  }

  REQUIRE(was_limited(ann->record()));
  check_whole(*ann, alone);
  // One refusal, then a lease: the tenant has waited for as long as the broker said.
  const auto& reported = ann->record().reported;
  const auto limited = std::ranges::find_if(reported, is_limited);
  CHECK(std::ranges::count_if(reported, is_limited) == 1);
  CHECK(std::next(limited)->event == "acquired");
}

TEST_CASE("rebind: the broker records each as one event and one log line") {
  System system(slow());
  system.admit("ann");
  const auto ann = system.start_streaming(kRebinding, 4);
  for (std::size_t i = 1; i <= 3; ++i) {
    system.revoke_mid_request("ann");
    REQUIRE(ann->read_until([&](const auto& record) { return rebounds(record) == i; }));
    REQUIRE(ann->read_tokens(ann->record().tokens.size() + 4));
  }
  CHECK(ann->finish() == 0);

  const auto& record = ann->record();
  const auto rebinds = system.recorded<events::Rebind>();
  REQUIRE(rebinds.size() == 3);
  for (std::size_t i = 0; i < rebinds.size(); ++i) {
    CHECK(rebinds[i].tenant == "ann");
    CHECK(rebinds[i].old_lease == record.leases[i]);
    CHECK(rebinds[i].new_lease == record.leases[i + 1]);
    CHECK(rebinds[i].request == rebinds[0].request);
    CHECK(rebinds[i].prompt_tokens == rebinds[0].prompt_tokens);
    CHECK(rebinds[i].prompt_tokens > 0);
    CHECK(rebinds[i].emitted_tokens == record.revocations[i].after_tokens);
    CHECK(rebinds[i].latency_ns > 0);
  }
  CHECK(lines_matching("request rebound tenant=ann", system.directory() / "broker.log") == 3);
}

TEST_CASE("move: a text over many lifetimes moves ahead of their ends, and is the same") {
  System system(slow());
  system.admit("ann", {"--max-lifetime-ms", "2500"});
  const TenantSpec spec{.tenant = "ann", .max_tokens = 300, .rebind = true};
  const auto ann = system.start_streaming(spec, 4);
  std::uint32_t fewest = 1;
  REQUIRE(ann->read_until([&](const runner::TenantRecord& record) {
    fewest = std::min(fewest, system.status().tenants_live);
    return record.tokens.size() >= 280;
  }));
  CHECK(fewest == 1);
  CHECK(ann->finish() == 0);
  const auto rebinds = system.recorded<events::Rebind>();
  const auto moved =
      std::ranges::count(rebinds, wire::RebindMode::Preemptive, &events::Rebind::mode);
  CHECK(moved > 0);
  // A machine that stalls for half a second makes a lease end first; then its text is computed
  // again.
  CHECK(static_cast<std::size_t>(moved) + ann->record().revocations.size() == rebinds.size());
  CHECK(ann->record().leases.size() == rebinds.size() + 1);
  CHECK((ann->record().tokens == System::alone(spec)));
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("move: a drained lease hands its text to another one, and ends as released") {
  System system(slow());
  system.admit("ann");
  const TenantSpec spec{.tenant = "ann", .max_tokens = 300, .rebind = true};
  const auto ann = system.start_streaming(spec, 4);
  const LeaseId first = ann->record().leases.at(0);
  Child drain =
      system.start_brokerctl({"drain", to_string(first), "--grace-ms", "60000", "--wait"});
  std::uint32_t fewest = 1;
  REQUIRE(ann->read_until([&](const auto& record) {
    fewest = std::min(fewest, system.status().tenants_live);
    return rebounds(record) == 1;
  }));
  CHECK(fewest == 1);
  CHECK(ann->finish() == 0);
  CHECK(exit_status_of(drain) == 0);
  CHECK((ann->record().tokens == System::alone(spec)));
  CHECK(ann->record().revocations.empty());
  CHECK(system.lease(first).reason == RevokeReason::Released);
  const auto rebinds = system.recorded<events::Rebind>();
  REQUIRE(rebinds.size() == 1);
  CHECK(rebinds[0].mode == wire::RebindMode::Checkpoint);
  CHECK(rebinds[0].old_lease == first);
  CHECK(rebinds[0].latency_ns > 0);
}

TEST_CASE("move: a token of another tenant is refused like one that no broker minted") {
  System system({.tenants = {"ann", "bob"}});
  auto broker = control::Client::connect(system.broker_socket()).value();
  const wire::LeaseAcquired ann = acquire(broker, "ann");
  const wire::LeaseAcquired bob = acquire(broker, "bob");
  control::Client worker = connect_to_worker(ann);
  const auto refusal = [&](const std::string& token) {
    const wire::RequestMove move{.request_id = {"r"}, .token = token};
    const auto moved = worker.call("request.move", {.body = move.to_json()});
    REQUIRE_FALSE(moved);
    return moved.error();
  };
  const Error forged = refusal("v1:1.1:ann:" + std::string(64, '0'));
  CHECK(forged.code == Errc::BadToken);
  CHECK(refusal(bob.token).code == forged.code);
  CHECK(refusal(bob.token).detail == forged.detail);
  CHECK(refusal(ann.token).code == Errc::UnknownRequest);
}

TEST_CASE("rebind: the number of live tenants never drops while leases and a worker end") {
  constexpr std::uint32_t kTenants = 3;
  System system({.worker_arguments = {"--slow-motion-us", "300"}});
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (std::uint32_t i = 0; i < kTenants; ++i) {
    const std::string name = "t" + std::to_string(i);
    system.admit(name);
    tenants.push_back(
        system.start_streaming({.tenant = name, .max_tokens = 300, .rebind = true}, 4));
  }
  std::uint32_t fewest = kTenants;
  const auto until_rebound = [&](std::size_t tenant, std::size_t leases) {
    return tenants[tenant]->read_until([&](const runner::TenantRecord& record) {
      fewest = std::min(fewest, system.status().tenants_live);
      return record.leases.size() == leases && rebounds(record) == leases - 1;
    });
  };
  const auto count_of = [&](const std::string& mode) {
    const auto rebinds = system.status().rebinds;
    return std::ranges::find(rebinds, mode, &wire::ModeSummary::mode)->rebinds.since_start.count;
  };
  for (std::size_t i = 0; i < kTenants; ++i) {
    system.revoke_mid_request("t" + std::to_string(i));
    REQUIRE(until_rebound(i, 2));
  }
  REQUIRE(eventually([&] { return count_of("reprefill") == kTenants; }));
  REQUIRE(system.worker().signal(SIGKILL));
  REQUIRE(eventually([&] {
    fewest = std::min(fewest, system.status().tenants_live);
    return has_exited(system.worker().pidfd());
  }));
  system.start_worker("w1");
  for (std::size_t i = 0; i < kTenants; ++i) REQUIRE(until_rebound(i, 3));
  CHECK(fewest == kTenants);

  // Workers report after they reply.
  CHECK(eventually([&] { return count_of("adopt") == kTenants; }));
  CHECK(count_of("reprefill") == kTenants);
  const auto listed = system.view().tenants().value();
  REQUIRE(listed.size() == kTenants);
  for (const wire::TenantView& view : listed) CHECK(view.rebinds.since_start.count == 2);
  for (const auto& tenant : tenants) CHECK(tenant->finish() == 0);
  CHECK(eventually([&] { return system.status().tenants_live == 0; }));
}

}  // namespace leasehold::testing
