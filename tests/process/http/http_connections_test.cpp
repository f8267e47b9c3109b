// Connections of the HTTP server with real processes: many at once, shared by tenants, half closed,
// and with requests that do not wait for an answer.
#include <signal.h>

#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {

TEST_CASE("http: a proxy's connection serves tenants in turn") {
  HttpSystem http;
  HttpClient proxy(http.path());
  for (const std::string tenant : {"ann", "ben"}) {
    const std::string key = http.admit(tenant);
    proxy.write(get("/v1/models", key));
    CHECK(proxy.reply().status == 200);
    proxy.write(post("/v1/completions", key, http.completion(key, 3, false)));
    CHECK(proxy.reply().status == 200);
  }
}

TEST_CASE("http: a client that shuts down its sending side gets its answer") {
  const auto transport = GENERATE(HttpSystem::Transport::Unix, HttpSystem::Transport::Tcp);
  HttpSystem http({"--slow-motion-us", "30"}, transport);
  const std::string key = http.admit("ann");
  for (const bool stream : {false, true}) {
    const Json body = http.completion(key, 20, stream);
    HttpClient client(http.path());
    client.write(post("/v1/completions", key, body));
    client.shut_down_sending();
    const HttpReply reply = client.reply();
    REQUIRE(reply.status == 200);
    if (stream) CHECK(reply.events().back() == "[DONE]");
    if (!stream) CHECK(reply.json()["usage"]["completion_tokens"] == 20);
    CHECK(client.is_closed());
  }
}

TEST_CASE("http: a request that is sent before the answer to another one is served after it") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  const std::string request = post("/v1/completions", key, http.completion(key, 30, true));
  const std::string alone = text_of(http.send(request));

  HttpClient client(http.path());
  client.write(request);
  REQUIRE(client.read_until(has_events(2)));
  client.write(request + get("/v1/models", key));
  for (int i = 0; i < 2; ++i) {
    const HttpReply reply = client.reply();
    CHECK(text_of(reply) == alone);
    CHECK(reply.events().back() == "[DONE]");
  }
  CHECK(client.reply().json()["object"] == "list");
}

TEST_CASE("http: an answer that no socket holds comes whole to a client that reads late") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  std::string prompt;
  for (int i = 0; i < 100'000; ++i) prompt += "x y ";
  HttpClient late(http.path());
  late.write(post("/tokenize", key, {{"model", http.model(key)}, {"prompt", prompt}}));
  REQUIRE(eventually([&] { return late.has_input(); }));
  CHECK(http.send(get("/v1/models", key)).status == 200);  // the server waits for no client
  const HttpReply reply = late.reply();
  REQUIRE(reply.status == 200);
  CHECK(reply.body.size() > 500'000);
  CHECK(reply.json()["tokens"].size() == reply.json()["count"]);
  late.write(get("/v1/models", key));
  CHECK(late.reply().status == 200);
}

TEST_CASE("http: 200 requests of four tenants run beside 1 000 idle connections") {
  constexpr int kIdle = 1000;
  constexpr int kActive = 200;
  raise_descriptor_limit();
  HttpSystem http({"--slow-motion-us", "0"}, HttpSystem::Transport::Tcp);
  std::vector<std::string> keys;
  for (const std::string tenant : {"ann", "ben", "cid", "dot"}) {
    REQUIRE(http.system().brokerctl({"tenants", "admit", tenant, "--max-concurrent", "64",
                                     "--max-blocks", "4096"}) == 0);
    keys.push_back(http.key_of(tenant));
  }
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < kIdle; ++i) {
    idle.push_back(std::make_unique<HttpClient>(http.path()));
    idle.back()->write(get("/v1/models", keys[0]));
    // One at a time: a source keeps half of the places of connections without a valid key.
    REQUIRE(idle.back()->reply().status == 200);
  }

  std::vector<std::unique_ptr<HttpClient>> active;
  std::vector<std::string> requests;
  for (const std::string& key : keys)
    requests.push_back(post("/v1/completions", key, http.completion(key, 8, true)));
  for (std::size_t i = 0; i < kActive; ++i) {
    active.push_back(std::make_unique<HttpClient>(http.path()));
    active.back()->write(requests[i % requests.size()]);
  }
  std::string text;
  for (const auto& client : active) {
    const HttpReply reply = client->reply();
    INFO(reply.head << reply.body);
    REQUIRE(reply.status == 200);
    if (text.empty()) text = text_of(reply);
    CHECK(text_of(reply) == text);
  }
  for (const auto& client : idle) client->write(get("/v1/models", keys[1]));
  for (const auto& client : idle) REQUIRE(client->reply().status == 200);
}

TEST_CASE("http: a worker that drains answers what runs, and everything else with 503") {
  // The text outlasts the refusals.
  HttpSystem http({"--slow-motion-us", "300", "--drain-timeout-ms", "600000"});
  const std::string key = http.admit("ann");
  const std::string request = post("/v1/completions", key, http.completion(key, 60, true));
  const std::string health = "GET /health HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string alone = text_of(http.send(request));
  HttpClient idle(http.path());
  idle.write(get("/v1/models", key));
  CHECK(idle.reply().status == 200);
  HttpClient client(http.path());
  client.write(request);
  REQUIRE(client.read_until(has_events(2)));

  REQUIRE(http.system().worker().signal(SIGTERM));
  REQUIRE(eventually([&] { return http.send(health).status == 503; }));
  for (const HttpReply& refused : {http.send(request), (idle.write(request), idle.reply())}) {
    CHECK(refused.status == 503);
    CHECK(refused.head.contains("Retry-After: "));
    CHECK(refused.json()["error"]["code"] == "Draining");
  }
  const HttpReply reply = client.reply();
  CHECK(text_of(reply) == alone);
  CHECK(reply.events().back() == "[DONE]");
  CHECK(exit_status_of(http.system().worker()) == 0);
}

TEST_CASE("http: answers that outlast the drain end with an error that says to retry") {
  HttpSystem http({"--slow-motion-us", "2000", "--drain-timeout-ms", "50"});
  const std::string key = http.admit("ann");
  HttpClient whole(http.path());
  whole.write(post("/v1/completions", key, http.completion(key, 200, false)));
  HttpClient stream(http.path());
  stream.write(post("/v1/completions", key, http.completion(key, 200, true)));
  REQUIRE(stream.read_until(has_events(1)));
  const std::string list = get("/v1/requests", key);
  REQUIRE(eventually([&] { return http.send(list).json()["data"].size() == 2; }));

  REQUIRE(http.system().worker().signal(SIGTERM));
  const HttpReply refused = whole.reply();
  CHECK(refused.status == 503);
  CHECK(refused.json()["error"]["code"] == "Draining");
  const auto events = stream.reply().events();
  REQUIRE(events.size() >= 2);
  CHECK(Json::parse(events[events.size() - 2])["error"]["code"] == "Draining");
  CHECK(events.back() == "[DONE]");
  CHECK(exit_status_of(http.system().worker()) == 0);
}

}  // namespace leasehold::testing
