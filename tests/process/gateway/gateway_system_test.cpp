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
  GatewayProcess gateway{{a.address, b.address, c.address}, {"--beat-ms", "100"}};

  Cell() {
    for (const char* name : {"name=a", "name=b", "name=c"})
      REQUIRE(eventually([&] { return gateway.logs(name); }));
  }
  std::vector<RealHost*> all() { return {&a, &b, &c}; }
  RealHost& at(const std::string& address) {
    for (RealHost* host : all())
      if (host->address == address) return *host;
    throw std::runtime_error("no host " + address);
  }
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
  RealHost& killed = first == "a" ? cell.a : first == "b" ? cell.b : cell.c;
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

  std::string text;
  std::set<std::int64_t> created;
  std::set<std::string> ids;
  for (const std::string& event : reply.events()) {
    const Json json = Json::parse(event, nullptr, false);
    if (!json.is_object()) continue;
    REQUIRE(json.contains("choices"));
    created.insert(json.at("created").get<std::int64_t>());
    ids.insert(json.at("id").get<std::string>());
    for (const Json& choice : json.at("choices"))
      if (choice.at("delta").contains("content") && choice.at("delta").at("content").is_string())
        text += choice.at("delta").at("content");
  }
  CHECK(text == expected);
  CHECK(created.size() == 1);
  CHECK(ids.size() == 1);
  CHECK(reply.events().back() == "[DONE]");
  CHECK(cell.gateway.logs("cause=lost"));
  CHECK(cell.gateway.logs("cause=silent"));
  const HttpReply wrong_key =
      cell.gateway.send(post("/v1/chat/completions", "lh-0", cell.story(true)));
  CHECK(wrong_key.status == 401);
  CHECK_THAT(wrong_key.body, Contains("invalid_api_key"));
}

}  // namespace leasehold::testing
