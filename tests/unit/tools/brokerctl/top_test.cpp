#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tools/brokerctl/top_view.hpp"
#include "tools/cli/table.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::TenantView tenant(const char* name, std::uint64_t tokens) {
  return {.policy = {.tenant = {name}, .max_blocks = 64},
          .leases_live = 1,
          .blocks_held = 8,
          .served = {.tenant = {name}, .tokens = tokens}};
}

TopSample sample(std::int64_t at_s, std::vector<wire::TenantView> tenants) {
  return {.at = TimePoint{at_s * 1'000'000'000},
          .status = {.capacity_bytes = 100ull << 20,
                     .free_bytes = 75ull << 20,
                     .draining_bytes = 2ull << 20,
                     .leases_live = 2,
                     .leases_revoked = 1,
                     .leases_stuck = 1,
                     .leases_fenced = 17,
                     .isolation = "separate-users",
                     .uptime_ms = at_s * 1000},
          .tenants = std::move(tenants),
          .workers = {{.worker = "w1", .state = "ready", .model = "stories", .leases = 3}},
          .revoked = {}};
}

TopSample with_revoked(TopSample from) {
  wire::LeaseView lease = lease_view({7, 3}, LeaseState::Revoked, "ann");
  lease.times.revoked_boottime_ns = from.at.boottime_ns - 2'500'000'000;
  from.revoked = {lease};
  return from;
}

}  // namespace

TEST_CASE("brokerctl top: one picture") {
  const TopSample before = sample(10, {tenant("ann", 100), tenant("bob", 1000)});
  const TopSample now = with_revoked(sample(12, {tenant("ann", 125), tenant("bob", 1401)}));

  CHECK(top_text(now, &before) ==
        "broker    up 12.0 s, device cpu ready, isolation separate-users\n"
        "memory    [#####...............] 25 MiB of 100 MiB in use; draining 2 MiB, scrubbing 0 B, "
        "quarantined 0 B\n"
        "leases    2 live, 1 revoked, 1 stuck, 17 fenced in all\n"
        "rebinds   0 in the last minute\n"
        "tokens/s  213.0\n"
        "\n"
        "TENANT  TIER      TOKENS/S  LEASES  KV BLOCKS  OF  CACHED  PREEMPTED  REBOUND/MIN  DRAIN\n"
        "bob     standard     200.5       1          8  64       0          0            0  -\n"
        "ann     standard      12.5       1          8  64       0          0            0  -\n"
        "\n"
        "WORKER  STATE  RUNNING  WAITING  STEP  LEASES  DRAIN    MODEL\n"
        "w1      ready        -        -     -       3  serving  stories\n"
        "\n"
        "REVOKED LEASE  TENANT  WORKER  REASON      FOR\n"
        "7.3            ann     w       operator  2.5 s\n");
}

TEST_CASE("brokerctl top: there is no rate without an earlier sample of the same broker") {
  const TopSample before = sample(10, {tenant("ann", 100)});
  const TopSample now = sample(12, {tenant("ann", 50)});
  CHECK_FALSE(tokens_per_second(now.tenants[0], now, nullptr));
  CHECK_FALSE(tokens_per_second(now.tenants[0], now, &before));  // removed and admitted again
  TopSample restarted = sample(12, {tenant("ann", 500)});
  restarted.status.uptime_ms = 1;
  CHECK_FALSE(tokens_per_second(restarted.tenants[0], restarted, &before));
  CHECK(top_text(now, nullptr).contains("tokens/s  -\n"));
}

TEST_CASE("brokerctl top: without a terminal it prints one picture of one interval") {
  FakeBroker broker;
  const auto reply = [](std::uint64_t tokens) {
    return wire::Json{{"items", wire::Json::array({tenant("ann", tokens).to_json()})},
                      {"more", false}};
  };
  broker.replies["status"] = {wire::StatusView{.isolation = "no-worker", .uptime_ms = 5}.to_json()};
  broker.replies["tenant.list"] = {reply(0), reply(300)};
  broker.replies["worker.list"] = {wire::Json{{"items", wire::Json::array()}}};

  REQUIRE(run({.verb = ShowTop{.interval_ms = 2000}}, broker.dependencies()));
  CHECK(broker.out.str().contains("tokens/s  150.0"));
  CHECK(broker.waits == std::vector<Duration>{std::chrono::seconds(2)});

  broker.out.str("");
  broker.replies["tenant.list"] = {reply(0), reply(300)};
  REQUIRE(run({.output = Output::Json, .verb = ShowTop{}}, broker.dependencies()));
  CHECK(wire::Json::parse(broker.out.str()).at("tenants").at(0).at("tokens_per_second") == 300.0);
}

TEST_CASE("brokerctl top: a terminal gets frames of its size until the user ends it") {
  FakeBroker broker;
  broker.replies["status"] = {wire::StatusView{.isolation = "no-worker"}.to_json()};
  broker.replies["tenant.list"] = {wire::Json{{"items", wire::Json::array()}, {"more", false}}};
  broker.replies["worker.list"] = {wire::Json{{"items", wire::Json::array()}}};
  broker.waits_left = 3;
  Dependencies on_terminal = broker.dependencies();
  on_terminal.screen_size = [] { return cli::ScreenSize{.rows = 2, .columns = 10}; };

  REQUIRE(run({.verb = ShowTop{}}, on_terminal));

  const std::string frame = "\x1b[Hbroker    \x1b[K\r\nmemory    \x1b[K\x1b[J";
  CHECK(broker.out.str() == frame + frame + frame + frame);

  broker.out.str("");
  broker.waits_left = 3;
  REQUIRE(run({.output = Output::Json, .verb = ShowTop{}}, on_terminal));
  CHECK(wire::Json::parse(broker.out.str()).contains("tenants"));  // one document
}

TEST_CASE("brokerctl --watch: lists repeat until interrupted; JSON is one line for each") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({1, 1}, LeaseState::Live)})};
  broker.waits_left = 2;
  REQUIRE(
      run({.output = Output::Json, .watch_ms = 500, .verb = ListLeases{}}, broker.dependencies()));
  std::istringstream lines(broker.out.str());
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    CHECK(wire::Json::parse(line).at("items").size() == 1);
  }
  CHECK(n == 3);
  CHECK(broker.waits.front() == std::chrono::milliseconds(500));
}

TEST_CASE("brokerctl -o wide: a table has more columns") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({1, 1}, LeaseState::Fenced)})};
  REQUIRE(run({.verb = ListLeases{}}, broker.dependencies()));
  CHECK_FALSE(broker.out.str().contains("EXTENTS"));
  REQUIRE(run({.output = Output::Wide, .verb = ListLeases{}}, broker.dependencies()));
  CHECK(broker.out.str().contains("EXTENTS"));
}

TEST_CASE("brokerctl: --watch and -o wide are parsed, and --watch repeats nothing but lists") {
  const auto parse = [](std::vector<std::string> words) { return parse_arguments(words); };
  CHECK(parse({"leases", "--watch"})->watch_ms == 2000);
  CHECK(parse({"status", "--watch", "--interval-ms", "500"})->watch_ms == 500);
  CHECK(parse({"leases", "-o", "wide"})->output == Output::Wide);
  CHECK_FALSE(parse({"leases"})->watch_ms);
  CHECK_FALSE(parse({"leases", "--interval-ms", "500"}));
  CHECK_FALSE(parse({"tenants", "admit", "ann", "--watch"}));
  CHECK(std::get<ShowTop>(parse({"top", "--once", "--interval-ms", "200"})->verb).interval_ms ==
        200);
}

TEST_CASE("brokerctl: a list that repeats ends when its output has no reader any more") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({1, 1}, LeaseState::Live)})};
  auto dependencies = broker.dependencies();
  dependencies.wait = [&broker, waited = 0](Duration) mutable {
    broker.out.setstate(std::ios::badbit);
    return waited++ < 10;
  };

  REQUIRE(run({.watch_ms = 500, .verb = ListLeases{}}, dependencies));

  CHECK(broker.calls.size() == 2);
}

TEST_CASE("top: a worker shows the queue and the time of its newest step, and none when it idles") {
  TopSample now{.at = TimePoint{10'000'000'000}};
  now.workers = {{.worker = "busy", .state = "ready"}, {.worker = "idle", .state = "ready"}};
  const auto step = [](const char* worker, std::int64_t at_ns) {
    return wire::StepView{
        .worker = worker,
        .step = {.at_boottime_ns = at_ns, .duration_us = 7300, .running = 31, .waiting = 17}};
  };
  now.steps = {step("busy", 9'900'000'000), step("idle", 2'000'000'000)};
  const std::string text = top_text(now, nullptr);
  CHECK_THAT(text, Catch::Matches("[^]*busy +ready +31 +17 +7\\.3 ms[^]*"));
  CHECK_THAT(text, Catch::Matches("[^]*idle +ready +- +- +- [^]*"));
  CHECK(top_json(now, nullptr).at("steps").size() == 2);
}

TEST_CASE("top: steps are sampled where the broker permits it") {
  FakeBroker broker;
  broker.replies["status"] = {wire::StatusView{.isolation = "no-worker"}.to_json()};
  broker.replies["tenant.list"] = {items<wire::TenantView>({})};
  broker.replies["worker.list"] = {items<wire::WorkerView>({{.worker = "w", .state = "ready"}})};
  broker.replies["step.watch"] = {fail(Errc::PermissionDenied, "observers may not"),
                                  wire::Empty{}.to_json()};
  broker.clock.advance(std::chrono::seconds(5));
  broker.replies["step.list"] = {items<wire::StepView>(
      {{.worker = "w",
        .attachment = {1},
        .step = {.step = 1, .at_boottime_ns = broker.clock.now().boottime_ns, .running = 41}}})};
  const auto done = run_words(broker, {"top", "--once"});
  INFO((done ? "" : done.error().detail));
  REQUIRE(done);
  CHECK_THAT(broker.out.str(), Catch::Contains(" 41 "));
}
