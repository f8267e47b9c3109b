// A cell of real hosts: etcd, and a broker, a worker and an agent on each host.
#include <signal.h>

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>

#include "ipc/control/messages/cell/key_resolve.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/process/cell/etcd_process.hpp"
#include "tests/process/http/http_client.hpp"

using namespace leasehold;
using Catch::Contains;

namespace leasehold::testing {
namespace {

struct Printed {
  int exit_code = -1;
  std::string text;  ///< stdout and stderr.
  Json json() const { return Json::parse(text); }
};

/// etcd with a short TTL, and brokerctl for it.
class CellRig {
 public:
  explicit CellRig(std::int64_t ttl_ms = 4'000) {
    etcd.put("/leasehold/c/config",
             fmt::format(R"({{"version":1,"ttl_ms":{},"slack_ms":200}})", ttl_ms));
    std::ofstream(config_) << fmt::format("etcd = [\"{}\"]\ncell = \"c\"\n", etcd.address());
  }

  Child start_brokerctl(std::vector<std::string> words, const std::string& log) const {
    std::vector<std::string> argv{program_path("brokerctl"), "cell", "--config", config_};
    argv.insert(argv.end(), words.begin(), words.end());
    return Child::start({.argv = std::move(argv), .log_path = log}).value();
  }
  Printed brokerctl(std::vector<std::string> words) const {
    const std::string log = directory_.file("brokerctl.log");
    std::filesystem::remove(log);
    Child child = start_brokerctl(std::move(words), log);
    const int code = exit_status_of(child);
    return {.exit_code = code, .text = file_bytes(log)};
  }
  void admit(const std::string& tenant, const std::string& requests) const {
    const Printed printed = brokerctl({"tenants", "admit", tenant, "--max-concurrent", requests});
    INFO(printed.text);
    REQUIRE(printed.exit_code == 0);
  }
  std::string create_key(const std::string& tenant) const {
    const Printed printed = brokerctl({"keys", "create", "--tenant", tenant, "-o", "json"});
    INFO(printed.text);
    REQUIRE(printed.exit_code == 0);
    return printed.json().at("api_key");
  }
  std::string file(const std::string& name) const { return directory_.file(name); }

  EtcdProcess etcd;

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("cell").value();
  std::string config_ = directory_.file("cell.toml");
};

/// A host of the cell.
class CellHost {
 public:
  CellHost(const CellRig& rig, const std::string& name)
      : rig_(rig),
        name_(name),
        http_({"--slow-motion-us", "100", "--cell-socket", rig.file(name + ".sock"),
               "--http-idle-ttl-ms", "100"}) {
    start_agent();
    REQUIRE(agent_->logs("host joined"));
  }

  void start_agent() {
    agent_.emplace(rig_.etcd, AgentProcess::Spec{.state = rig_.file(name_),
                                                 .host = name_,
                                                 .broker = http_.system().broker_socket(),
                                                 .socket = rig_.file(name_ + ".sock")});
    REQUIRE(agent_->logs("broker attached"));
  }
  AgentProcess& agent() { return *agent_; }
  HttpSystem& http() { return http_; }
  void signal(int number) {
    for (Child* child : {&http_.system().broker(), &http_.system().worker(), &agent_->child()})
      child->signal(number).value();
  }
  HttpReply ask(const std::string& key, int tokens = 5) {
    const Json message{{"role", "user"}, {"content", "Tell me a story."}};
    const Json body{{"model", "Leasehold Stories"},
                    {"messages", Json::array({message})},
                    {"max_tokens", tokens},
                    {"ignore_eos", true}};
    return http_.send(post("/v1/chat/completions", key, body));
  }
  bool answers(const std::string& key, int status) {
    return eventually([&] { return ask(key).status == status; });
  }

 private:
  const CellRig& rig_;
  std::string name_;
  HttpSystem http_;
  std::optional<AgentProcess> agent_;
};

}  // namespace

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

  const std::string id = rig.brokerctl({"keys", "-o", "json"}).json().at("items").at(0).at("key");
  const Printed revoked = rig.brokerctl({"keys", "revoke", id, "--wait"});
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
  const std::string id = rig.brokerctl({"keys", "-o", "json"}).json().at("items").at(0).at("key");
  host.http().system().broker().signal(SIGSTOP).value();
  const Printed revoked = rig.brokerctl({"keys", "revoke", id, "--wait"});
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

TEST_CASE("cell: a change of a key's expiry and limits reaches the hosts that serve it") {
  if (!has_etcd()) return;
  CellRig rig;
  CellHost host(rig, "a");
  rig.admit("ann", "4");
  const std::string key = rig.create_key("ann");
  REQUIRE(host.ask(key).status == 200);
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
