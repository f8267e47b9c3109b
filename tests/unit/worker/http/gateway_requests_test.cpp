// What a worker's HTTP server and a gateway say to each other.
#include <future>

#include "tests/unit/worker/http/server_case.hpp"

namespace leasehold::http {

using namespace server_case;

TEST_CASE("http server: a gateway learns the models, the state and the load of a host") {
  TestServer test({.host_name = "h1", .trusted_proxies = trusting_own_user(), .load = [] {
                     return WorkerLoad{.running = 3, .waiting = 2};
                   }});
  const std::string ask = request("GET", "/leasehold/host", "");
  const auto host = [&] { return body_of(test.ask(ask)); };
  const std::string identity = "sha256:00/int8/f16/3;context=256";
  const nlohmann::json models = {{{"id", "model"}, {"identity", identity}},
                                 {{"id", "alias"}, {"identity", identity}}};
  CHECK(host() == nlohmann::json{{"host", "h1"},
                                 {"models", models},
                                 {"ready", true},
                                 {"code", ""},
                                 {"asleep", false},
                                 {"keeps_files", false},
                                 {"loads_adapters", false},
                                 {"running", 3},
                                 {"waiting", 2}});
  test.server().drain();
  CHECK(host()["ready"] == false);
  CHECK(host()["code"] == "Draining");
  // A proxy asks for its client.
  const std::string relayed = "X-Forwarded-For: 192.0.2.1\r\n";
  CHECK(status_of(test.ask(request("GET", "/leasehold/host", relayed))) == "403");
  TestServer closed;
  const std::string refused = closed.ask(ask);
  CHECK(status_of(refused) == "403");
  CHECK(refused.contains("--http-trusted-proxy"));
}

TEST_CASE("http server: answers of a member of a cell name its incarnation, refusals too") {
  TestServer test;
  CHECK_FALSE(test.ask(kHealth).contains("Leasehold-Incarnation"));
  test.health.set_incarnation(41);
  for (const std::string& reply :
       {test.ask(kHealth), test.ask(request("GET", "/v1/models", as("ann"))),
        test.ask(request("GET", "/v1/models", as("no"))), test.ask("GET /\r\n\r\n")})
    CHECK(reply.contains("\r\nLeasehold-Incarnation: 41\r\n"));
}

TEST_CASE("http server: only a gateway may send its headers") {
  const std::string field = "Leasehold-Created: 7\r\n";
  TestServer closed;
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/responses"}) {
    const std::string refused = closed.ask(request("POST", path, as("ann") + field, "{}"));
    CHECK(status_of(refused) == "400");
    CHECK(body_of(refused)["error"]["param"] == "Leasehold-Created");
  }
  const std::string message = closed.ask(request("POST", "/v1/messages", as("ann") + field, "{}"));
  CHECK(body_of(message)["error"]["message"].get<std::string>().contains("Leasehold-Created"));
  TestServer open({.trusted_proxies = trusting_own_user()});
  const std::string read = open.ask(request("POST", "/v1/completions", as("ann") + field, "{}"));
  CHECK(body_of(read)["error"]["param"] == "prompt");
}

TEST_CASE("http server: the cell learns from which host a text has moved here") {
  std::promise<wire::PartWant> told;
  const auto want_part = [&](const wire::PartWant& wanted) { told.set_value(wanted); };
  TestServer test({.want_part = want_part, .trusted_proxies = trusting_own_user()});
  const std::string body = R"({"prompt":"a"})";
  const auto ask = [&](const std::string& more) {
    return status_of(test.ask(request("POST", "/v1/completions", as("cy") + more, body)));
  };
  CHECK(ask("") == "401");
  CHECK(ask("Leasehold-Moved-From: " + std::string(65, 'h') + "\r\n") == "401");
  TestServer distrustful;
  const std::string moved = "Leasehold-Moved-From: h1\r\n";
  CHECK(status_of(distrustful.ask(request("POST", "/v1/completions", as("cy") + moved, body))) ==
        "401");

  Client client(test.path());
  client.write(request("POST", "/v1/completions", as("cy") + moved, body));
  const wire::PartWant wanted = told.get_future().get();
  CHECK(wanted.tenant.value == "cy");
  CHECK(wanted.moved_from == HostName{"h1"});
}

}  // namespace leasehold::http
