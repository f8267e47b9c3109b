#include "tools/brokerctl/wait/wait.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::WorkerView old_worker(std::string drain, std::uint32_t moved, std::uint32_t ended,
                            std::optional<std::string> by = "w2") {
  return {.worker = "w1",
          .pid = 7,
          .state = "ready",
          .drain = std::move(drain),
          .replaced_by = std::move(by),
          .leases_moved = moved,
          .leases_ended = ended};
}

Result<void> replace_and_wait(FakeBroker& broker) {
  broker.replies["worker.replace"] = {
      wire::LeasesTouched{.leases = {{1, 1}, {2, 1}, {3, 1}}}.to_json()};
  return run({.verb = ReplaceWorker{.message = {.worker = "w1", .by = "w2"}}},
             broker.dependencies());
}

}  // namespace

TEST_CASE("worker replace: waits until no lease is left, with progress, and says what became") {
  FakeBroker broker;
  const wire::WorkerView gone{.worker = "w1", .pid = 6, .state = "gone"};
  broker.replies["worker.list"] = {items<wire::WorkerView>({gone, old_worker("replacing", 0, 0)}),
                                   items<wire::WorkerView>({gone, old_worker("replacing", 1, 1)}),
                                   items<wire::WorkerView>({gone, old_worker("replaced", 2, 1)})};
  REQUIRE(replace_and_wait(broker));
  using Progress = std::pair<std::size_t, std::size_t>;
  CHECK(broker.progress == std::vector<Progress>{{0, 3}, {2, 3}, {3, 3}});
  CHECK_THAT(broker.out.str(), Catch::Contains("MOVED") && Catch::Contains("process 7"));
}

TEST_CASE("worker replace: the end of the replacement is an error that says who serves") {
  FakeBroker broker;
  broker.replies["worker.list"] = {
      items<wire::WorkerView>({old_worker("replacing", 1, 0)}),
      items<wire::WorkerView>({old_worker("serving", 0, 0, std::nullopt)})};
  const auto done = replace_and_wait(broker);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::IllegalTransition);
  CHECK_THAT(done.error().detail, Catch::Contains("w1 is not replaced by worker w2"));
}

TEST_CASE("worker replace: leases that do not end are TimedOut after grace and timeout") {
  FakeBroker broker;
  broker.replies["worker.list"] = {items<wire::WorkerView>({old_worker("replacing", 1, 0)})};
  const TimePoint begin = broker.clock.now();
  const auto done = replace_and_wait(broker);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK((broker.clock.now() == begin + std::chrono::minutes(1)));
}

TEST_CASE("worker replace: an interruption ends the wait, not the replacement") {
  FakeBroker broker;
  broker.waits_left = 2;
  broker.replies["worker.list"] = {items<wire::WorkerView>({old_worker("replacing", 1, 0)})};
  const auto done = replace_and_wait(broker);
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().detail, Catch::Contains("still being replaced"));
}

TEST_CASE("worker replace: the command line names both workers, under either noun") {
  const std::string noun = GENERATE("worker", "workers");
  const std::vector<std::string> words{noun,         "replace", "w1", "w2", "--any-arithmetic",
                                       "--grace-ms", "500"};
  const auto parsed = parse_arguments(words);
  REQUIRE(parsed);
  const auto replace = std::get<ReplaceWorker>(parsed->verb);
  CHECK(replace.message.worker == "w1");
  CHECK(replace.message.by == "w2");
  CHECK(replace.message.any_arithmetic);
  CHECK(replace.message.grace_ms == 500);
  CHECK_FALSE(replace.message.request_id.value.empty());
  CHECK_FALSE(parse_arguments(std::vector<std::string>{noun, "replace", "w1"}));
}
