// A gateway over a cell of real hosts: one is frozen, expired and thawed while it serves a text.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/process/cell/cell_rig.hpp"
#include "tests/process/gateway/gateway_process.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

/// Two hosts, and a gateway that waits for the beats of a text for longer than the cell waits for
/// those of a host.
struct ServedCell {
  CellRig rig{2'000};
  CellHost a{rig, "a"}, b{rig, "b"};
  GatewayProcess gateway{{}, {"--cell", rig.config(), "--beat-ms", "10000"}};
  std::string key;

  ServedCell() {
    rig.admit("ann", "4");
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
  /// The host that has begun the text in these bytes.
  CellHost& runner(const std::string& begun) {
    return begun.contains("Leasehold-Host: a\r\n") ? a : b;
  }
};

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
  ServedCell cell;
  const HttpReply undisturbed = cell.gateway.send(cell.ask(150, false));
  INFO(undisturbed.body << cell.gateway.log());
  REQUIRE(undisturbed.status == 200);
  const std::string expected = undisturbed.json().at("choices").at(0).at("message").at("content");

  HttpClient client(cell.gateway.address());
  client.write(cell.ask(150, true));
  std::string begun;
  REQUIRE(client.read_until([&](const std::string& so_far) {
    begun = so_far;
    return has_events(10)(so_far);
  }));
  CellHost& frozen = cell.runner(begun);
  const std::string name = &frozen == &cell.a ? "a" : "b";
  CHECK_FALSE(begun.contains("Leasehold-Incarnation"));
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
  ServedCell cell;
  HttpClient client(cell.gateway.address());
  client.write(cell.ask(200, true));
  REQUIRE(client.read_until(has_events(10)));
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
  ServedCell cell;
  for (CellHost* host : {&cell.a, &cell.b}) REQUIRE(host->answers(cell.key, 200));
  const std::string expected = streamed_text(cell.gateway.send(cell.ask(150, true)));
  REQUIRE(cell.gateway.stop() == 0);  // it would expire hosts, too
  for (const std::string point : {"gateway.expiry.decided", "gateway.host.expired"}) {
    INFO(point);
    const std::vector<std::string> options{"--cell", cell.rig.config(), "--beat-ms", "10000"};
    GatewayProcess dying({}, options, point + ":kill");
    for (const char* name : {"name=a", "name=b"})
      REQUIRE(eventually([&] { return dying.logs(name); }));
    HttpClient first(dying.address());
    first.write(cell.ask(150, true, point));
    std::string begun;
    REQUIRE(first.read_until([&](const std::string& so_far) {
      begun = so_far;
      return has_events(10)(so_far);
    }));
    CellHost& frozen = cell.runner(begun);
    const std::string name = &frozen == &cell.a ? "a" : "b";
    frozen.signal(SIGSTOP);
    REQUIRE(dying.has_died());
    const bool is_deleted = point == "gateway.host.expired";
    CHECK(cell.rig.etcd.get("/leasehold/c/hosts/" + name).has_value() == !is_deleted);
    first.read_until([](const std::string&) { return false; });

    GatewayProcess next({}, options);
    const std::string last_id = first.so_far().ids().back();
    HttpReply rest;
    const bool is_served = eventually([&] {  // the other host may wait for the frozen one's part
      rest = next.send(cell.ask(150, true, point, "Last-Event-ID: " + last_id + "\r\n"));
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

}  // namespace leasehold::testing
