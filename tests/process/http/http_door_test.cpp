// The HTTP server with real processes: keys, paths and hostile heads.
#include <catch2/catch.hpp>
#include <ctime>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {

TEST_CASE("http: health needs no key, everything else a known one") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  CHECK(http.send("GET /health HTTP/1.1\r\nHost: h\r\n\r\n").status == 200);
  const HttpReply models = http.send(get("/v1/models", key));
  CHECK(models.status == 200);
  CHECK(models.json()["data"].size() == 1);
  const std::int64_t created = models.json()["data"][0]["created"];  // when the file was changed
  CHECK(created > 0);
  CHECK(created <= std::time(nullptr));
  for (const std::string& wrong : {std::string("lh-00"), key + "0", std::string("x")}) {
    const HttpReply refused = http.send(get("/v1/models", wrong));
    CHECK(refused.status == 401);
    CHECK(refused.json()["error"]["code"] == "invalid_api_key");
    CHECK(refused.head.contains("Connection: close"));
  }
  CHECK(http.send("GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n").status == 401);
  CHECK(http.send(get("/v1/nothing", key)).status == 404);
  CHECK(http.send(get("/v1/completions", key)).status == 405);
}

TEST_CASE("http: a connection serves one request after another") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  HttpClient client(http.path());
  for (int i = 0; i < 3; ++i) {
    client.write(get("/v1/models", key));
    CHECK(client.reply().status == 200);
  }
  client.write(post("/v1/completions", key, {{"model", 5}, {"prompt", "a"}}));
  const HttpReply refused = client.reply();
  CHECK(refused.status == 400);
  CHECK(refused.json()["error"]["param"] == "model");
  client.write(get("/v1/models", key));
  CHECK(client.reply().status == 200);
}

TEST_CASE("http: heads that are too long, ambiguous or malformed end the connection") {
  HttpSystem http;
  http.system().admit("ann");
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " +
                           http.key_of("ann") + "\r\n";
  const auto refused = [&](const std::string& request) {
    HttpClient client(http.path());
    client.write(request);
    const int status = client.reply().status;
    CHECK(client.is_closed());
    return status;
  };
  CHECK(refused(head + "X: " + std::string(32 << 10, 'a') + "\r\n\r\n") == 431);
  CHECK(refused(head + "Content-Length: 10000000\r\n\r\n") == 413);
  CHECK(refused(head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 400);
  CHECK(refused(head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello") == 400);
  CHECK(refused("nonsense\r\n\r\n") == 400);
  CHECK(refused(head + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" +
                std::string(600 << 10, 'a')) == 413);
  CHECK(http.send("GET /health HTTP/1.1\r\nHost: h\r\n\r\n").status == 200);
}

TEST_CASE("http: framing without end costs its connection, and no stream of another tenant") {
  HttpSystem http({"--slow-motion-us", "300"});
  for (const char* name : {"ann", "bob"}) http.system().admit(name);
  const std::string bob = http.key_of("bob");
  const std::string text_request = post("/v1/completions", bob, http.completion(bob, 60, true));
  const std::string alone = text_of(http.send(text_request));
  HttpClient reader(http.path());
  reader.write(text_request);
  REQUIRE(reader.read_until(has_events(2)));
  const std::string head = "POST /tokenize HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " +
                           http.key_of("ann") + "\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string many(1 << 20, 'a');
  for (const std::string& framing : {"1;" + many, std::string(1 << 20, '0'), "0\r\nX: " + many}) {
    HttpClient client(http.path());
    client.write(head + framing);
    CHECK(client.reply().status == 413);
    CHECK(client.is_closed());
  }
  CHECK(http.send(head + "1\r\na\r\nzz\r\n").status == 400);
  CHECK(text_of(reader.reply()) == alone);
}

TEST_CASE("http: bodies of wrong types are refused, short and long ones, and the worker goes on") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  Json body{{"model", http.model(key)},
            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"tool_choice", {{"function", {{"name", 5}}}}}};
  for (const std::size_t padding : {0, 100'000}) {  // a long one is parsed on another thread
    body["x"] = std::string(padding, 'a');
    const HttpReply refused = http.send(post("/v1/chat/completions", key, body));
    CHECK(refused.status == 400);
    CHECK(refused.json()["error"]["param"] == "tool_choice");
    Json wrong = body;
    wrong["messages"] = "Hi";
    for (const char* path : {"/tokenize", "/detokenize"})
      CHECK(http.send(post(path, key, wrong)).status == 400);
  }
  CHECK(http.send(get("/v1/models", key)).status == 200);
}

TEST_CASE("http: silent connections of one source do not shut out others") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<HttpClient>(http.path()));
  CHECK(http.send(get("/v1/models", key)).status == 200);
  CHECK(silent.front()->is_closed());
}

TEST_CASE("http: bodies that are expensive to parse cost their own tenant only") {
  HttpSystem http;
  for (const char* name : {"ann", "bob"}) http.system().admit(name);
  const std::string ann = http.key_of("ann");
  const HttpReply refused =
      http.send(post("/v1/completions", ann, {{"x", std::vector<std::string>(40'000)}}));
  CHECK(refused.status == 400);
  CHECK(refused.body.contains("more than 32768 objects"));

  // Ten seconds of her pace, with a burst of one second.
  const std::string large = post("/v1/completions", ann, {{"x", std::string(500'000, 'a')}});
  std::vector<std::unique_ptr<HttpClient>> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(std::make_unique<HttpClient>(http.path()));
    many.back()->write(large);
  }
  CHECK(http.send(post("/v1/completions", http.key_of("bob"), {{"x", 1}})).status == 400);
  CHECK_FALSE(many.back()->has_input());
}

TEST_CASE("http: the copies that choices make of a body are charged as bodies are") {
  HttpSystem http;
  for (const char* name : {"ann", "bob"}) http.system().admit(name);
  const std::string bob = http.key_of("bob");
  Json body = http.completion(http.key_of("ann"), 4, false);
  body["prompt"] = std::string(500'000, 'a');
  body["n"] = 16;
  HttpClient ann(http.path());
  ann.write(post("/v1/completions", http.key_of("ann"), body));  // three seconds of her pace
  for (int i = 0; i < 200; ++i) REQUIRE(http.send(get("/v1/models", bob)).status == 200);
  CHECK_FALSE(ann.has_input());
  CHECK(ann.reply().status == 400);
}

}  // namespace leasehold::testing
