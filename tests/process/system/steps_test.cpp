/// Operators watch the steps of a running worker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ipc/control/messages.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

/// The steps that `brokerctl -o json watch --steps` has printed.
std::vector<wire::StepView> printed_steps(const System& system) {
  std::ifstream log(system.directory() / "brokerctl.log");
  std::vector<wire::StepView> steps;
  for (std::string line; std::getline(log, line) && !log.eof();) {
    if (!line.starts_with('{')) continue;  // of another brokerctl
    steps.push_back(wire::StepView::from_json(wire::Json::parse(line)).value());
  }
  return steps;
}

bool has_decoded_for(const wire::StepView& view, const std::string& tenant) {
  return std::ranges::any_of(view.step.tenants, [&](const wire::TenantTokens& each) {
    return each.tenant.value == tenant && each.decode_tokens == 1;
  });
}

}  // namespace

TEST_CASE("brokerctl watch --steps: two tenants decode in one step, and both tokens are seen") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}});
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  Child watch = system.start_brokerctl({"-o", "json", "watch", "--steps", "--interval-ms", "10"});

  // A watch that starts late misses the first requests, so they repeat.
  std::optional<wire::StepView> both;
  for (int round = 0; round < 10 && !both; ++round) {
    const auto ann = system.start_tenant({.tenant = "ann", .max_tokens = 200});
    const auto bob = system.start_tenant({.tenant = "bob", .max_tokens = 200});
    CHECK(ann->finish() == 0);
    CHECK(bob->finish() == 0);
    for (const wire::StepView& view : printed_steps(system)) {
      if (has_decoded_for(view, "ann") && has_decoded_for(view, "bob") && !both) both = view;
    }
  }

  REQUIRE(both);
  CHECK(both->worker == "w1");
  CHECK(both->step.n_seqs == 2);
  CHECK(both->step.decode_tokens == 2);
  CHECK(both->step.prefill_tokens == 0);
  CHECK(both->step.running == 2);
  CHECK(both->step.waiting == 0);
  CHECK(both->step.duration_us > 0);
  CHECK(both->step.other_tenants == 0);
  const auto steps = printed_steps(system);
  CHECK(std::ranges::is_sorted(steps, std::ranges::less{},
                               [](const auto& view) { return view.step.step; }));
  const auto recorded = system.view().events().value();
  CHECK(std::ranges::none_of(recorded, [](const auto& stamped) {
    return std::holds_alternative<events::BatchedDecodeStep>(stamped.event);
  }));
  REQUIRE(watch.signal(SIGINT));
  CHECK(exit_status_of(watch) == 0);
}

}  // namespace leasehold::testing
