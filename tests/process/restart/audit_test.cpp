/// Usage records and revocations of real requests, over the death of the broker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/process/restart/restartable.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

namespace leasehold::testing {
namespace {

/// What `brokerctl audit export` prints.
std::vector<nlohmann::json> exported(System& system) {
  const auto path = system.directory() / "brokerctl.log";
  std::filesystem::remove(path);
  REQUIRE(system.brokerctl({"audit", "export"}) == 0);
  std::ifstream log(path);
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(log, line);)
    if (line.starts_with('{')) records.push_back(nlohmann::json::parse(line));
  return records;
}

std::size_t count(const std::vector<nlohmann::json>& records, const char* member,
                  const std::string& value) {
  return static_cast<std::size_t>(std::ranges::count_if(
      records, [&](const auto& each) { return each.value(member, "") == value; }));
}

/// The computed and generated tokens of a tenant; after 00:00 UTC those of the day are fewer.
std::uint64_t tokens_of(const std::vector<nlohmann::json>& records, const std::string& tenant) {
  std::uint64_t tokens = 0;
  for (const auto& each : records) {
    if (each.value("record", "") != "usage_record" || each.value("tenant", "") != tenant) continue;
    tokens += each.at("prompt_tokens").get<std::uint64_t>() +
              each.at("generated_tokens").get<std::uint64_t>() -
              each.at("cached_tokens").get<std::uint64_t>();
  }
  return tokens;
}

/// A worker reports right after the end of a request, so this may take a moment.
bool has_records(System& system, const std::string& tenant, std::size_t n) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    std::size_t found = 0;
    for (const auto& each : exported(system))
      found += each.value("record", "") == "usage_record" && each.value("tenant", "") == tenant;
    if (found == n) return true;
    if (found > n) return false;
  }
  return false;
}

}  // namespace

TEST_CASE("audit: each finished request has one record, also over the death of the broker") {
  Restartable fixture;
  System& system = fixture.system;
  CHECK(system.start_tenant(kAnn)->finish() == 0);
  CHECK(has_records(system, "ann", 1));
  const auto cat = system.start_streaming(kCat, 5);
  fixture.restart_broker();
  CHECK(cat->finish() == 0);
  CHECK(has_records(system, "cat", 1));

  CHECK(system.brokerctl({"audit", "verify"}) == 0);
  const auto records = exported(system);
  CHECK(count(records, "tenant", "ann") >= 1);
  for (const auto& each : records) {
    if (each.at("record") != "usage_record") continue;
    CHECK(each.at("reason") == "MaxTokensReached");
    CHECK(each.at("generated_tokens") == (each.at("tenant") == "ann" ? 120 : 200));
    CHECK(each.at("prompt_tokens") > 0);
    CHECK(each.at("worker") == "w1");
    CHECK(each.at("lease_known") == true);
  }
  CHECK(system.brokerctl({"usage", "--tenant", "ann"}) == 0);
  const auto used_today = [&] {
    std::map<std::string, std::uint64_t> used;
    const auto tenants = system.view().tenants().value();
    for (const wire::TenantView& tenant : tenants)
      used[tenant.policy.tenant.value] = tenant.tokens_today;
    return used;
  };
  const auto used = used_today();
  for (const auto& [tenant, tokens] : used) CHECK(tokens <= tokens_of(records, tenant));
  fixture.restart_broker();
  CHECK(used_today() == used);
}

TEST_CASE("audit: a revocation is a record, and planted tampering ends the check with code 1") {
  Restartable fixture;
  System& system = fixture.system;
  const auto bob = system.start_streaming(kBob, 5);
  REQUIRE(system.brokerctl({"revoke", "--tenant", "bob", "--wait"}) == 0);
  CHECK(bob->finish() != 0);
  CHECK(has_records(system, "bob", 1));
  CHECK(count(exported(system), "record", "revocation") >= 1);
  const auto records = exported(system);
  const auto revoked = std::ranges::count_if(records, [](const auto& each) {
    return each.at("record") == "revocation" && each.at("reason") == "operator";
  });
  CHECK(revoked == 1);
  CHECK(system.brokerctl({"audit", "verify"}) == 0);

  journal::run_sql(fixture.state.file("journal.db"),
                   "UPDATE audit_record SET content = replace(content, 'bob', 'eve') WHERE "
                   "sequence = (SELECT max(sequence) FROM audit_record)");
  CHECK(system.brokerctl({"audit", "verify"}) == 1);
}

TEST_CASE("audit: a broker without a state directory says that it keeps no records") {
  System system({.start_worker = false});
  CHECK(system.brokerctl({"audit", "verify"}) == exit_code(Errc::BadRequest));
}

}  // namespace leasehold::testing
