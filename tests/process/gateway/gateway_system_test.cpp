// A gateway in front of brokers and workers that die.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <set>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/process/gateway/gateway_process.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

const std::string kUser = "uid:" + std::to_string(::getuid());

/// A host with a broker and a worker of its own.
struct RealHost : HttpSystem {
  RealHost(const std::string& name, const std::string& key)
      : HttpSystem({"--slow-motion-us", "100", "--http-trusted-proxy", kUser, "--host-name", name}),
        address("unix:" + path()) {
    system().admit("ann");
    system()
        .view()
        .command(wire::KeyCreate{.tenant = {"ann"}, .hash = hash_of_api_key(key)})
        .value();
  }
  void signal(int number) {
    system().worker().signal(number).value();
    system().broker().signal(number).value();
  }
  std::string address;
};

struct Cell {
  std::string key = mint_api_key();
  RealHost a{"a", key}, b{"b", key}, c{"c", key};
  GatewayProcess gateway{addresses(), {"--beat-ms", "100"}};

  Cell() { await_hosts(gateway); }
  static void await_hosts(const GatewayProcess& gateway) {
    for (const char* name : {"name=a", "name=b", "name=c"})
      REQUIRE(eventually([&] { return gateway.logs(name); }));
  }
  std::vector<RealHost*> all() { return {&a, &b, &c}; }
  RealHost& at(const std::string& address) {
    for (RealHost* host : all())
      if (host->address == address) return *host;
    throw std::runtime_error("no host " + address);
  }
  std::vector<std::string> addresses() const { return {a.address, b.address, c.address}; }
  RealHost& named(const std::string& name) { return name == "a" ? a : name == "b" ? b : c; }
  Json story(bool stream) const {
    const Json message{{"role", "user"}, {"content", "Tell me a story."}};
    return {{"model", "Leasehold Stories"},
            {"messages", Json::array({message})},
            {"max_tokens", 150},
            {"temperature", 0.8},
            {"seed", 7},
            {"ignore_eos", true},
            {"stream", stream}};
  }
  std::string ask(bool stream) const { return post("/v1/chat/completions", key, story(stream)); }
};

std::string field_of(const std::string& head, const std::string& name) {
  const auto at = head.find(name + ": ");
  if (at == std::string::npos) return {};
  const auto from = at + name.size() + 2;
  return head.substr(from, head.find('\r', from) - from);
}

/// The texts of the chunks, joined.
std::string chat_text_of(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) {
    const Json json = Json::parse(event, nullptr, false);
    if (!json.is_object() || !json.contains("choices")) continue;
    for (const Json& choice : json.at("choices"))
      if (choice.at("delta").contains("content") && choice.at("delta").at("content").is_string())
        text += choice.at("delta").at("content");
  }
  return text;
}

/// The values of a field of the chunks.
std::set<Json> values_of(const std::string& field, const std::vector<std::string>& events) {
  std::set<Json> values;
  for (const std::string& event : events) {
    const Json json = Json::parse(event, nullptr, false);
    if (json.is_object()) values.insert(json.at(field));
  }
  return values;
}

}  // namespace

TEST_CASE("gateway: a client of three hosts notices neither a killed one nor a stopped one") {
  Cell cell;
  const HttpReply undisturbed = cell.gateway.send(cell.ask(false));
  REQUIRE(undisturbed.status == 200);
  const std::string expected = undisturbed.json().at("choices").at(0).at("message").at("content");

  HttpClient client(cell.gateway.address());
  client.write(cell.ask(true));
  std::string begun;
  REQUIRE(client.read_until([&](const std::string& so_far) {
    begun = so_far;
    return has_events(10)(so_far);
  }));
  const std::string first = field_of(begun, "Leasehold-Host");
  RealHost& killed = cell.named(first);
  killed.signal(SIGKILL);
  const bool has_moved = eventually([&] { return cell.gateway.logs("text moves"); });
  INFO(cell.gateway.log());
  REQUIRE(has_moved);
  REQUIRE(client.read_until(has_events(40)));
  RealHost& stopped = cell.at(cell.gateway.logged_address("from=" + killed.address + " to="));
  REQUIRE(&stopped != &killed);
  stopped.signal(SIGSTOP);
  const HttpReply reply = client.reply();
  stopped.signal(SIGCONT);

  CHECK(chat_text_of(reply.events()) == expected);
  CHECK(values_of("created", reply.events()).size() == 1);
  CHECK(values_of("id", reply.events()).size() == 1);
  CHECK(reply.events().back() == "[DONE]");
  CHECK(eventually([&] { return cell.gateway.logs("cause=lost"); }));
  CHECK(eventually([&] { return cell.gateway.logs("cause=silent"); }));
  const HttpReply wrong_key =
      cell.gateway.send(post("/v1/chat/completions", "lh-0", cell.story(true)));
  CHECK(wrong_key.status == 401);
  CHECK_THAT(wrong_key.body, Contains("invalid_api_key"));
}

TEST_CASE("gateway: a stream that a client came back to survives its host") {
  Cell cell;
  Json body = cell.story(true);
  const HttpReply undisturbed = cell.gateway.send(post("/v1/chat/completions", cell.key, body));
  body["resumable"] = true;
  body["request_id"] = "story";
  HttpClient first(cell.gateway.address());
  first.write(post("/v1/chat/completions", cell.key, body));
  REQUIRE(first.read_until(has_events(20)));
  const HttpReply begun = first.so_far();
  first.close();
  const std::string id = begun.ids().back();

  HttpClient client(cell.gateway.address());
  client.write(post("/v1/chat/completions", cell.key, body, "Last-Event-ID: " + id + "\r\n"));
  std::string again;
  REQUIRE(client.read_until([&](const std::string& so_far) {
    again = so_far;
    return has_events(10)(so_far);
  }));
  cell.named(field_of(again, "Leasehold-Host")).signal(SIGKILL);
  const HttpReply reply = client.reply();
  CHECK(eventually([&] { return cell.gateway.logs("cause=lost"); }));
  CHECK(chat_text_of(begun.events()) + chat_text_of(reply.events()) ==
        chat_text_of(undisturbed.events()));
  CHECK(values_of("created", begun.events()) == values_of("created", reply.events()));
  CHECK(reply.events().back() == "[DONE]");
}

TEST_CASE("gateway: a text survives a gateway that dies at any of its fault points") {
  Cell cell;
  const std::string expected = chat_text_of(cell.gateway.send(cell.ask(true)).events());
  for (const std::string point :
       {"gateway.answer.ready", "gateway.move.decided", "gateway.successor.runs"}) {
    INFO(point);
    GatewayProcess dying(cell.addresses(), {"--beat-ms", "100"}, point + ":kill");
    Cell::await_hosts(dying);
    Json body = cell.story(true);
    body["resumable"] = true;
    body["request_id"] = point;
    HttpClient first(dying.address());
    first.write(post("/v1/chat/completions", cell.key, body));
    std::string begun;
    const bool has_begun = first.read_until([&](const std::string& so_far) {
      begun = so_far;
      return has_events(10)(so_far);
    });
    RealHost* const stopped = has_begun ? &cell.named(field_of(begun, "Leasehold-Host")) : nullptr;
    if (stopped != nullptr) stopped->signal(SIGSTOP);
    CHECK(dying.has_died());
    CHECK(has_begun == (point != "gateway.answer.ready"));

    std::string text, fields;
    if (has_begun) {
      first.read_until([](const std::string&) { return false; });
      text = chat_text_of(first.so_far().events());
      fields = "Last-Event-ID: " + first.so_far().ids().back() + "\r\n";
    }
    const HttpReply rest = cell.gateway.send(post("/v1/chat/completions", cell.key, body, fields));
    if (stopped != nullptr) stopped->signal(SIGCONT);
    INFO(cell.gateway.log());
    CHECK(text + chat_text_of(rest.events()) == expected);
    CHECK(rest.events().back() == "[DONE]");
  }
}

}  // namespace leasehold::testing
