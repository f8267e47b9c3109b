// Files, batches and lists behind a gateway, and its list of hosts.
#include <catch2/catch.hpp>
#include <fstream>
#include <memory>

#include "tests/process/gateway/fake_host.hpp"
#include "tests/process/gateway/gateway_process.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

constexpr const char* kFilesKey = "lh-files";

Json file_entry(const std::string& id, std::int64_t created_at) {
  return {{"id", id}, {"object", "file"}, {"created_at", created_at}};
}

/// Two hosts and a gateway that has heard of both.
struct TwoHosts {
  FakeHost a{"a"}, b{"b"};
  GatewayProcess gateway;

  TwoHosts() : gateway({a.address(), b.address()}) {
    REQUIRE(eventually([&] { return gateway.logs("name=a") && gateway.logs("name=b"); }));
  }
  std::string ids_at(const std::string& target) const {
    const HttpReply reply = gateway.send(get(target, kFilesKey));
    CAPTURE(reply.body);
    REQUIRE(reply.status == 200);
    std::string ids;
    const Json list = reply.json();
    for (const Json& entry : list.at("data")) ids += entry.at("id").get<std::string>() + " ";
    return ids;
  }
};

std::string upload_head(const std::string& framing) {
  return std::string("POST /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ") + kFilesKey +
         "\r\nContent-Type: multipart/form-data; boundary=b\r\n" + framing + "\r\n";
}

}  // namespace

TEST_CASE("gateway: an upload of any size passes through to the host of its key") {
  TwoHosts hosts;
  constexpr std::size_t kSize = 3 << 20;
  HttpClient client(hosts.gateway.address());
  client.write(
      upload_head("Content-Length: " + std::to_string(kSize) + "\r\nExpect: 100-continue\r\n"));
  REQUIRE(client.read_until(
      [](const std::string& text) { return text.contains("100 Continue\r\n\r\n"); }));
  client.write(std::string(kSize, 'x'));
  const HttpReply whole = client.reply();
  CHECK_THAT(whole.body, Contains("\"bytes\":" + std::to_string(kSize)));
  client.write(upload_head("Transfer-Encoding: chunked\r\n"));  // on the same connection
  client.write("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
  const HttpReply chunked = client.reply();
  CHECK_THAT(chunked.body, Contains("\"bytes\":6"));
  CHECK(hosts.a.posts() + hosts.b.posts() == 2);
  CHECK((hosts.a.posts() == 0 || hosts.b.posts() == 0));
  (hosts.a.posts() > 0 ? hosts.a : hosts.b).set_keeps_files(false);
  REQUIRE(eventually([&] {
    HttpClient other(hosts.gateway.address());
    other.write(upload_head("Content-Length: 2\r\n") + "ab");
    return other.reply().status == 200 && hosts.a.posts() > 0 && hosts.b.posts() > 0;
  }));
}

TEST_CASE(
    "gateway: an upload that its host refuses early is answered, though the client sends on") {
  TwoHosts hosts;
  hosts.a.answer_uploads_with(413);
  hosts.b.answer_uploads_with(413);
  constexpr std::size_t kSize = 2 << 20;
  HttpClient client(hosts.gateway.address());
  client.write(upload_head("Content-Length: " + std::to_string(kSize) + "\r\n") +
               std::string(kSize, 'x'));
  const HttpReply refused = client.reply();
  CHECK(refused.status == 413);
  CHECK_THAT(refused.body, Contains("no uploads today"));
}

TEST_CASE("gateway: what stores something is sent once, also when a kept connection closes") {
  TwoHosts hosts;
  hosts.gateway.send(get("/v1/files/a", kFilesKey));  // leaves connections that are kept
  hosts.a.drop_posts();
  hosts.b.drop_posts();
  const HttpReply batch =
      hosts.gateway.send(post("/v1/batches", kFilesKey, {{"input_file_id", "file-1"}}));
  CHECK(batch.status == 503);
  CHECK_THAT(batch.body, Contains("ConnectionLost"));
  CHECK(hosts.a.posts() + hosts.b.posts() == 1);
  const HttpReply upload = hosts.gateway.send(upload_head("Content-Length: 2\r\n") + "ab");
  CHECK(upload.status == 503);
  CHECK_THAT(upload.body, Contains("may not be stored"));
  CHECK(hosts.a.posts() + hosts.b.posts() == 2);
}

TEST_CASE("gateway: embeddings go to another host when theirs dies before it answers") {
  TwoHosts hosts;
  const std::string request = post("/v1/embeddings", kFilesKey, {{"model", "m"}, {"input", "x"}});
  const HttpReply first = hosts.gateway.send(request);
  REQUIRE(first.status == 200);
  FakeHost& one = first.json().at("host") == "a" ? hosts.a : hosts.b;
  FakeHost& other = &one == &hosts.a ? hosts.b : hosts.a;
  one.drop_posts();
  const HttpReply second = hosts.gateway.send(request);
  CHECK(second.status == 200);
  CHECK(other.posts() == 1);
  other.drop_posts();
  const std::size_t of_one = one.posts(), of_other = other.posts();
  const HttpReply lost = hosts.gateway.send(request);
  CHECK(lost.status == 503);
  CHECK_THAT(lost.body, Contains("ConnectionLost"));
  CHECK(one.posts() > of_one);
  CHECK(other.posts() > of_other);
}

TEST_CASE("gateway: lists of files are those of all hosts, page by page") {
  TwoHosts hosts;
  hosts.a.set_files({file_entry("a9", 9), file_entry("a5", 5), file_entry("a4", 4)});
  hosts.b.set_files({file_entry("b7", 7), file_entry("b5", 5)});
  CHECK(hosts.ids_at("/v1/files?limit=2") == "a9 b7 ");
  const std::string rest = hosts.ids_at("/v1/files?limit=10&after=b7");
  CHECK((rest == "a5 b5 a4 " || rest == "b5 a5 a4 "));  // the order of addresses
  CHECK(hosts.ids_at("/v1/files?after=a4").empty());
  CHECK(hosts.ids_at("/v1/files?after=none").empty());
  std::vector<Json> many{file_entry("b-old", 1)};
  for (int i = 0; i < 150; ++i)
    many.insert(many.begin(), file_entry("b" + std::to_string(1'000 + i), 100 + i));
  hosts.b.set_files(many);
  CHECK(hosts.ids_at("/v1/files?limit=1&after=a4") == "b-old ");  // page 151 of one entry each
  hosts.b.set_files({file_entry("b7", 7), file_entry("b5", 5)});
  CHECK(hosts.gateway.send(get("/v1/files/b5", kFilesKey)).json().at("created_at") == 5);
  const HttpReply bad = hosts.gateway.send(get("/v1/files?limit=0", kFilesKey));
  CHECK(bad.status == 400);
  CHECK_THAT(bad.body, Contains("limit is '0'"));
  hosts.a.set_requests(R"({"object":"list","data":[{"id":"r1"},{"id":"r3"}]})");
  hosts.b.set_requests(R"({"object":"list","data":[{"id":"r2"}]})");
  CHECK(hosts.ids_at("/v1/requests") == "r1 r2 r3 ");
  CHECK(hosts.ids_at("/v1/requests?after=r1&limit=1") == "r2 ");
  CHECK_THAT(hosts.gateway.send(get("/v1/requests?limit=0", kFilesKey)).body,
             Contains(R"("param":"limit")"));
  hosts.b.set_requests(R"({"data":[{"id":"r2","x":)" + std::string(50'000, '[') +
                       std::string(50'000, ']') + "}]}");
  const HttpReply partial = hosts.gateway.send(get("/v1/requests", kFilesKey));
  CHECK(partial.status == 200);
  CHECK_THAT(partial.head, Contains("Leasehold-Missing-Hosts: 1\r\n"));
  const std::string lost = "host lost host=" + hosts.b.address();
  hosts.b.die();
  REQUIRE(eventually([&] { return hosts.gateway.logs(lost); }));
  CHECK(hosts.gateway.send(get("/v1/files/a5", kFilesKey)).status == 200);
  CHECK_THAT(hosts.gateway.send(get("/v1/models", kFilesKey)).head,
             Contains("Leasehold-Missing-Hosts: 1\r\n"));
  const HttpReply unknown = hosts.gateway.send(get("/v1/files/b5", kFilesKey));
  CHECK(unknown.status == 503);  // the host that does not answer may have it
  CHECK_THAT(unknown.body, Contains("1 of 2 hosts do not answer"));
}

TEST_CASE("gateway: SIGHUP changes the hosts, and a text of a removed one moves") {
  FakeHost a("a"), b("b");
  auto directory = TemporaryDirectory::create("gateway").value();
  const std::string file = directory.file("gateway.toml");
  const auto write = [&](const std::string& hosts) {
    std::ofstream(file) << "hosts = [" << hosts << "]\nbeat-ms = 50\n";
  };
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  write(quoted(a.address()));
  GatewayProcess gateway({}, {"--config", file});
  REQUIRE(gateway.has_health(200));
  a.allow(3);
  HttpClient client(gateway.address());
  client.write(post("/v1/chat/completions", kFilesKey, chat(true)));
  REQUIRE(client.read_until([](const std::string& text) { return text.contains("w2 "); }));

  write("\"ftp://x:1\"");
  gateway.child().signal(SIGHUP).value();
  REQUIRE(eventually([&] { return gateway.logs("the hosts stay as they are"); }));
  CHECK(eventually([&] { return gateway.logs("'ftp://x:1' is not a host"); }));
  CHECK_FALSE(gateway.logs("host removed"));

  write(quoted(b.address()));
  gateway.child().signal(SIGHUP).value();
  REQUIRE(eventually([&] { return gateway.logs("text moves"); }));
  CHECK(eventually(
      [&] { return gateway.logs("host removed host=" + a.address() + " running_requests=1"); }));
  const HttpReply reply = client.reply();
  CHECK_THAT(reply.body, Contains("w9 ") && Contains("[DONE]") && !Contains("error"));
  CHECK(eventually([&] { return gateway.logs("cause=draining"); }));
  REQUIRE(eventually([&] { return gateway.logs("host left host=" + a.address()); }));
  const std::size_t asked = a.asked().size();
  for (int i = 0; i < 3; ++i)
    CHECK(gateway.send(post("/v1/chat/completions", kFilesKey, chat(false))).status == 200);
  CHECK(a.asked().size() == asked);
}

TEST_CASE("gateway: an answer says at its start that it cannot continue elsewhere") {
  FakeHost host("h");
  GatewayProcess gateway({host.address()});
  REQUIRE(gateway.has_health(200));
  Json body = chat(true);
  CHECK_THAT(gateway.send(post("/v1/chat/completions", kFilesKey, body)).head,
             !Contains("Leasehold-Continue"));
  host.allow(0);
  body["unused"] = std::string(511 << 10, 'x');
  const std::string large = post("/v1/chat/completions", kFilesKey, body);
  constexpr std::size_t kHeld = 32;  // half of what the gateway keeps for all owners
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (std::size_t i = 0; i < kHeld; ++i) {
    clients.push_back(std::make_unique<HttpClient>(gateway.address()));
    clients.back()->write(large);
  }
  REQUIRE(eventually([&] { return host.running() == kHeld; }));
  HttpClient client(gateway.address());
  client.write(large);
  CHECK(client.read_until(
      [](const std::string& text) { return text.contains("Leasehold-Continue: no\r\n"); }));
}

TEST_CASE("gateway: another arithmetic continues a text only if its request says so") {
  const std::string content = "sha256:" + std::string(64, '1');
  for (const bool is_asked : {false, true}) {
    FakeHost one("one", content + "/int8/f16/1"), other("other", content + "/f32/f16/1");
    GatewayProcess gateway({one.address(), other.address()},
                           {"--beat-ms", "50", "--move-timeout-ms", "300"});
    REQUIRE(eventually([&] { return gateway.logs("name=one") && gateway.logs("name=other"); }));
    one.allow(2);
    other.allow(2);
    Json body = chat(true);
    if (is_asked) body["any_arithmetic"] = true;
    HttpClient client(gateway.address());
    client.write(post("/v1/chat/completions", kFilesKey, body));
    REQUIRE(client.read_until([](const std::string& text) { return text.contains("w1 "); }));
    FakeHost& first = one.running() > 0 ? one : other;
    FakeHost& second = one.running() > 0 ? other : one;
    first.die();
    second.allow(FakeHost::kTokens);
    const std::string text = client.reply().body;
    CHECK(text.contains("w9 ") == is_asked);
    CHECK(second.asked().size() == (is_asked ? 1 : 0));
    const auto is_logged = [&] { return gateway.logs("another arithmetic"); };
    CHECK((is_asked ? eventually(is_logged) : !is_logged()));
  }
  FakeHost host("h");
  GatewayProcess gateway({host.address()});
  REQUIRE(gateway.has_health(200));
  Json body = chat(true);
  body["any_arithmetic"] = "yes";
  const HttpReply refused = gateway.send(post("/v1/chat/completions", kFilesKey, body));
  CHECK(refused.status == 400);
  CHECK_THAT(refused.body, Contains("any_arithmetic is"));
}

}  // namespace leasehold::testing
