// The test plays the agent of a cell beside a real broker.
#include <signal.h>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

const CellName kCell{"c1"};
constexpr Duration kFar = std::chrono::hours(1);

/// The agent's connection, and the tenant "c" of its cell.
struct Agent {
  explicit Agent(const BrokerProcess& broker) : client(broker.connect()) {}

  template <class Message>
  Result<control::Payload> send(const Message& message) {
    return client.call(std::string(Message::kMethod), {.body = message.to_json()});
  }
  wire::CellAttached attach() {
    return wire::CellAttached::from_json(send(wire::CellAttach{.cell = kCell}).value().body)
        .value();
  }
  void move_ceiling(Duration from_now, std::uint64_t incarnation = 1) {
    ceiling = SystemClock().now() + from_now;
    send(wire::CellCeiling{.incarnation = incarnation, .ceiling_boottime_ns = ceiling.boottime_ns})
        .value();
  }
  Result<wire::CellPart> admit(std::uint64_t revision, std::uint32_t concurrent = 4) {
    const wire::CellAdmit admit{
        .policy = {.tenant = {"c"}, .max_concurrent = concurrent, .cell = kCell},
        .incarnation = 1,
        .revision = revision};
    return wire::CellPart::from_json(TRY(send(admit)).body);
  }
  wire::TenantView view() {
    const auto listed = send(wire::TenantList{.tenant = TenantId{"c"}}).value();
    return wire::TenantView::from_json(listed.body.at("items").at(0)).value();
  }
  void join() {
    attach();
    move_ceiling(kFar);
    admit(1).value();
  }

  control::Client client;
  TimePoint ceiling;
};

void await(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();  // ctest's timeout applies
}

}  // namespace

TEST_CASE_METHOD(BrokerWithWorker,
                 "broker: at the ceiling the leases of a cell's tenant end, and no others") {
  Agent agent(broker);
  agent.join();
  const LeaseId of_cell = broker.acquire(client, "c").value().lease;
  const LeaseId local = broker.acquire(client, "a").value().lease;
  agent.move_ceiling(std::chrono::milliseconds(50));
  CHECK(worker.deadline_of(of_cell) <= agent.ceiling);
  CHECK(worker.deadline_of(local) > agent.ceiling);
  await([&] { return worker.word_of(of_cell).state() != LeaseState::Live; });
  CHECK(SystemClock().now() >= agent.ceiling);
  CHECK(broker.view(client, of_cell).reason == RevokeReason::CellLost);
  CHECK(worker.word_of(local).state() == LeaseState::Live);
  CHECK(broker.acquire(client, "c").error().code == Errc::CellLost);
  agent.move_ceiling(kFar);
  CHECK(broker.acquire(client, "c"));
}

TEST_CASE_METHOD(BrokerWithWorker,
                 "broker: a stopped broker and its workers have the ceiling in shared memory") {
  Agent agent(broker);
  agent.join();
  const LeaseId lease = broker.acquire(client, "c").value().lease;
  agent.move_ceiling(std::chrono::milliseconds(50));
  broker.signal(SIGSTOP);
  await([&] { return SystemClock().now() >= agent.ceiling; });
  CHECK(worker.deadline_of(lease) <= agent.ceiling);
  broker.signal(SIGCONT);
  await([&] { return worker.word_of(lease).state() != LeaseState::Live; });
  CHECK(worker.word_of(lease).reason() == RevokeReason::CellLost);
}

TEST_CASE_METHOD(BrokerWithWorker, "broker: only the agent that attached last changes a cell") {
  Agent earlier(broker);
  earlier.join();
  Agent agent(broker);
  CHECK(agent.attach().incarnation == 1);
  CHECK(earlier.admit(9, 64).error().code == Errc::PermissionDenied);
  CHECK(agent.admit(2, 3).value().revision == 2);
  CHECK(agent.admit(1, 64).value().revision == 2);
  CHECK(agent.view().policy.max_concurrent == 3);

  const wire::TenantAdmit change{
      .tenant = {"c"}, .max_concurrent = 64, .request_id = next_request_id()};
  const auto refused = client.call("tenant.admit", {.body = change.to_json()});
  CHECK(refused.error().code == Errc::PermissionDenied);
  CHECK_THAT(refused.error().detail, Catch::Contains("brokerctl cell"));
}

TEST_CASE("broker: a restarted broker keeps parts, and waits for the ceiling") {
  const auto state = TemporaryDirectory::create("cell").value();
  BrokerProcess broker({"--state-dir", state.path()});
  {
    Agent agent(broker);
    agent.join();
    agent.admit(7, 3).value();
  }
  broker.kill_and_restart();
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  CHECK(broker.acquire(client, "c").error().code == Errc::CellLost);
  Agent agent(broker);
  CHECK(agent.attach().ceiling_boottime_ns == 0);
  CHECK(agent.view().part->revision == 7);
  CHECK(agent.view().policy.max_concurrent == 3);
  agent.move_ceiling(kFar);
  CHECK(broker.acquire(client, "c"));
  const auto status = broker.status(client);
  REQUIRE(status.cell);
  CHECK(status.cell->has_agent);
  CHECK(status.cell->tenants == 1);
}

TEST_CASE_METHOD(BrokerWithWorker, "broker: a host that joins again has no parts") {
  Agent agent(broker);
  agent.join();
  const LeaseId lease = broker.acquire(client, "c").value().lease;
  agent.move_ceiling(kFar, 2);
  CHECK(worker.word_of(lease).reason() == RevokeReason::CellLost);
  CHECK(agent.view().policy.max_concurrent == 0);
  CHECK(broker.acquire(client, "c").error().code == Errc::QuotaConcurrent);
}
