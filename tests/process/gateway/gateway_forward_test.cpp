// Requests whose text cannot continue elsewhere or that have none, and a gateway that stops.
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/process/gateway/fake_host.hpp"
#include "tests/process/gateway/gateway_process.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

constexpr const char* kForwardKey = "lh-key";

std::string embedding() {
  return post("/v1/embeddings", kForwardKey, {{"model", "m"}, {"input", "x"}});
}

/// Two hosts; `one` gets the embeddings of the test's key.
struct EmbeddingHosts {
  FakeHost a{"a"}, b{"b"};
  GatewayProcess gateway{{a.address(), b.address()}, {"--metrics", "127.0.0.1:0"}};
  FakeHost* one = nullptr;
  FakeHost* other = nullptr;

  EmbeddingHosts() {
    REQUIRE(eventually([&] { return gateway.logs("name=a") && gateway.logs("name=b"); }));
    const HttpReply first = gateway.send(embedding());
    REQUIRE(first.status == 200);
    const bool is_a = first.json().at("host") == "a";
    one = is_a ? &a : &b;
    other = is_a ? &b : &a;
  }
};

/// One host, and a gateway that keeps connections to it.
struct OneHost {
  FakeHost host{"h"};
  GatewayProcess gateway{{host.address()}};

  OneHost() { REQUIRE(gateway.has_health(200)); }

  /// A stream that takes the connection of the answer that `earlier` got or gets. That client
  /// leaves in the middle of the stream.
  HttpReply stream_while_leaves(HttpClient& earlier) {
    host.allow(1);
    HttpClient client(gateway.address());
    client.write(post("/v1/chat/completions", kForwardKey, chat(true), "Last-Event-ID: 1\r\n"));
    REQUIRE(client.read_until([](const std::string& text) { return text.contains("w0 "); }));
    earlier.close();
    // The gateway reads the end of the connection before a request that arrives after it.
    REQUIRE(gateway.has_health(200));
    host.allow(FakeHost::kTokens);
    return client.reply();
  }
};

/// One host, and a gateway that waits for no text after SIGTERM.
struct ImpatientGateway {
  FakeHost host{"h"};
  GatewayProcess gateway{{host.address()}, {"--beat-ms", "50", "--drain-timeout-ms", "1"}};
  HttpClient client;

  ImpatientGateway() : client((gateway.has_health(200), gateway.address())) { host.allow(2); }

  /// The answer to a chat that begins, and is cut after two words.
  HttpReply cut(const Json& body, const std::string& more = {}) {
    client.write(post("/v1/chat/completions", kForwardKey, body, more));
    const bool is_stream = body.value("stream", false);
    if (is_stream) {
      REQUIRE(client.read_until([](const std::string& text) { return text.contains("w1 "); }));
    }
    REQUIRE(eventually([&] { return host.running() == 1; }));
    gateway.child().signal(SIGTERM).value();
    HttpReply reply = client.reply();
    CHECK(exit_status_of(gateway.child()) == 0);
    CHECK(eventually([&] { return gateway.logs("gateway stops requests_cut=1"); }));
    return reply;
  }
};

Json resumable_chat() {
  Json body = chat(true);
  body["resumable"] = true;
  return body;
}

/// The error event of a chat's stream, which is the last one before the end.
Json error_of(const HttpReply& reply) {
  const auto events = reply.events();
  REQUIRE(events.size() >= 2);
  CHECK(events.back() == "[DONE]");
  return Json::parse(events[events.size() - 2]).at("error");
}

}  // namespace

TEST_CASE("gateway: embeddings go to another host when theirs drains") {
  EmbeddingHosts hosts;
  hosts.one->refuse_with(503, "Draining");
  const HttpReply moved = hosts.gateway.send(embedding());
  CHECK(moved.status == 200);
  CHECK(hosts.other->posts() == 1);
  hosts.other->refuse_with(503, "Draining");
  const HttpReply refused = hosts.gateway.send(embedding());
  CHECK(refused.status == 503);
  CHECK_THAT(refused.body, Contains("Draining") || Contains("QueueFull"));
}

TEST_CASE("gateway: a request that is wrong is refused by one host") {
  EmbeddingHosts hosts;
  hosts.one->refuse_with(400, "BadRequest");
  const HttpReply refused = hosts.gateway.send(embedding());
  CHECK(refused.status == 400);
  CHECK_THAT(refused.body, Contains("BadRequest"));
  CHECK(hosts.other->posts() == 0);
}

TEST_CASE("gateway: embeddings leave a host that is frozen") {
  EmbeddingHosts hosts;
  hosts.one->freeze();
  const HttpReply moved = hosts.gateway.send(embedding());
  CHECK(moved.status == 200);
  CHECK(hosts.other->posts() == 1);
  // It is asked at all unless its report was overdue already.
  if (hosts.one->posts() == 2) CHECK(eventually([&] { return hosts.gateway.logs("is silent"); }));
}

TEST_CASE("gateway: a client that leaves ends a request on a connection that was kept") {
  EmbeddingHosts hosts;
  HttpClient metrics(hosts.gateway.logged_address("metrics ready address="));
  const auto connections = [&] {
    metrics.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string page = metrics.reply().body;
    const std::string name = "\nleasehold_gateway_connections ";
    return std::stoi(page.substr(page.find(name) + name.size()));
  };
  REQUIRE(eventually([&] { return connections() == 0; }));
  hosts.a.freeze();
  hosts.b.freeze();  // neither is left for the other
  HttpClient client(hosts.gateway.address());
  client.write(embedding());
  REQUIRE(eventually([&] { return hosts.one->posts() == 2; }));
  client.close();
  CHECK(eventually([&] { return connections() == 0; }));
  CHECK(hosts.one->posts() == 2);
}

TEST_CASE("gateway: a client that leaves a refusal unread ends no other request") {
  OneHost one;
  one.host.refuse_with(400, "BadRequest", std::string(900 << 10, 'x'));
  HttpClient refused(one.gateway.address());
  refused.write(embedding());
  REQUIRE(refused.read_until([](const std::string& text) { return text.contains("xxx"); }));
  one.host.refuse_with(0, "");
  const HttpReply reply = one.stream_while_leaves(refused);
  CHECK_THAT(reply.body, Contains("w9 ") && !Contains("ConnectionLost"));
}

TEST_CASE("gateway: a client that leaves after its upload ends no other request") {
  OneHost one;
  HttpClient uploading(one.gateway.address());
  uploading.write(std::string("POST /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ") +
                  kForwardKey +
                  "\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                  "Content-Length: 2\r\n\r\nab");
  REQUIRE(uploading.reply().status == 200);
  const HttpReply reply = one.stream_while_leaves(uploading);
  CHECK_THAT(reply.body, Contains("w9 ") && !Contains("ConnectionLost"));
}

TEST_CASE("gateway: a stream that outlasts the drain ends with an error that says how to go on") {
  ImpatientGateway stopping;
  const Json error = error_of(stopping.cut(resumable_chat()));
  CHECK(error.at("code") == "Draining");
  CHECK_THAT(error.at("message").get<std::string>(),
             Contains("gateway stops") && Contains("Last-Event-ID"));
}

TEST_CASE("gateway: a stream that cannot be resumed is to be asked for again") {
  ImpatientGateway stopping;
  const Json error = error_of(stopping.cut(chat(true)));
  CHECK(error.at("code") == "Draining");
  CHECK_THAT(error.at("message").get<std::string>(),
             Contains("send the request again") && !Contains("Last-Event-ID"));
}

TEST_CASE("gateway: an answer without a stream that outlasts the drain is refused with Draining") {
  ImpatientGateway stopping;
  const HttpReply reply = stopping.cut(chat(false));
  CHECK(reply.status == 503);
  CHECK(reply.json().at("error").at("code") == "Draining");
}

TEST_CASE("gateway: a drain waits for a stream that was resumed, and ends it with an error") {
  ImpatientGateway stopping;
  const Json error = error_of(stopping.cut(resumable_chat(), "Last-Event-ID: 1\r\n"));
  CHECK(error.at("code") == "Draining");
  CHECK_THAT(error.at("message").get<std::string>(), Contains("Last-Event-ID"));
}

TEST_CASE(
    "gateway: without another host a resumed stream ends with an error that says how to go on") {
  FakeHost host("h");
  host.allow(2);
  GatewayProcess gateway({host.address()}, {"--move-timeout-ms", "100"});
  REQUIRE(gateway.has_health(200));
  HttpClient client(gateway.address());
  client.write(post("/v1/chat/completions", kForwardKey, resumable_chat(), "Last-Event-ID: 1\r\n"));
  REQUIRE(client.read_until([](const std::string& text) { return text.contains("w1 "); }));
  host.die();
  const Json error = error_of(client.reply());
  CHECK(error.at("code") == "ConnectionLost");
  CHECK_THAT(error.at("message").get<std::string>(), Contains("Last-Event-ID"));
}

TEST_CASE("gateway: a resumed stream continues on another host, which gets the client's last id") {
  FakeHost a("a"), b("b");
  a.allow(3);
  b.allow(3);
  GatewayProcess gateway({a.address(), b.address()}, {"--beat-ms", "50"});
  REQUIRE(eventually([&] { return gateway.logs("name=a") && gateway.logs("name=b"); }));
  HttpClient client(gateway.address());
  client.write(post("/v1/chat/completions", kForwardKey, resumable_chat(), "Last-Event-ID: 1\r\n"));
  REQUIRE(client.read_until([](const std::string& text) { return text.contains("w2 "); }));
  FakeHost& first = a.running() > 0 ? a : b;
  FakeHost& second = a.running() > 0 ? b : a;
  second.allow(FakeHost::kTokens);
  first.die();
  const HttpReply reply = client.reply();
  CHECK(reply.events().back() == "[DONE]");
  CHECK(reply.events().size() == FakeHost::kTokens + 1);
  CHECK_THAT(reply.head, !Contains("Leasehold-Continue"));
  REQUIRE(second.asked().size() == 1);
  CHECK(second.asked()[0].field("Last-Event-ID") == "1");
  CHECK(second.asked()[0].body.at("emitted") == Json::array({Json::array({100, 101, 102})}));
}

TEST_CASE("gateway: a host whose refusal is too large to be kept is not a dead host") {
  EmbeddingHosts hosts;
  for (FakeHost* host : {hosts.one, hosts.other})
    host->refuse_with(400, "BadRequest", std::string(2 << 20, 'x'));
  const HttpReply embedding_refused = hosts.gateway.send(embedding());
  CHECK(embedding_refused.status == 400);
  CHECK(embedding_refused.json().at("error").at("code") == "MessageTooLarge");
  CHECK(hosts.other->posts() == 0);
  const HttpReply text_refused =
      hosts.gateway.send(post("/v1/chat/completions", kForwardKey, chat(true)));
  CHECK(text_refused.status == 400);
  CHECK(hosts.one->asked().size() + hosts.other->asked().size() == 1);
}

}  // namespace leasehold::testing
