#include "tools/brokerctl/run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/cli/print_error.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tools/brokerctl/prefix_text.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

Result<void> run_verb(FakeBroker& broker, Verb verb, Output output = Output::Table) {
  return run({.output = output, .verb = std::move(verb)}, broker.dependencies());
}

}  // namespace

TEST_CASE("brokerctl: status prints memory in readable units") {
  FakeBroker broker;
  const wire::StatusView status{
      .capacity_bytes = 256u << 20,
      .free_bytes = 256u << 20,
      .isolation = "same-user",
      .clocks = {{.clock = "t_quiet",
                  .since_start = {.count = 12, .p50_ns = 4000, .p99_ns = 31000, .max_ns = 45000},
                  .last_minute = {}}}};
  broker.replies["status"] = {status.to_json()};

  REQUIRE(run_verb(broker, Show::Status));

  CHECK(broker.out.str().find("256 MiB") != std::string::npos);
  CHECK(broker.out.str().find("same-user") != std::string::npos);
  CHECK(broker.out.str().find("t_quiet p50 / p99 / max") != std::string::npos);
  CHECK(broker.out.str().find("4.0 µs / 31.0 µs / 45.0 µs of 12") != std::string::npos);
}

TEST_CASE("brokerctl: -o json prints one document that parses") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({1, 1}, LeaseState::Live)})};

  REQUIRE(run_verb(broker, ListLeases{}, Output::Json));

  const auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("items").size() == 1);
  CHECK(wire::LeaseView::from_json(document.at("items").at(0))->lease == LeaseId{1, 1});
}

TEST_CASE("brokerctl: leases are read in pages, and a page that does not advance is an error") {
  FakeBroker broker;
  wire::Json first = items({lease_view({1, 1}, LeaseState::Live)});
  first["more"] = true;
  broker.replies["lease.list"] = {first, items({lease_view({7, 3}, LeaseState::Live)})};

  REQUIRE(run_verb(broker, ListLeases{}));

  CHECK(broker.out.str().find("1.1") != std::string::npos);
  CHECK(broker.out.str().find("7.3") != std::string::npos);
  CHECK(broker.calls.at(1).second == wire::Json{{"after", 1}});
  broker.replies["lease.list"] = {first};
  CHECK(run_verb(broker, ListLeases{}).error().code == Errc::MalformedMessage);
}

namespace {

template <class View>
wire::Json page(const View& view, bool more) {
  return {{"items", wire::Json::array({view.to_json()})}, {"more", more}};
}

}  // namespace

TEST_CASE("brokerctl: tenants, extents and quarantine are read in pages too") {
  FakeBroker broker;
  const auto tenant = [](const char* name, std::uint64_t tokens) {
    return wire::TenantView{.policy = {.tenant = {name},
                                       .reserved_blocks = 365,
                                       .tier = wire::Tier::Guaranteed,
                                       .rebinds_per_minute = 421,
                                       .rebind_burst = 87,
                                       .rates = {.tokens_per_minute = 1234}},
                            .blocks_held = 593,
                            .served = {.tenant = {name},
                                       .tokens = tokens,
                                       .hit_tokens = 7312,
                                       .evicted_blocks = 271,
                                       .preemptions = 613,
                                       .cached_blocks = 149,
                                       .shared_hit_blocks = 839}};
  };
  broker.replies["tenant.list"] = {page(tenant("acme", 3), true), page(tenant("zoo", 1), false)};
  broker.replies["extent.list"] = {
      page(wire::ExtentView{.extent = ExtentId{5}, .state = "Owned"}, true),
      page(wire::ExtentView{.extent = ExtentId{17}, .state = "Owned"}, false)};
  broker.replies["quarantine.list"] = {
      page(wire::QuarantineView{.extent = ExtentId{9}, .why = "touched"}, true),
      page(wire::QuarantineView{.region = RegionId{3}, .why = "touched"}, true),
      page(wire::QuarantineView{.region = RegionId{4}, .why = "touched"}, false)};

  REQUIRE(run_verb(broker, Show::Tenants, Output::Wide));
  REQUIRE(run_verb(broker, Show::Extents));
  REQUIRE(run_verb(broker, Show::Quarantine));

  for (const char* word :
       {"acme",   "zoo",   " 365 ", " guaranteed ", " 593 ",    " 421 ",   " 87 ",
        " 1234 ", " 5 ",   " 17 ",  " 75.0 %",      " 25.0 % ", " 7312 ",  " 271 ",
        " 613 ",  " 149 ", " 839 ", "extent:9",     "region:3", "region:4"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
  CHECK(broker.calls.at(1).second == wire::Json{{"after", "acme"}});
  CHECK(broker.calls.at(3).second == wire::Json{{"after", "5"}});
  CHECK(broker.calls.at(5).second == wire::Json{{"after_extent", "9"}});
  CHECK(broker.calls.at(6).second == wire::Json{{"after_region", "3"}});
  broker.replies["extent.list"] = {
      page(wire::ExtentView{.extent = ExtentId{5}, .state = "Owned"}, true)};
  CHECK(run_verb(broker, Show::Extents).error().code == Errc::MalformedMessage);
}

TEST_CASE("brokerctl: prefix list shows the blocks of published texts, and which one is filled") {
  FakeBroker broker;
  auto filled = lease_view({1, 1}, LeaseState::Live, "");
  filled.scope = wire::LeaseScope::Shared;
  filled.part = "rules";
  filled.blocks = 61;
  auto filling = filled;
  filling.model = "tone@2";
  filling.lease = {2, 1};
  filling.part = "story";
  filling.blocks = 0;
  broker.replies["lease.list"] = {items({filled, filling, lease_view({3, 1}, LeaseState::Live)})};

  REQUIRE(run_verb(broker, Show::Prefixes));

  const std::string text = broker.out.str();
  CHECK(text.find("Live") < text.find(" 61 "));
  CHECK(text.find("Filling") > text.find("story"));
  CHECK(text.find("tone@2") > text.find("story"));
  CHECK(text.find("3.1") == std::string::npos);
}

TEST_CASE("brokerctl: workers are listed with their arithmetic") {
  FakeBroker broker;
  const wire::WorkerView worker{.worker = "w1", .state = "ready", .arithmetic = "int8"};
  broker.replies["worker.list"] = {items(std::vector{worker})};

  REQUIRE(run_verb(broker, Show::Workers, Output::Wide));

  CHECK(broker.out.str().find("ARITHMETIC") != std::string::npos);
  CHECK(broker.out.str().find(" int8 ") != std::string::npos);
}

TEST_CASE("brokerctl: a text to publish that cannot be read is named with its problem") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string empty = directory.file("empty"), latin = directory.file("latin");
  std::ofstream(empty).flush();
  std::ofstream(latin) << "\xe9";
  const auto refusal = [](const std::string& file) { return read_prefix_text(file).error(); };

  CHECK(refusal(directory.path().string()).detail.contains("not a regular file"));
  CHECK(refusal(directory.file("none")).code == Errc::FileNotFound);
  CHECK(refusal(empty).detail.contains("empty is empty"));
  CHECK(refusal(latin).detail.contains("not UTF-8"));
  const auto from_stdin = testing::run_in_child([] {
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    return print_error("brokerctl", read_prefix_text("-").error());
  });
  CHECK(from_stdin.error_output.starts_with("brokerctl: stdin is empty"));
}

TEST_CASE("brokerctl: leases are filtered by tenant and state") {
  FakeBroker broker;
  broker.replies["lease.list"] = {
      items({lease_view({1, 1}, LeaseState::Live, "A"), lease_view({2, 1}, LeaseState::Fenced, "A"),
             lease_view({3, 1}, LeaseState::Fenced, "B")})};

  REQUIRE(run_verb(broker, ListLeases{.tenant = TenantId{"A"}, .state = LeaseState::Fenced}));

  CHECK(broker.out.str().find("2.1") != std::string::npos);
  CHECK(broker.out.str().find("1.1 ") == std::string::npos);
  CHECK(broker.out.str().find("3.1") == std::string::npos);
}

TEST_CASE("brokerctl: leases of a tenant that does not exist are an error, not an empty list") {
  FakeBroker broker;
  const wire::TenantView ann{.policy = {.tenant = {"ann"}}, .served = {.tenant = {"ann"}}};
  broker.replies["lease.list"] = {items({})};
  broker.replies["tenant.list"] = {items(std::vector{ann})};

  CHECK(run_verb(broker, ListLeases{.tenant = TenantId{"ann"}}));
  const auto unknown = run_verb(broker, ListLeases{.tenant = TenantId{"bob"}});

  REQUIRE_FALSE(unknown);
  CHECK(unknown.error() == Error{Errc::UnknownTenant, "no tenant bob; see `brokerctl tenants`"});
}

TEST_CASE("brokerctl: a refusal by the broker keeps its code") {
  FakeBroker broker;
  broker.replies["lease.revoke"] = {fail(Errc::UnknownLease, "no lease 9.9")};

  const auto done = run_verb(broker, Revoke{.message = {.lease = LeaseId{9, 9}}});

  REQUIRE_FALSE(done);
  CHECK(done.error() == Error{Errc::UnknownLease, "no lease 9.9"});
  CHECK(broker.out.str().empty());
}

TEST_CASE("brokerctl: a reply that does not fit is MalformedMessage") {
  FakeBroker broker;
  broker.replies["status"] = {wire::Json{{"capacity_bytes", "much"}}};
  broker.replies["worker.list"] = {wire::Json::array()};
  broker.replies["event.list"] = {wire::Json{{"items", {1, 2}}, {"newest", 2}}};

  CHECK(run_verb(broker, Show::Status).error().code == Errc::MalformedMessage);
  CHECK(run_verb(broker, Show::Workers).error().code == Errc::MalformedMessage);
  CHECK(run_verb(broker, ListEvents{}).error().code == Errc::MalformedMessage);
}

TEST_CASE("brokerctl: tenants admit sends its arguments") {
  FakeBroker broker;
  broker.replies["tenant.admit"] = {wire::Json::object()};

  REQUIRE(run_verb(broker, wire::TenantAdmit{.tenant = {"A"}, .request_id = {"r1"}}));

  REQUIRE(broker.calls.size() == 1);
  CHECK(broker.calls[0].second.at("tenant") == "A");
  CHECK(broker.calls[0].second.at("request_id") == "r1");
}

TEST_CASE("brokerctl: quarantined memory is listed with the reason") {
  FakeBroker broker;
  const wire::QuarantineView quarantined{.extent = ExtentId{5},
                                         .lease = LeaseId{17, 4},
                                         .worker = "w0",
                                         .since_boottime_ns = 1'500'000'000,
                                         .size_bytes = 2u << 20,
                                         .why = "4096 bytes were written after the revocation"};
  broker.replies["quarantine.list"] = {items(std::vector{quarantined})};

  REQUIRE(run_verb(broker, Show::Quarantine));

  for (const char* word : {"extent:5", "17.4", "w0", "1.500000", "2 MiB", "4096 bytes"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
}

TEST_CASE("brokerctl: quarantine release sends the reason and prints the released size") {
  FakeBroker broker;
  broker.replies["quarantine.release"] = {
      wire::QuarantineReleased{.size_bytes = 2u << 20}.to_json()};

  REQUIRE(run_verb(broker, wire::QuarantineRelease{
                               .extent = ExtentId{5}, .reason = "inspected", .request_id = {"r"}}));

  CHECK(broker.calls.at(0).second.at("reason") == "inspected");
  CHECK(broker.out.str().find("2 MiB") != std::string::npos);
}

TEST_CASE("brokerctl: status shows the memory of lost workers") {
  FakeBroker broker;
  const wire::StatusView status{
      .capacity_bytes = 256u << 20, .unproven_bytes = 9u << 20, .isolation = "same-user"};
  broker.replies["status"] = {status.to_json()};

  REQUIRE(run_verb(broker, Show::Status));

  CHECK(broker.out.str().find("9 MiB") != std::string::npos);
}

TEST_CASE("brokerctl: status has a line of its own for swap, and leases show theirs") {
  FakeBroker broker;
  const wire::StatusView status{.swap = {.capacity_bytes = 48u << 20,
                                         .free_bytes = 7u << 20,
                                         .owned_bytes = 11u << 20,
                                         .quarantined_bytes = 30u << 20},
                                .isolation = "same-user"};
  broker.replies["status"] = {status.to_json()};
  REQUIRE(run_verb(broker, Show::Status));
  const std::string shown = broker.out.str();
  const auto swap = shown.find("swap capacity");
  REQUIRE(swap != std::string::npos);
  for (const char* part : {"48 MiB", "7 MiB", "11 MiB", "30 MiB"}) {
    CAPTURE(part);
    CHECK(shown.find(part, swap) < shown.find("leases live"));
  }

  wire::LeaseView lease = lease_view({1, 1}, LeaseState::Live);
  lease.swap_bytes = 13u << 20;
  broker.replies["lease.list"] = {items({lease})};
  REQUIRE(run_verb(broker, ListLeases{}, Output::Wide));
  CHECK(broker.out.str().contains("13 MiB"));
}

TEST_CASE("brokerctl: leases show a drain, and a worker that stopped before the revocation") {
  FakeBroker broker;
  wire::LeaseView draining = lease_view({1, 1}, LeaseState::Live);
  draining.drain_deadline_boottime_ns = 5;
  wire::LeaseView stopped_early = lease_view({2, 1}, LeaseState::Revoked);
  stopped_early.clocks = {};
  stopped_early.times.worker_stopped_boottime_ns = 7;
  broker.replies["lease.list"] = {items({draining, stopped_early})};

  REQUIRE(run_verb(broker, ListLeases{}));

  CHECK(broker.out.str().find("Live, draining") != std::string::npos);
  CHECK(broker.out.str().find("before revocation") != std::string::npos);
}

TEST_CASE("brokerctl: actions show the user, the action and the refusals") {
  FakeBroker broker;
  wire::OperatorActionView done{
      .at_unix_s = 1'700'000'000, .uid = 7, .action = "drain", .object = "lease:1.1"};
  done.done = true;
  wire::OperatorActionView refused{
      .uid = 8, .action = "quarantine_release", .object = "extent:5", .reason = "inspected"};
  refused.done = false;
  broker.replies["operator_action.list"] = {items(std::vector{done, refused})};

  REQUIRE(run_verb(broker, ListOperatorActions{.limit = 2}));

  CHECK(broker.calls.at(0).second == wire::Json{{"limit", 2}});
  for (const char* word :
       {"2023-11-14T22:13:20Z", "lease:1.1", "yes", "extent:5", "refused", "inspected"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
}

TEST_CASE("brokerctl: a removed tenant and a revoked key are printed, with and without leases") {
  FakeBroker broker;
  const wire::Json one = wire::LeasesTouched{.leases = {{3, 1}}}.to_json();
  broker.replies["tenant.remove"] = {wire::LeasesTouched{}.to_json()};
  broker.replies["key.revoke"] = {one, one};
  const wire::KeyRevoke revoke{.key = {"0123456789abcdef"}, .request_id = {"r"}};

  REQUIRE(run_verb(broker, wire::TenantRemove{.tenant = {"bob"}, .request_id = {"r"}}));
  CHECK(broker.out.str().contains("TENANT REMOVED  LEASE\nbob             -\n"));
  broker.out.str("");
  REQUIRE(run_verb(broker, revoke));
  CHECK(broker.out.str().contains("KEY REVOKED       LEASE\n0123456789abcdef  3.1\n"));
  broker.out.str("");
  REQUIRE(run_verb(broker, revoke, Output::Json));
  CHECK(wire::Json::parse(broker.out.str()) == one);
}
