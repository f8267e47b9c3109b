// The HTTP server of a worker: what needs no key, what browsers learn, which keys wait, and what
// clients may leave unread.
#include <map>

#include "tests/unit/worker/http/server_case.hpp"

namespace leasehold::http {

using namespace server_case;

TEST_CASE("http server: health of a sleeping worker says 200, because a request wakes it") {
  TestServer test;
  CHECK_FALSE(test.ask(kHealth).contains("asleep"));
  test.health.set_asleep(true);
  const std::string reply = test.ask(kHealth);
  CHECK(status_of(reply) == "200");
  CHECK(reply.contains(R"({"status":"ok","asleep":true})"));
  test.health.set_broker_disconnected(true);
  CHECK(status_of(test.ask(kHealth)) == "503");
}

TEST_CASE("http server: health says 503 with the reason while requests cannot be served") {
  TestServer test;
  CHECK(status_of(test.ask(kHealth)) == "200");
  const auto check_refused = [&test](const std::string& code) {
    const std::string reply = test.ask(kHealth);
    CHECK(status_of(reply) == "503");
    CHECK(reply.contains("Retry-After: "));
    CHECK(reply.contains("\"code\":\"" + code + "\""));
  };
  test.health.set_loading(true);
  check_refused("NoModelLoaded");
  test.health.set_loading(false);
  test.health.set_weights_missing(true);
  check_refused("MissingWeight");
  test.health.set_weights_missing(false);
  test.health.set_broker_disconnected(true);
  CHECK(test.ask(kHealth).contains("BrokerLost"));
  test.health.set_broker_disconnected(false);
  test.health.set_admitting(false);
  check_refused("Draining");
  test.health.set_admitting(true);
  CHECK(status_of(test.ask(kHealth)) == "200");
  test.server().drain();
  CHECK(test.ask(kHealth).contains("Draining"));
}

TEST_CASE("http server: /health/live is 200 while the process answers") {
  TestServer test;
  test.health.set_weights_missing(true);
  test.server().drain();
  CHECK(status_of(test.ask(kHealth)) == "503");
  CHECK(status_of(test.ask(request("GET", "/health/live", ""))) == "200");
  CHECK(status_of(test.ask(request("HEAD", "/health/live", ""), false)) == "200");
  CHECK(status_of(test.ask(request("POST", "/health/live", "", "{}"))) == "405");
}

TEST_CASE("http server: answers name the host, and those of a model its identity") {
  TestServer test({.host_name = "h1"});
  const auto has = [](const std::string& reply, const std::string& field) {
    return reply.contains("\r\n" + field + "\r\n");
  };
  const std::string identity = "Leasehold-Identity: sha256:00/int8/f16/3;context=256";
  const std::string models = test.ask(request("GET", "/v1/models", as("ann")));
  CHECK(has(models, "Leasehold-Host: h1"));
  CHECK(has(models, identity));
  const std::string refused = test.ask(request("POST", "/v1/completions", as("ann"), "{}"));
  CHECK(status_of(refused) == "400");
  CHECK(has(refused, identity));
  for (const std::string& without :
       {test.ask(kHealth), test.ask(request("GET", "/v1/models", as("no"))),
        test.ask(request("GET", "/v1/requests", as("ann"))), test.ask("GET /\r\n\r\n")}) {
    CHECK(has(without, "Leasehold-Host: h1"));
    CHECK_FALSE(without.contains("Leasehold-Identity"));
  }
}

TEST_CASE("http server: HEAD is answered as GET, without the body") {
  TestServer test;
  Client client(test.path());
  const std::string same = "X-Request-Id: a\r\n";  // otherwise each answer has one of its own
  for (const auto& [path, more] : {std::pair(std::string("/health"), same),
                                   std::pair(std::string("/v1/models"), as("ann") + same)}) {
    client.write(request("GET", path, more));
    const std::string whole = client.reply();
    client.write(request("HEAD", path, more));
    const std::string head = client.reply(false);
    CHECK(status_of(head) == "200");
    CHECK(head == whole.substr(0, whole.find("\r\n\r\n") + 4));
  }
  CHECK(test.ask(request("HEAD", "/nothing", as("ann")), false).ends_with("\r\n\r\n"));
  CHECK(test.ask(request("HEAD", "/v1/models", as("no")), false).starts_with("HTTP/1.1 401"));
  const std::string refused = test.ask(request("HEAD", "/v1/completions", as("ann")), false);
  CHECK(status_of(refused) == "405");
  CHECK(refused.contains("Allow: POST, OPTIONS\r\n"));
  CHECK(test.ask(request("POST", "/v1/models", as("ann"), "{}")).contains("Allow: GET, HEAD"));
}

TEST_CASE("http server: OPTIONS needs no key, and allows pages of the origins that were named") {
  TestServer test({.allowed_origins = AllowedOrigins::parse({"https://chat.example"}).value()});
  const std::string asked =
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization,x-stainless-os\r\n";
  const std::string origin = "Origin: https://chat.example\r\n";
  const std::string allowed = test.ask(request("OPTIONS", "/v1/chat/completions", origin + asked));
  CHECK(status_of(allowed) == "204");
  for (const char* field :
       {"Access-Control-Allow-Origin: https://chat.example\r\n",
        "Access-Control-Allow-Headers: authorization,x-stainless-os\r\n",
        "Access-Control-Allow-Methods: GET, HEAD, POST, DELETE\r\n", "Vary: Origin\r\n"})
    CHECK(allowed.contains(field));
  CHECK_FALSE(allowed.contains("Content-Length"));

  for (const std::string other : {"Origin: https://evil.example\r\n", "Origin: null\r\n", ""}) {
    const std::string reply = test.ask(request("OPTIONS", "/v1/models", other + asked));
    CHECK(status_of(reply) == "204");
    CHECK_FALSE(reply.contains("Access-Control"));
    CHECK(reply.contains("Vary: Origin\r\n"));  // or a cache shows it to the allowed page
  }
  // The answers themselves, refusals too.
  CHECK(
      test.ask(request("GET", "/v1/models", as("ann") + origin)).contains("Allow-Origin: https:"));
  CHECK(test.ask(request("GET", "/v1/models", as("x") + origin)).contains("Allow-Origin: https:"));
  CHECK_FALSE(test.ask(request("GET", "/v1/models", as("ann"))).contains("Access-Control"));
  CHECK(test.checks == 3);
}

TEST_CASE("http server: by default no page of another origin may read answers; * allows all") {
  TestServer none;
  const std::string origin = "Origin: https://a.example\r\n";
  CHECK_FALSE(none.ask(request("GET", "/health", origin)).contains("Access-Control"));
  TestServer any({.allowed_origins = AllowedOrigins::parse({"*"}).value()});
  CHECK(any.ask(request("GET", "/health", origin)).contains("Access-Control-Allow-Origin: *\r\n"));
  for (const char* wrong : {"", "chat.example", "https://", "https://a/b", "https://a, https://b"})
    CHECK(AllowedOrigins::parse({wrong}).error().code == Errc::BadRequest);
}

TEST_CASE("http server: errors of messages have Anthropic's form, also before the route") {
  TestServer test;
  const auto check_error = [&test](const std::string& request, const std::string& status,
                                   const std::string& type) {
    const std::string reply = test.ask(request);
    CHECK(status_of(reply) == status);
    const auto json = body_of(reply);
    CHECK(json["type"] == "error");
    CHECK(json["error"]["type"] == type);
  };
  const std::string path = "/v1/messages";
  const std::string key = "x-api-key: ann\r\n";
  check_error(request("POST", path, as("no"), "{}"), "401", "authentication_error");
  check_error(request("POST", path, as("ann") + "Content-Length: 9999999\r\n"), "413",
              "request_too_large");
  check_error(request("GET", path, key), "405", "invalid_request_error");
  check_error(request("POST", path + "/batches", key, "{}"), "404", "not_found_error");
  check_error(request("POST", path + "?beta=true", key, "{}"), "400", "invalid_request_error");
  check_error(request("POST", path + "/count_tokens", key, "5"), "400", "invalid_request_error");
  CHECK(test.ask(request("POST", "/v1/other", key, "{}")).contains("\"code\":\"not_found\""));
}

TEST_CASE("http server: known keys, on old and new connections, do not wait behind guesses") {
  TestServer test;
  Client old(test.path());
  const std::string ask = request("GET", "/v1/models", as("ann"));
  old.write(ask);
  REQUIRE(status_of(old.reply()) == "200");
  std::vector<std::unique_ptr<Client>> guesses;
  for (int i = 0; i < 400; ++i) {  // six seconds at the rate of their source
    guesses.push_back(std::make_unique<Client>(test.path()));
    guesses.back()->write(request("GET", "/v1/models", as("guess" + std::to_string(i))));
  }
  while (!guesses[99]->has_input()) std::this_thread::yield();  // the burst has been checked
  for (int i = 0; i < 5; ++i) {
    old.write(ask);
    CHECK(status_of(old.reply()) == "200");
    CHECK(status_of(test.ask(ask)) == "200");
  }
  CHECK(std::ranges::count_if(guesses, [](const auto& each) { return !each->has_input(); }) > 100);
}

TEST_CASE("http server: a known key is checked each time, so its end is seen at once") {
  TestServer test;
  for (int i = 1; i <= 3; ++i) {
    CHECK(status_of(test.ask(request("GET", "/v1/models", as("ann")))) == "200");
    CHECK(test.checks == i);
  }
}

TEST_CASE("http server: answers that are not read count in their tenant's share") {
  // An answer has about 600 KB, a socket takes less than 300 KB.
  TestServer test({.max_unread_bytes = 8 << 20});
  const nlohmann::json body{{"prompt", std::string(60'000, 'x')}, {"return_token_strs", true}};
  const std::string ask = request("POST", "/tokenize", as("ann"), body.dump());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<Client>(test.path()));
    clients.back()->write(ask);
  }
  for (const auto& client : clients)
    while (!client->has_input()) std::this_thread::yield();
  Client bob(test.path());  // another tenant has a share
  bob.write(request("POST", "/tokenize", as("bob"), body.dump()));
  while (!bob.has_input()) std::this_thread::yield();
  std::size_t whole = 0;
  for (const auto& client : clients) {
    CHECK(status_of(client->reply()) == "200");
    whole += client->is_whole();
  }
  CHECK(whole >= 1);
  CHECK(whole < clients.size());
  CHECK(status_of(bob.reply()) == "200");
  CHECK(bob.is_whole());
  CHECK(status_of(test.ask(ask)) == "200");  // once read, there is room again
}

}  // namespace leasehold::http
