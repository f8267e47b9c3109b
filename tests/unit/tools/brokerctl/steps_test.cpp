#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::Json step_view(std::uint64_t step, std::uint64_t attachment = 1) {
  return wire::StepView{.worker = "w" + std::to_string(attachment),
                        .attachment = {attachment},
                        .step = {.step = step,
                                 .duration_us = 812,
                                 .n_seqs = 2,
                                 .prefill_tokens = 9,
                                 .decode_tokens = 1,
                                 .running = 2,
                                 .tenants = {{.tenant = {"alice"}, .prefill_tokens = 9},
                                             {.tenant = {"bob"}, .decode_tokens = 1}},
                                 .other_tenants = 3}}
      .to_json();
}

wire::Json step_items(std::vector<wire::Json> views) {
  return {{"items", std::move(views)}};
}

std::vector<std::string> printed_lines(const FakeBroker& broker) {
  std::istringstream text(broker.out.str());
  std::vector<std::string> found;
  for (std::string line; std::getline(text, line);) found.push_back(line);
  return found;
}

struct SteppingBroker : FakeBroker {
  SteppingBroker() { replies["step.watch"] = {wire::Json::object()}; }
  Result<void> watch(const WatchSteps& steps, Output output) {
    return run({.output = output, .verb = steps}, dependencies());
  }
};

}  // namespace

TEST_CASE("brokerctl watch --steps: it asks once, polls at the interval and shows each step once") {
  SteppingBroker broker;
  broker.waits_left = 3;
  broker.replies["step.list"] = {step_items({}), step_items({step_view(4)}),
                                 step_items({step_view(4), step_view(4, 2)}),
                                 step_items({step_view(9), step_view(4, 2)})};

  REQUIRE(broker.watch({.message = {.interval_ms = 250}}, Output::Json));

  CHECK(broker.calls[0].first == "step.watch");
  CHECK(broker.calls[0].second == wire::Json{{"interval_ms", 250}});
  CHECK(broker.waits == std::vector<Duration>(4, std::chrono::milliseconds(250)));
  const auto shown = printed_lines(broker);
  REQUIRE(shown.size() == 3);
  CHECK(wire::Json::parse(shown[0]) == step_view(4));
  CHECK(wire::Json::parse(shown[1]) == step_view(4, 2));
  CHECK(wire::Json::parse(shown[2]) == step_view(9));
}

TEST_CASE("brokerctl watch --steps: people get titles and one line per step with its worker") {
  SteppingBroker broker;
  broker.replies["step.list"] = {step_items({step_view(4, 7)})};

  REQUIRE(broker.watch({.limit = 1}, GENERATE(Output::Table, Output::Wide)));

  const auto shown = printed_lines(broker);
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].starts_with("WORKER "));
  CHECK(shown[1].starts_with("w7 "));
  CHECK(shown[1].ends_with("alice 9+0, bob 0+1, 3 more"));
  const auto ends_at = [&](const std::string& title) {
    return shown[1].at(shown[0].find(title) + title.size() - 1);
  };
  CHECK(ends_at(" STEP") == '4');
  CHECK(ends_at("TIME_US") == '2');
  CHECK(ends_at("DECODE") == '1');
}

TEST_CASE("brokerctl watch --steps: --limit ends it") {
  SteppingBroker broker;
  broker.replies["step.list"] = {step_items({step_view(1), step_view(1, 2), step_view(1, 3)})};

  REQUIRE(broker.watch({.limit = 2}, Output::Json));

  CHECK(printed_lines(broker).size() == 2);
  CHECK(broker.waits.empty());
}
