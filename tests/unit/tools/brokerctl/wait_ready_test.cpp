#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::WorkerView worker_view(std::string name, std::string state, std::string drain = "serving") {
  return {
      .worker = std::move(name), .pid = 7, .state = std::move(state), .drain = std::move(drain)};
}

wire::Json listed(const std::vector<wire::WorkerView>& workers) {
  return items<wire::WorkerView>(workers);
}

Result<void> wait_for(FakeBroker& broker, std::vector<std::string> words) {
  words.insert(words.end(), {"--wait", "ready", "--timeout-ms", "1000"});
  return run(parse_arguments(words).value(), broker.dependencies());
}

}  // namespace

TEST_CASE("workers --wait ready: waits for a broker, for its workers, and for their weights") {
  FakeBroker broker;
  const wire::WorkerView gone = worker_view("w1", "gone");
  broker.replies["worker.list"] = {std::unexpected(Error{Errc::FileNotFound, "no socket"}),
                                   std::unexpected(Error{Errc::ConnectionRefused, "no listener"}),
                                   listed({}),
                                   listed({gone}),
                                   listed({gone, worker_view("w1", "attached")}),
                                   listed({worker_view("w1", "ready", "out_of_service")}),
                                   listed({gone, worker_view("w1", "ready")})};
  REQUIRE(wait_for(broker, {"workers"}));
  CHECK(broker.waits.size() == 6);
  CHECK_THAT(broker.out.str(), Catch::Contains("w1") && Catch::Contains("serving"));
}

TEST_CASE("workers --wait ready: a name waits for that worker only") {
  const std::vector<std::string> words =
      GENERATE(std::vector<std::string>{"get", "worker", "w2"},
               std::vector<std::string>{"workers", "list", "w2"});
  FakeBroker broker;
  broker.replies["worker.list"] = {
      listed({worker_view("w1", "ready")}),
      listed({worker_view("w1", "attached"), worker_view("w2", "ready")})};
  REQUIRE(wait_for(broker, words));
  CHECK(broker.waits.size() == 1);
  CHECK_FALSE(broker.out.str().contains("w1"));
}

TEST_CASE("workers --wait ready: a drained worker counts only when it is named") {
  FakeBroker broker;
  const auto drained = worker_view("w1", "ready", "drained");
  broker.replies["worker.list"] = {listed({drained, worker_view("w2", "ready")})};
  REQUIRE(wait_for(broker, {"workers"}));
  const auto named = wait_for(broker, {"get", "worker", "w1", "w2"});
  REQUIRE_FALSE(named);
  CHECK_THAT(named.error().detail, Catch::Contains("brokerctl undrain --worker w1"));
}

TEST_CASE("workers --wait ready: a sleeping worker is ready, and a waking one will be") {
  FakeBroker broker;
  broker.replies["worker.list"] = {listed({worker_view("w1", "ready", "waking")}),
                                   listed({worker_view("w1", "ready", "asleep")})};
  REQUIRE(wait_for(broker, {"workers"}));
  CHECK(broker.waits.size() == 1);
}

TEST_CASE("workers --wait ready: TimedOut names each worker that does not serve, and why") {
  FakeBroker broker;
  auto without = worker_view("w2", "ready", "out_of_service");
  without.out_of_service = "blk.1 is corrupt";
  broker.replies["worker.list"] = {listed({worker_view("w1", "attached"), without})};
  const TimePoint begin = broker.clock.now();
  const auto done = wait_for(broker, {"get", "workers", "w1", "w2", "w3"});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::TimedOut);
  CHECK((broker.clock.now() == begin + std::chrono::seconds(1)));
  CHECK_THAT(done.error().detail, Catch::Contains("w1 is attached and loads its weights") &&
                                      Catch::Contains("w2 is out of service: blk.1 is corrupt") &&
                                      Catch::Contains("w3 is not listed"));
  CHECK(broker.out.str().empty());
}

TEST_CASE("workers --wait ready: other errors of the broker end the wait, and so does the user") {
  FakeBroker broker;
  broker.replies["worker.list"] = {std::unexpected(Error{Errc::PermissionDenied, "no"})};
  CHECK(wait_for(broker, {"workers"}).error().code == Errc::PermissionDenied);
  broker.replies["worker.list"] = {listed({})};
  broker.waits_left = 1;
  CHECK_THAT(wait_for(broker, {"workers"}).error().detail,
             Catch::Contains("interrupted; no worker is attached"));
}

TEST_CASE("workers --wait: only a known state, and --timeout-ms only with it") {
  using Words = std::vector<std::string>;
  CHECK_FALSE(parse_arguments(Words{"workers", "--wait", "gone"}));
  CHECK_FALSE(parse_arguments(Words{"workers", "--timeout-ms", "5"}));
  CHECK_FALSE(parse_arguments(Words{"tenants", "--wait", "ready"}));
}
