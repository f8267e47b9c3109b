// leasehold-cell and the client of etcd against a real etcd.
#include <signal.h>

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/process/cell/etcd_process.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using Catch::Contains;

namespace leasehold::testing {
namespace {

/// Puts and deletes a key after the listing, and closes the client when it sees both.
struct FirstChange : WatchReceiver {
  explicit FirstChange(EtcdProcess& of) : etcd(of) {}
  void on_listing(std::vector<KeyValue> entries, Revision) override {
    for (const KeyValue& entry : entries) seen += "=" + entry.key + " ";
    etcd.change_beside(Put{"w/b", "1"});
    etcd.change_beside(Delete{KeyRange::one("w/b")});
  }
  void on_events(std::vector<WatchEvent> events) override {
    for (const WatchEvent& event : events)
      seen += (event.is_deleted ? "-" : "+") + event.entry.key + " ";
    if (seen.contains("-w/b")) etcd.client().close();
  }
  void on_interrupted(const Error& error) override { seen += error.detail + " "; }

  EtcdProcess& etcd;
  std::string seen;
};

Child start_broker(const std::string& socket, const std::string& log) {
  return Child::start(
             {.argv = {program_path("leasehold-broker"), "--socket", socket, "--capacity", "16MiB"},
              .log_path = log})
      .value();
}

}  // namespace

TEST_CASE("cell: an agent joins, is restarted, loses its state, its key and its etcd") {
  if (!has_etcd()) return;
  EtcdProcess etcd;
  const auto directory = TemporaryDirectory::create("cell").value();
  const std::string state = directory.file("h1");
  etcd.put("/leasehold/c/config", R"({"version":1,"ttl_ms":1000,"slack_ms":100})");
  const auto incarnation = [&] { return etcd.get("/leasehold/c/hosts/h1")->created; };

  const std::string broker = directory.file("broker.sock");
  Child serving = start_broker(broker, directory.file("broker.log"));

  AgentProcess first(etcd, {.state = state, .broker = broker});
  REQUIRE(first.logs("host joined"));
  const Revision joined = incarnation();
  {
    AgentProcess other(etcd, {.state = directory.file("other"), .broker = broker});
    CHECK(other.logs("name in use"));
  }
  AgentProcess same(etcd, {.state = state + "/", .broker = broker});
  CHECK(same.logs("another agent uses the state directory"));

  first.kill();
  AgentProcess second(etcd, {.state = state, .broker = broker});
  CHECK(second.logs("membership resumed"));
  etcd.put("/leasehold/c/wanted/h1", R"({"drain":true})");
  CHECK(second.logs("host drains"));
  CHECK(incarnation() == joined);

  second.kill();
  std::filesystem::remove_all(state);
  AgentProcess third(etcd, {.state = state, .broker = broker});
  CHECK(third.logs("silent host expired"));
  CHECK(third.logs("host joined"));
  CHECK(incarnation() > joined);
  etcd.erase("/leasehold/c/hosts/h1");
  CHECK(third.logs("host fenced"));
  REQUIRE(eventually([&] { return etcd.get("/leasehold/c/hosts/h1").has_value(); }));
  // The agent is a member when it has read the reply, which follows the key.
  REQUIRE(
      third.logs(fmt::format("host joined cell=c host=h1 incarnation={} ", incarnation().value)));

  etcd.child().signal(SIGSTOP).value();
  CHECK(third.logs("no beat arrives code=TimedOut"));
  CHECK(third.logs("ceiling has passed"));
  etcd.child().signal(SIGCONT).value();
  CHECK(third.logs("ceiling renewed"));
  CHECK(third.stop() == 0);
}

TEST_CASE("cell: without a TTL a host may run for ever; with one, it beats only with a broker") {
  if (!has_etcd()) return;
  EtcdProcess etcd;
  const auto directory = TemporaryDirectory::create("cell").value();
  const std::string key = "/leasehold/c/hosts/h1";
  etcd.put("/leasehold/c/config", R"({"version":1,"ttl_ms":0,"slack_ms":100})");
  {
    AgentProcess agent(etcd, {.state = directory.file("h1")});
    CHECK(agent.logs("ceiling_in_ms=never"));
    CHECK(etcd.get(key)->value.contains(R"("ttl_ms":0)"));
  }
  etcd.erase(key);
  etcd.put("/leasehold/c/config", R"({"version":1,"ttl_ms":1000,"slack_ms":100})");
  const std::string socket = directory.file("b.sock");
  AgentProcess agent(etcd, {.state = directory.file("h2"), .broker = socket});
  REQUIRE(agent.logs("no beat arrives code=BrokerLost"));
  etcd.erase(key);
  Child broker = start_broker(socket, directory.file("broker.log"));
  CHECK(eventually([&] { return etcd.get(key).has_value(); }));
}

TEST_CASE("cell: the client of etcd reads, writes, compares and watches a real etcd") {
  if (!has_etcd()) return;
  EtcdProcess etcd;
  etcd.put("w/a", std::string("\0\xFF", 2));
  const KeyValue written = *etcd.get("w/a");
  CHECK(written.value == std::string("\0\xFF", 2));
  Transaction refused{.conditions = {Compare::absent("w/a")},
                      .success = {},
                      .failure = {Get{KeyRange::prefix("w/")}}};
  const auto reply = etcd.wait(etcd.client().commit(std::move(refused)));
  REQUIRE(reply);
  CHECK(!reply->succeeded);
  CHECK(reply->found == std::vector<std::vector<KeyValue>>{{written}});
  CHECK(etcd.wait(etcd.client().status(0))->has_leader);
  Transaction twice{.conditions = {}, .success = {Put{"k", "1"}, Put{"k", "2"}}, .failure = {}};
  const auto wrong = etcd.wait(etcd.client().commit(std::move(twice)));
  REQUIRE(!wrong);
  CHECK(wrong.error().code == Errc::BadRequest);
  CHECK_THAT(wrong.error().detail, Contains("duplicate key"));

  FirstChange changes(etcd);
  CHECK(!etcd.wait(etcd.client().watch(KeyRange::prefix("w/"), changes)));
  CHECK(changes.seen == "=w/a +w/b -w/b ");
}

}  // namespace leasehold::testing
