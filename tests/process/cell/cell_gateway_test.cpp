// A gateway over a cell of real hosts: one is frozen, expired and thawed while it serves a text.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/cell/cell_rig.hpp"
#include "tests/process/gateway/gateway_process.hpp"
#include "tools/cell/decide/ledger.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

constexpr int kTokens = 150;

/// Two hosts, and a gateway that waits for the beats of a text for longer than the cell waits for
/// those of a host.
struct ServedCell {
  struct Terms {
    std::int64_t ttl_ms = 2'000;
    std::string moves = "overlap";
    std::string requests = "4";
  };
  CellRig rig;
  CellHost a{rig, "a"}, b{rig, "b"};
  GatewayProcess gateway{{}, {"--cell", rig.config(), "--beat-ms", "10000"}};
  std::string key;

  explicit ServedCell(const Terms& terms) : rig(terms.ttl_ms, terms.moves) {
    rig.admit("ann", terms.requests);
    key = rig.create_key("ann");
    for (const char* name : {"name=a", "name=b"})
      REQUIRE(eventually([&] { return gateway.logs(name); }));
  }
  /// `resumable_as`: the id of a text that its client can come back to; empty: of none. `fields`:
  /// of the head, each with its "\r\n".
  std::string ask(int tokens, bool stream, const std::string& resumable_as = {},
                  const std::string& fields = {}) const {
    const Json message{{"role", "user"}, {"content", "Tell me a story."}};
    Json body{{"model", "Leasehold Stories"},
              {"messages", Json::array({message})},
              {"max_tokens", tokens},
              {"temperature", 0.8},
              {"seed", 7},
              {"ignore_eos", true},
              {"stream", stream}};
    if (!resumable_as.empty()) {
      body["resumable"] = true;
      body["request_id"] = resumable_as;
    }
    return post("/v1/chat/completions", key, body, fields);
  }
  /// The whole text, of a host that nothing disturbs.
  std::string undisturbed_text() const {
    const HttpReply reply = gateway.send(ask(kTokens, false));
    INFO(reply.body << gateway.log());
    REQUIRE(reply.status == 200);
    return reply.json().at("choices").at(0).at("message").at("content");
  }
  /// Begins the text at the client. Returns the host that runs it. `resumable_as`: as for `ask`.
  CellHost& begin(HttpClient& client, const std::string& resumable_as = {}) {
    client.write(ask(kTokens, true, resumable_as));
    std::string begun;
    REQUIRE(client.read_until([&](const std::string& so_far) {
      begun = so_far;
      return has_events(10)(so_far);
    }));
    CHECK_FALSE(begun.contains("Leasehold-Incarnation"));
    return begun.contains("Leasehold-Host: a\r\n") ? a : b;
  }
  CellHost& other(const CellHost& host) { return &host == &a ? b : a; }
  std::string name(const CellHost& host) const { return &host == &a ? "a" : "b"; }
  /// The part of the tenant that the host has or waits for.
  std::optional<cell::Part> part(const CellHost& host) {
    const auto found = rig.etcd.get("/leasehold/c/ledger/ann");
    if (!found) return std::nullopt;
    const cell::Ledger ledger = cell::read_ledger(found->key, found->value).value();
    for (const cell::Part& each : ledger.parts)
      if (each.owner.host.value == name(host)) return each;
    return std::nullopt;
  }
};

/// The TTL of cells in which no host is expired while a test runs.
constexpr std::int64_t kLongTtl = cell::CellConfig::kMaxTtlMs;

std::string streamed_text(const HttpReply& reply) {
  std::string text;
  for (const std::string& event : reply.events()) {
    const Json json = Json::parse(event, nullptr, false);
    if (!json.is_object() || !json.contains("choices")) continue;
    for (const Json& choice : json.at("choices"))
      if (choice.at("delta").contains("content") && choice.at("delta").at("content").is_string())
        text += choice.at("delta").at("content");
  }
  return text;
}

}  // namespace

TEST_CASE(
    "cell gateway: a text leaves a frozen host that is expired, and nothing of it comes late") {
  if (!has_etcd()) return;
  ServedCell cell({});
  const std::string expected = cell.undisturbed_text();
  HttpClient client(cell.gateway.address());
  CellHost& frozen = cell.begin(client);
  const std::string name = cell.name(frozen);
  frozen.signal(SIGSTOP);
  REQUIRE(eventually([&] { return cell.gateway.logs("silent host expired host=" + name); }));
  REQUIRE(eventually([&] { return cell.gateway.logs("cause=gone"); }));
  frozen.signal(SIGCONT);  // its worker sends what it has computed
  const HttpReply reply = client.reply();
  INFO(cell.gateway.log());
  CHECK(streamed_text(reply) == expected);
  CHECK(reply.events().back() == "[DONE]");
  CHECK(frozen.agent().logs("host fenced"));
  CHECK(eventually([&] {
    return cell.gateway.log().rfind("host added host=" + frozen.door()) >
           cell.gateway.log().find("silent host expired");
  }));
  CHECK(cell.gateway.send(cell.ask(5, false)).status == 200);
}

TEST_CASE("cell gateway: a text whose key is revoked ends with an error, and moves to no host") {
  if (!has_etcd()) return;
  ServedCell cell({});
  HttpClient client(cell.gateway.address());
  (void)cell.begin(client);
  const Printed revoked = cell.rig.revoke_key();
  INFO(revoked.text << cell.gateway.log());
  CHECK(revoked.exit_code == 0);
  const HttpReply reply = client.reply();
  CHECK_THAT(reply.body, Contains("invalid_api_key"));
  CHECK(eventually([&] { return cell.gateway.logs("text failed"); }));
  CHECK(eventually([&] { return cell.gateway.logs("code=BadToken"); }));
  CHECK_FALSE(cell.gateway.logs("text moves"));
  CHECK(cell.gateway.send(cell.ask(5, false)).status == 401);
}

TEST_CASE("cell gateway: a text survives a gateway that dies while it expires the text's host") {
  if (!has_etcd()) return;
  ServedCell cell({});
  for (CellHost* host : {&cell.a, &cell.b}) REQUIRE(host->answers(cell.key, 200));
  const std::string expected = cell.undisturbed_text();
  REQUIRE(cell.gateway.stop() == 0);  // it would expire hosts, too
  for (const std::string point : {"gateway.expiry.decided", "gateway.host.expired"}) {
    INFO(point);
    const std::vector<std::string> options{"--cell", cell.rig.config(), "--beat-ms", "10000"};
    GatewayProcess dying({}, options, point + ":kill");
    for (const char* name : {"name=a", "name=b"})
      REQUIRE(eventually([&] { return dying.logs(name); }));
    HttpClient first(dying.address());
    CellHost& frozen = cell.begin(first, point);
    const std::string name = cell.name(frozen);
    frozen.signal(SIGSTOP);
    REQUIRE(dying.has_died());
    const bool is_deleted = point == "gateway.host.expired";
    CHECK(cell.rig.etcd.get("/leasehold/c/hosts/" + name).has_value() == !is_deleted);
    first.read_until([](const std::string&) { return false; });

    GatewayProcess next({}, options);
    const std::string last_id = first.so_far().ids().back();
    HttpReply rest;
    const bool is_served = eventually([&] {  // the other host may wait for the frozen one's part
      rest = next.send(cell.ask(kTokens, true, point, "Last-Event-ID: " + last_id + "\r\n"));
      return rest.status == 200;
    });
    INFO(rest.body << next.log());
    REQUIRE(is_served);
    CHECK(streamed_text(first.so_far()) + streamed_text(rest) == expected);
    CHECK(rest.events().back() == "[DONE]");
    if (!is_deleted)
      CHECK(eventually([&] { return next.logs("silent host expired host=" + name); }));
    frozen.signal(SIGCONT);
    CHECK(frozen.answers(cell.key, 200));
    const Printed checked = cell.rig.brokerctl({"doctor"});
    INFO(checked.text);
    CHECK(checked.exit_code == 0);
  }
}

TEST_CASE(
    "cell gateway: a text of a dead host goes on at once, and its new host counts instead of it") {
  if (!has_etcd()) return;
  ServedCell cell({.ttl_ms = kLongTtl, .requests = "1"});
  const std::string expected = cell.undisturbed_text();
  HttpClient client(cell.gateway.address());
  CellHost& dead = cell.begin(client);
  dead.signal(SIGKILL);
  const HttpReply reply = client.reply();
  INFO(cell.gateway.log() << cell.other(dead).agent().log());
  CHECK(streamed_text(reply) == expected);
  CHECK(reply.events().back() == "[DONE]");
  const auto lost = cell.part(dead), used = cell.part(cell.other(dead));
  REQUIRE((lost && used));
  CHECK(used->instead_of == lost->owner);
  CHECK(used->share == lost->share);
  const Printed ledger = cell.rig.brokerctl({"ledger", "ann"});
  CHECK_THAT(ledger.text, Contains("have moved to"));
  CHECK(cell.rig.brokerctl({"doctor"}).exit_code == 0);
}

TEST_CASE("cell gateway: with strict moves a text waits until the dead host's part is void") {
  if (!has_etcd()) return;
  ServedCell cell({.ttl_ms = kLongTtl, .moves = "strict", .requests = "1"});
  const std::string expected = cell.undisturbed_text();
  HttpClient client(cell.gateway.address());
  CellHost& dead = cell.begin(client);
  dead.signal(SIGKILL);
  CellHost& next = cell.other(dead);
  INFO(cell.gateway.log() << next.agent().log());
  REQUIRE(eventually([&] {
    const auto part = cell.part(next);
    return part && part->demand.concurrent > 0;
  }));
  CHECK(cell.part(next)->share == cell::Share());
  CHECK_FALSE(cell.part(next)->instead_of);
  const Printed expired = cell.rig.brokerctl({"expire", cell.name(dead), "--confirm-stopped"});
  INFO(expired.text);
  REQUIRE(expired.exit_code == 0);
  const HttpReply reply = client.reply();
  CHECK(streamed_text(reply) == expected);
  CHECK(reply.events().back() == "[DONE]");
}

}  // namespace leasehold::testing
