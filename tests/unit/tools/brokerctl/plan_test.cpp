// `brokerctl plan`: what it prints.
#include "tools/brokerctl/plan.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/test_paths.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

PlanOptions options_of(std::uint32_t tenants) {
  return {.request = {.model = bundled_model_path(), .tenants = tenants, .context = 256}};
}

}  // namespace

TEST_CASE("plan: what does not fit has exit code 1, and what fits says what to set") {
  PlanOptions options = options_of(4);
  const std::uint64_t needed = plan_capacity(options.request, 0).value().needed_bytes();
  options.memory_bytes = needed;
  const PrintText fits = plan(options).value();
  CHECK(fits.exit_code == 0);
  CHECK(fits.text.find("capacity = \"") != std::string::npos);
  CHECK(nlohmann::json::parse(fits.json)["needed_bytes"] == needed);
  options.memory_bytes = needed - 1;
  const PrintText short_of_memory = plan(options).value();
  CHECK(short_of_memory.exit_code == 1);
  CHECK(short_of_memory.text.find("does not fit: 1 B") != std::string::npos);
}

TEST_CASE("plan: one tenant is not several") {
  CHECK(plan(options_of(1)).value().text.contains("1 tenant\n"));
  CHECK(plan(options_of(2)).value().text.contains("2 tenants\n"));
}

TEST_CASE("plan: a draft model is a row of its own and part of the weights' capacity") {
  PlanOptions options = options_of(1);
  options.memory_bytes = 1ull << 30;
  const PrintText without = plan(options).value();
  CHECK_FALSE(without.text.contains("draft"));
  options.request.draft_model = bundled_model_path();
  options.request.max_batch_size = 7;
  const PrintText with = plan(options).value();
  CHECK(with.text.contains("keys, values and states of 7 texts"));
  CHECK(with.text.contains("draft-context = 2048, max-batch-size = 7"));
  const auto json = nlohmann::json::parse(with.json);
  CHECK(json["draft_weights_bytes"] == json["weights_bytes"]);
  CHECK(json["needed_bytes"] > nlohmann::json::parse(without.json)["needed_bytes"]);
}
