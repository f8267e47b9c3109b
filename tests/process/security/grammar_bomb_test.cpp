// A tenant whose grammar takes more work than a worker has. The others and the worker do not
// notice.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

/// After each letter 2 000 copies of a rule that has 16 000 ways to be empty.
std::string bomb() {
  std::string text = "root ::= ([A-Za-z ]";
  for (int i = 0; i < 2000; ++i) text += " hollow";
  return text + ")*\nhollow ::= " + std::string(16'000, '|') + "\n";
}

}  // namespace

TEST_CASE("security: a grammar of 16 000 alternatives ends its own request only") {
  System system({.broker_arguments = {"--worker-timeout-ms", "4000"},
                 .worker_arguments = {"--slow-motion-us", "100"}});
  system.admit("ann");
  system.admit("greedy");
  const std::string file = system.directory() / "bomb.gbnf";
  std::ofstream(file) << bomb();
  const TenantSpec request{.tenant = "ann", .max_tokens = 100};
  const auto ann = system.start_streaming(request, 1);
  const pid_t worker = system.worker().pid();
  std::vector<std::unique_ptr<Tenant>> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(system.start_tenant(
        {.tenant = "greedy", .ignore_eos = false, .more = {"--grammar", file}}));
  }

  for (const auto& tenant : greedy) {
    CHECK(tenant->finish() != 0);
    CHECK_THAT(tenant->record().failed.value_or(""),
               Catch::Contains("BadRequest") && Catch::Contains("in rule 'hollow'"));
  }
  CHECK(ann->finish() == 0);
  CHECK(system.undisturbed(request) == ann->record().tokens);
  CHECK(system.worker_is_ready());
  CHECK(system.worker().pid() == worker);
  CHECK_THAT(system.worker_log(), !Catch::Contains("broker disconnected"));
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
