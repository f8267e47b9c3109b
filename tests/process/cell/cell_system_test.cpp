// A cell of real hosts: etcd, and a broker, a worker and an agent on each host.
#include <signal.h>

#include <catch2/catch.hpp>

#include "ipc/control/messages/cell/key_resolve.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/process/cell/cell_rig.hpp"

using namespace leasehold;
using Catch::Contains;

namespace leasehold::testing {

TEST_CASE(
    "cell: a key that one command creates works on every host, until one command revokes it") {
  if (!has_etcd()) return;
  CellRig rig;
  CellHost a(rig, "a"), b(rig, "b");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  for (CellHost* host : {&a, &b}) {
    const HttpReply reply = host->ask(key);
    INFO(reply.body << host->agent().log());
    CHECK(reply.status == 200);
  }
  const Json ledger = rig.brokerctl({"ledger", "ann", "-o", "json"}).json();
  CHECK(ledger.at("parts").size() == 2);
  CHECK(a.ask(mint_api_key()).status == 401);

  const Printed revoked = rig.revoke_key();
  INFO(revoked.text);
  CHECK(revoked.exit_code == 0);
  for (CellHost* host : {&a, &b}) CHECK(host->ask(key).status == 401);
  CHECK(rig.brokerctl({"doctor"}).exit_code == 0);
}

TEST_CASE("cell: a host goes on after its agent and etcd have stopped and come back") {
  if (!has_etcd()) return;
  CellRig rig(2'000);
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.ask(key).status == 200);

  host.agent().kill();
  host.start_agent();
  CHECK(host.agent().logs("membership resumed"));
  CHECK(host.answers(key, 200));

  rig.etcd.child().signal(SIGSTOP).value();
  CHECK(host.agent().logs("ceiling has passed"));
  CHECK(host.answers(key, 503));
  rig.etcd.child().signal(SIGCONT).value();
  CHECK(host.answers(key, 200));
  CHECK(rig.brokerctl({"doctor"}).exit_code == 0);
}

TEST_CASE("cell: an agent beats on while it is asked for many keys that do not exist") {
  if (!has_etcd()) return;
  CellRig rig(2'000);
  CellHost host(rig, "a");
  auto asker = control::Client::connect(rig.file("a.sock")).value();
  constexpr std::size_t kAtOnce = 8 * etcd::Client::kMaxCalls;
  for (int round = 0; round < 6; ++round) {
    std::vector<control::Payload> calls;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const wire::KeyResolve asked{.hash = hash_of_api_key(mint_api_key())};
      calls.push_back({.body = asked.to_json(), .fds = {}});
    }
    const auto replies = asker.call_all(std::string(wire::KeyResolve::kMethod), std::move(calls));
    for (const auto& reply : replies) REQUIRE(reply.error().code == Errc::BadToken);
  }
  CHECK_FALSE(host.agent().log().contains("no beat arrives"));
}

TEST_CASE("cell: a host whose broker is frozen is expired, although its agent runs") {
  if (!has_etcd()) return;
  CellRig rig(2'000);
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.ask(key).status == 200);
  host.http().system().broker().signal(SIGSTOP).value();
  const Printed revoked = rig.revoke_key();
  INFO(revoked.text << host.agent().log());
  CHECK(revoked.exit_code == 0);
  CHECK_THAT(revoked.text, Contains("expired"));
  host.http().system().broker().signal(SIGCONT).value();
  CHECK(host.answers(key, 401));
}

TEST_CASE("cell: limits are divided among the hosts that have requests, and returned when idle") {
  if (!has_etcd()) return;
  CellRig rig;
  CellHost a(rig, "a"), b(rig, "b");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(a.ask(key).status == 200);
  const auto parts = [&] {
    return rig.brokerctl({"ledger", "ann", "-o", "json"}).json().at("parts");
  };
  CHECK(parts().at(0).at("share").at("concurrent") == 4);  // alone it has all
  CHECK(b.answers(key, 200));
  REQUIRE(parts().size() == 2);
  const Printed removed = rig.brokerctl({"tenants", "remove", "ann", "--wait"});
  INFO(removed.text);
  CHECK(removed.exit_code == 0);
  CHECK(a.ask(key).status != 200);
  CHECK(eventually([&] { return parts().empty(); }));
}

}  // namespace leasehold::testing
