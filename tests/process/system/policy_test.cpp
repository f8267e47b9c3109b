/// Policies that operators change while requests run.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

/// Sends requests under one lease and notes, in the order of arrival, "+a" for the first token of
/// request a and "-a" for its end.
class Stream {
 public:
  Stream(boost::asio::io_context& io, const wire::LeaseAcquired& lease,
         std::vector<std::string>& order)
      : token_(lease.token), order_(&order) {
    peer_ =
        connect_peer(io, lease, [this](const std::string& method, const control::Payload& params) {
          note(method, params);
        });
  }

  void submit(const std::string& name, std::uint32_t tokens, std::int32_t priority = 0,
              const std::string& prompt = "Once upon a time") {
    const wire::RequestSubmit ask{.token = token_,
                                  .request_id = {name},
                                  .prompt = prompt,
                                  .max_emitted_tokens = tokens,
                                  .ignore_eos = true,
                                  .priority = priority};
    peer_->call("request.submit", {ask.to_json(), {}}, [](const auto& reply) { CHECK(reply); });
  }

 private:
  void note(const std::string& method, const control::Payload& params) {
    if (method == "request.completed") {
      const auto end = wire::RequestCompleted::from_json(params.body).value();
      CHECK(end.reason == "MaxTokensReached");
      order_->push_back("-" + end.request.value);
    } else if (const auto token = wire::TokenEmitted::from_json(params.body).value();
               token.position == 0) {
      order_->push_back("+" + token.request.value);
    }
  }

  std::string token_;
  std::vector<std::string>* order_;
  std::shared_ptr<control::Peer> peer_;
};

void run_until(boost::asio::io_context& io, const std::function<bool()>& holds) {
  while (!holds()) REQUIRE(io.run_one_for(std::chrono::seconds(60)) > 0);
}

/// The most requests that run at the same time, from the request `from` on.
int most_at_once(const std::vector<std::string>& order, const std::string& from) {
  int running = 0;
  int most = 0;
  bool counts = false;
  for (const std::string& each : order) {
    running += each.starts_with('+') ? 1 : -1;
    counts = counts || each == "+" + from;
    if (counts) most = std::max(most, running);
  }
  return most;
}

/// The worker of each committed step, ordered by time.
std::vector<std::string> steps_in_order(const System& system) {
  std::vector<std::pair<std::int64_t, std::string>> steps;
  for (const EventLogFile& log : system.event_logs()) {
    if (log.name == "broker") continue;
    std::ifstream file(log.path);
    for (std::string line; std::getline(file, line);) {
      const auto stamped = events::from_json(nlohmann::json::parse(line)).value();
      if (std::holds_alternative<events::BatchedDecodeStep>(stamped.event))
        steps.emplace_back(stamped.at.boottime_ns, log.name);
    }
  }
  std::ranges::sort(steps);
  std::vector<std::string> workers;
  for (const auto& [at, worker] : steps) workers.push_back(worker);
  return workers;
}

}  // namespace

TEST_CASE("policy: a lowered quota holds for a lease granted before, and ends nothing that runs") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}});
  system.admit("ann", {"--ttl-ms", "600000"});
  REQUIRE(system.brokerctl({"tenants", "admit", "ann", "--max-concurrent", "3"}) == 0);
  auto client = control::Client::connect(system.broker_socket()).value();
  const auto lease = acquire(client, "ann", "w1");
  boost::asio::io_context io;
  std::vector<std::string> order;
  Stream stream(io, lease, order);
  for (const char* name : {"a", "b", "c"}) stream.submit(name, 150);
  run_until(io, [&] { return order.size() == 3; });

  REQUIRE(system.brokerctl({"tenants", "admit", "ann", "--max-concurrent", "1"}) == 0);
  for (const char* name : {"d", "e", "f"}) stream.submit(name, 20);
  run_until(io, [&] { return order.size() == 12; });

  CHECK(most_at_once(order, "d") == 1);
  CHECK(order[3].starts_with('-'));  // a, b and c end before d begins
  CHECK(order[4].starts_with('-'));
  CHECK(order[5].starts_with('-'));
}

TEST_CASE("policy: of the requests that wait, those of higher priority run first") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}});
  system.admit("ann", {"--ttl-ms", "600000"});
  REQUIRE(system.brokerctl({"tenants", "admit", "ann", "--max-concurrent", "1"}) == 0);
  auto client = control::Client::connect(system.broker_socket()).value();
  boost::asio::io_context io;
  std::vector<std::string> order;
  Stream stream(io, acquire(client, "ann", "w1"), order);
  stream.submit("first", 300);
  run_until(io, [&] { return order.size() == 1; });
  for (const auto& [name, priority] : {std::pair{"low", -1}, {"usual", 0}, {"high", 10}})
    stream.submit(name, 5, priority);
  run_until(io, [&] { return order.size() == 8; });

  CHECK(order == std::vector<std::string>{"+first", "-first", "+high", "-high", "+usual", "-usual",
                                          "+low", "-low"});
}

TEST_CASE("policy: a limit of one holds across two workers, and neither starves") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}});
  system.start_ready_worker("w2");
  system.admit("ann", {"--ttl-ms", "600000"});
  REQUIRE(system.brokerctl({"tenants", "admit", "ann", "--max-concurrent", "1"}) == 0);
  auto client = control::Client::connect(system.broker_socket()).value();
  const auto first = acquire(client, "ann", "w1");
  const auto second = acquire(client, "ann", "w2");
  boost::asio::io_context io;
  std::vector<std::string> order;
  Stream one(io, first, order);
  Stream two(io, second, order);
  for (const char* name : {"a", "b", "c"}) one.submit(name, 60);
  for (const char* name : {"x", "y", "z"}) two.submit(name, 60);
  run_until(io, [&] { return order.size() == 12; });

  // Steps of both workers in the order of their commits: each worker finishes the requests that it
  // admitted before the other begins one.
  const std::vector<std::string> steps = steps_in_order(system);
  CHECK(steps.size() >= 6 * 60);
  int runs = 1;
  for (std::size_t i = 1; i < steps.size(); ++i) runs += steps[i] != steps[i - 1] ? 1 : 0;
  CHECK(runs <= 6);
  CHECK(runs >= 2);
}

TEST_CASE("policy: a removed tenant is unknown; its live leases are revoked only when asked") {
  System system({.tenants = {"ann"}});
  const auto ann = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 5);
  const LeaseId lease = ann->record().leases.front();

  CHECK(system.brokerctl({"tenants", "remove", "ann"}) == exit_code(Errc::IllegalTransition));
  CHECK(system.lease(lease).state == LeaseState::Live);
  CHECK(system.brokerctl({"tenants", "remove", "ann", "--revoke"}) == 0);

  CHECK(ann->finish() == exit_code(Errc::LeaseRevoked));
  CHECK(system.lease(lease).reason == RevokeReason::PolicyChanged);
  const auto again = system.start_tenant({.tenant = "ann", .max_tokens = 4});
  CHECK(again->finish() == exit_code(Errc::UnknownTenant));
}

TEST_CASE("policy: the list of tenants says what each was served and what is cached of it") {
  System system;
  system.admit("ann", {"--ttl-ms", "600000"});
  auto client = control::Client::connect(system.broker_socket()).value();
  boost::asio::io_context io;
  std::vector<std::string> order;
  Stream ann(io, acquire(client, "ann", "w1"), order);
  const std::string prompt =
      "Once upon a time there was a little girl who lived in a small house near a big forest with "
      "her mother, her father and a cat that liked to sleep in the sun";
  ann.submit("cold", 60, 0, prompt);
  run_until(io, [&] { return order == std::vector<std::string>{"+cold", "-cold"}; });
  ann.submit("warm", 60, 0, prompt);
  run_until(io, [&] { return order.size() == 4; });

  const auto served = [&] {
    const auto reply = client.call("tenant.list", {.body = wire::TenantList{}.to_json()}).value();
    return wire::TenantView::from_json(reply.body.at("items").at(0)).value().served;
  };
  REQUIRE(eventually([&] { return served().tokens > 100; }));
  CHECK(served().tenant == TenantId{"ann"});
  CHECK(served().hit_blocks > 0);
  CHECK(served().hit_tokens == 16 * served().hit_blocks);
  CHECK(served().cross_tenant_hits == 0);
  CHECK(served().cached_blocks > 0);
  REQUIRE(system.brokerctl({"revoke", "--tenant", "ann"}) == 0);
  CHECK(eventually([&] { return served().cached_blocks == 0; }));
}

}  // namespace leasehold::testing
