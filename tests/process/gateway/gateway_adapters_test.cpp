// Adapters behind a gateway: texts under one continue where its version is.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/process/gateway/gateway_process.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

/// A host that loads the bundled adapters.
struct AdapterHost : HttpSystem {
  AdapterHost(const std::string& name, const std::string& key)
      : HttpSystem({"--slow-motion-us", "100", "--http-trusted-proxy",
                    "uid:" + std::to_string(::getuid()), "--host-name", name, "--adapters",
                    source_dir() + "/tools/models"}),
        address("unix:" + path()) {
    for (const char* tenant : {"ann", "bob"})
      system().admit(tenant, {"--max-adapters", "2", "--max-adapter-bytes", "16MiB"});
    system()
        .view()
        .command(wire::KeyCreate{.tenant = {"ann"}, .hash = hash_of_api_key(key)})
        .value();
    add("theirs", "lines", "bob");
  }
  void add(const std::string& name, const std::string& story, const std::string& tenant = "ann") {
    REQUIRE(system().brokerctl({"adapters", "add", name, "--file",
                                "leasehold-stories-" + story + ".gguf", "--tenant", tenant}) == 0);
  }
  void kill() {
    system().worker().signal(SIGKILL).value();
    system().broker().signal(SIGKILL).value();
  }
  std::string address;
};

Json story(const std::string& model, bool stream) {
  return {
      {"model", model}, {"prompt", "Once upon a time"}, {"max_tokens", 150}, {"temperature", 0.8},
      {"seed", 7},      {"ignore_eos", true},           {"stream", stream}};
}

/// The refusal without the name that it repeats.
std::string refusal_of(const HttpReply& reply, const std::string& name) {
  std::string body = reply.body;
  for (auto at = body.find(name); at != std::string::npos; at = body.find(name))
    body.replace(at, name.size(), "?");
  return std::to_string(reply.status) + body;
}

}  // namespace

TEST_CASE("gateway: a text under an adapter survives its host, under the version that began it") {
  const std::string key = mint_api_key();
  AdapterHost a("a", key), b("b", key), c("c", key);
  for (AdapterHost* host : {&a, &b}) host->add("tuned", "lines");
  GatewayProcess gateway({a.address, b.address, c.address}, {"--beat-ms", "100"});
  for (const char* name : {"name=a", "name=b", "name=c"})
    REQUIRE(eventually([&] { return gateway.logs(name); }));
  const auto ask = [&](const std::string& model, bool stream) {
    return post("/v1/completions", key, story(model, stream));
  };

  const Json listed = gateway.send(get("/v1/models", key)).json().at("data");
  REQUIRE(listed.size() == 2);
  CHECK(listed.at(1).at("id") == "tuned");
  CHECK(listed.at(1).at("parent") == listed.at(0).at("id"));
  CHECK(gateway.send(get("/v1/models/tuned", key)).json().at("id") == "tuned");
  const std::string foreign = refusal_of(gateway.send(ask("theirs", false)), "theirs");
  CHECK(foreign.starts_with("404"));
  CHECK(foreign == refusal_of(gateway.send(ask("no-such-one", true)), "no-such-one"));

  const HttpReply undisturbed = gateway.send(ask("tuned", true));
  REQUIRE(undisturbed.status == 200);
  const std::string expected = text_of(undisturbed);
  CHECK(expected != text_of(gateway.send(ask(listed.at(0).at("id"), true))));

  HttpClient client(gateway.address());
  client.write(ask("tuned", true));
  std::string begun;
  REQUIRE(client.read_until([&](const std::string& so_far) {
    begun = so_far;
    return has_events(10)(so_far);
  }));
  REQUIRE_FALSE(begun.contains("Leasehold-Host: c"));  // which does not know the adapter
  c.add("tuned", "sailor");                            // another one under the same name
  AdapterHost& killed = begun.contains("Leasehold-Host: a") ? a : b;
  killed.kill();
  const HttpReply reply = client.reply();
  INFO(gateway.log());
  CHECK(text_of(reply) == expected);
  CHECK(reply.events().back() == "[DONE]");
  CHECK(gateway.logs("text moves"));
}

}  // namespace leasehold::testing
