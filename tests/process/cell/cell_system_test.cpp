// A cell of real hosts: etcd, and a broker, a worker and an agent on each host.
#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <sstream>

#include "ipc/control/messages/cell/agent_calls.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/control/transport/client.hpp"
#include "ipc/control/transport/peer.hpp"
#include "tests/process/cell/cell_rig.hpp"
#include "tools/cell/decide/records.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;

namespace leasehold::testing {
namespace {

/// The calls for keys that an etcd has got, by its own count.
double key_calls(const EtcdProcess& etcd) {
  HttpClient client(etcd.address().substr(std::string("unix:").size()));
  client.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::istringstream page(client.reply().body);
  double calls = 0;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("grpc_server_started_total") && line.contains("etcdserverpb.KV"))
      calls += std::stod(line.substr(line.rfind(' ')));
  return calls;
}

/// Notifies an agent this many times that the tenant's part is used up, and waits until it has read
/// all.
void want_often(const std::string& agent, const std::string& tenant, int times) {
  boost::asio::io_context io;
  const auto peer = control::Peer::create(
      control::connect_to(io, agent).value(),
      {.on_call = [](const std::string&, control::Payload, control::Responder) {},
       .on_notification = [](const std::string&, control::Payload) {},
       .on_closed = [](const Error&) {}});
  peer->start();
  for (int i = 0; i < times; ++i)
    peer->notify(std::string(wire::PartWant::kMethod),
                 {.body = wire::PartWant{.tenant = {tenant}}.to_json()});
  const wire::KeyResolve last{.hash = hash_of_api_key(mint_api_key())};
  peer->call(
      std::string(wire::KeyResolve::kMethod), {.body = last.to_json()},
      [&](const Result<control::Payload>&) { peer->close(); }, EtcdProcess::kLong);
  io.run();
}

HostRecord record_of(CellRig& rig, const std::string& host) {
  const auto found = rig.etcd.get("/leasehold/c/hosts/" + host);
  return found ? read_host(found->key, found->value).value() : HostRecord();
}

}  // namespace

TEST_CASE(
    "cell: a key that one command creates works on every host, until one command revokes it") {
  if (!has_etcd()) return;
  CellRig rig;
  CellHost a(rig, "a"), b(rig, "b");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  for (CellHost* host : {&a, &b}) {
    INFO(host->agent().log());
    CHECK(host->answers(key, 200));
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
  REQUIRE(host.answers(key, 200));

  host.agent().kill();
  host.start_agent();
  CHECK(host.agent().logs("membership resumed"));
  CHECK(host.answers(key, 200));

  rig.etcd.child().signal(SIGSTOP).value();
  HttpReply unknown;  // etcd may answer one more call before it stops
  CHECK(eventually([&] { return (unknown = host.ask(mint_api_key())).status == 503; }));
  CHECK_THAT(unknown.head, Contains("Retry-After"));
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
  REQUIRE(host.answers(key, 200));
  host.http().system().broker().signal(SIGSTOP).value();
  SECTION("and an agent that is restarted then does not beat for ever") {
    host.agent().kill();
    host.launch_agent();
    CHECK(host.agent().logs("membership resumed"));
  }
  SECTION("and its agent runs on") {}
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
  REQUIRE(a.answers(key, 200));
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

TEST_CASE("cell: a request of a known tenant makes no call to etcd, and a refused one makes few") {
  if (!has_etcd()) return;
  CellRig rig(CellConfig::kMaxTtlMs);
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.answers(key, 200));
  const double before = key_calls(rig.etcd);
  REQUIRE(before > 0);
  for (int i = 0; i < 10; ++i) REQUIRE(host.ask(key).status == 200);
  CHECK(key_calls(rig.etcd) == before);

  const Printed few = rig.brokerctl({"tenants", "admit", "bob", "--tokens-per-minute", "600"});
  REQUIRE(few.exit_code == 0);
  const std::string other = rig.create_key("bob");
  REQUIRE(host.answers(other, 429));
  const double refused = key_calls(rig.etcd);
  CHECK(eventually([&] { return host.ask(other).status == 429 && key_calls(rig.etcd) > refused; }));
  const double again = key_calls(rig.etcd);
  want_often(rig.file("a.sock"), "bob", 1'000);
  CHECK(key_calls(rig.etcd) - again < 200);
}

TEST_CASE("cell: a host announces what it serves, drains, and serves again") {
  if (!has_etcd()) return;
  CellRig rig(2'000);
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.answers(key, 200));
  CHECK(eventually([&] { return !record_of(rig, "a").models.empty(); }));
  const HostRecord record = record_of(rig, "a");
  CHECK(record.doors == std::vector<std::string>{host.door()});
  CHECK(record.models.front().name == "Leasehold Stories");
  CHECK(record.free_blocks > 0);
  CHECK_FALSE(record.is_draining);

  REQUIRE(rig.brokerctl({"drain", "a"}).exit_code == 0);
  CHECK(host.answers(key, 503));
  CHECK(eventually(
      [&] { return record_of(rig, "a").is_draining && record_of(rig, "a").models.empty(); }));
  CHECK_THAT(rig.brokerctl({"hosts"}).text, Contains("draining"));

  host.agent().kill();
  REQUIRE(rig.brokerctl({"undrain", "a"}).exit_code == 0);
  host.start_agent();
  CHECK(host.answers(key, 200));
  CHECK(eventually(
      [&] { return !record_of(rig, "a").is_draining && !record_of(rig, "a").models.empty(); }));
}

TEST_CASE("cell: an agent that dies at any of its fault points leaves a cell in order") {
  if (!has_etcd()) return;
  CellRig rig(2'000);
  CellHost host(rig, "a");
  int requests = 4;
  for (const char* fault :
       {"cell.beat.sent:kill:2", "cell.beat.arrived:kill", "cell.keys.checked:kill",
        "cell.part.written:kill", "cell.part.admitted:kill"}) {
    INFO(fault);
    host.agent().kill();
    host.launch_agent(fault);
    rig.admit("ann", std::to_string(++requests));  // so that it has a part to change
    const std::string revoked = rig.create_key("ann");
    const bool has_died = eventually([&] {
      (void)host.ask(revoked);
      if (std::string_view(fault).contains("keys.checked") && host.ask(revoked).status == 200)
        (void)rig.brokerctl({"keys", "revoke", api_key_id(hash_of_api_key(revoked)).value});
      return host.agent().child().status().has_value();
    });
    REQUIRE(has_died);
    host.launch_agent();
    const std::string key = rig.create_key("ann");
    CHECK(host.answers(key, 200));
    (void)rig.brokerctl({"keys", "revoke", api_key_id(hash_of_api_key(revoked)).value, "--wait"});
    CHECK(host.answers(revoked, 401));
    const Printed checked = rig.brokerctl({"doctor"});
    INFO(checked.text);
    CHECK(checked.exit_code == 0);
  }
}

TEST_CASE("cell: a change of a key's expiry and limits reaches the hosts that serve it") {
  if (!has_etcd()) return;
  CellRig rig;
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.answers(key, 200));
  const std::string id = rig.brokerctl({"keys", "-o", "name"}).text.substr(0, 16);
  const auto update = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"keys", "update", id, "--wait"});
    const Printed updated = rig.brokerctl(std::move(options));
    INFO(updated.text);
    CHECK(updated.exit_code == 0);
  };
  update({"--expires-in", "1s", "--max-concurrent", "2"});
  CHECK(host.answers(key, 401));
  update({"--no-expiry"});
  CHECK(host.answers(key, 200));
  const Json listed = rig.brokerctl({"keys", "list", "-o", "json"}).json().at("items").at(0);
  CHECK(listed.at("max_concurrent") == 2);
  CHECK(!listed.contains("expires_unix_ms"));
}

}  // namespace leasehold::testing
