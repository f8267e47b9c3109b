// A gateway in front of hosts that a test controls.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>

#include "tests/process/gateway/fake_host.hpp"
#include "tests/process/gateway/gateway_process.hpp"
#include "tests/process/tools/program_run.hpp"

using Catch::Contains;

namespace leasehold::testing {
namespace {

constexpr const char* kKey = "lh-key";
const std::vector<std::string> kQuick{"--beat-ms", "50", "--move-timeout-ms", "2000"};

std::string ask(const Json& body, const std::string& more = {}) {
  return post("/v1/chat/completions", kKey, body, more);
}

/// Three hosts with one text, and a gateway that has heard of all.
struct ThreeHosts {
  FakeHost a{"a"}, b{"b"}, c{"c"};
  GatewayProcess gateway;

  explicit ThreeHosts(std::vector<std::string> arguments = kQuick)
      : gateway({a.address(), b.address(), c.address()}, std::move(arguments)) {
    for (const char* name : {"name=a", "name=b", "name=c"})
      REQUIRE(eventually([&] { return gateway.logs(name); }));
  }
  std::vector<FakeHost*> all() { return {&a, &b, &c}; }
  /// The host that sends a text.
  FakeHost* serving() {
    FakeHost* found = nullptr;
    eventually([&] {
      for (FakeHost* host : all())
        if (host->running() > 0) found = host;
      return found != nullptr;
    });
    return found;
  }
  std::size_t running() const { return a.running() + b.running() + c.running(); }
  void allow(std::size_t tokens) {
    for (FakeHost* host : all()) host->allow(tokens);
  }
};

/// True for a stream with this word of FakeHost's text.
auto has_word(int position) {
  return [word = "w" + std::to_string(position) + " "](const std::string& text) {
    return text.contains(word);
  };
}

/// The text of the chunks of a chat.
std::string streamed(const HttpReply& reply) {
  std::string text;
  for (const std::string& event : reply.events()) {
    const Json json = Json::parse(event, nullptr, false);
    if (json.is_object()) text += json.at("choices").at(0).at("delta").at("content");
  }
  return text;
}

std::string content_of(const HttpReply& reply) {
  return reply.json().at("choices").at(0).at("message").at("content");
}

}  // namespace

TEST_CASE("gateway: a stream goes on through two deaths, each event once and with one time") {
  ThreeHosts hosts;
  hosts.allow(3);
  HttpClient client(hosts.gateway.address());
  client.write(ask(chat(true),
                   "X-Request-Id: x1\r\nLeasehold-Stream: 1\r\nleasehold-moved-from: "
                   "me\r\nX-Forwarded-For: 9.9.9.9\r\n"));
  REQUIRE(client.read_until(has_word(2)));
  FakeHost* const first = hosts.serving();
  REQUIRE(first != nullptr);
  const Asked asked = first->asked().at(0);
  CHECK(asked.field("Leasehold-Stream") == "50");
  CHECK(asked.field("Leasehold-Moved-From").empty());
  CHECK(asked.field("X-Request-Id") == "x1");
  CHECK(asked.field("X-Forwarded-For").empty());  // a user on a Unix socket has no address
  CHECK(asked.field("Authorization") == std::string("Bearer ") + kKey);
  first->die();
  REQUIRE(eventually([&] { return first->running() == 0; }));
  hosts.allow(6);
  REQUIRE(client.read_until(has_word(5)));
  FakeHost* const second = hosts.serving();
  REQUIRE(second != nullptr);
  REQUIRE(second != first);
  const Asked again = second->asked().at(0);
  CHECK(again.body.at("emitted") == Json::parse("[[100,101,102]]"));
  CHECK_FALSE(again.field("Leasehold-Moved-From").empty());
  CHECK(again.field("Leasehold-Created") == asked.field("Leasehold-Created"));
  CHECK(again.field("Leasehold-Request") == asked.field("Leasehold-Request"));
  second->die();
  hosts.allow(FakeHost::kTokens);
  const HttpReply reply = client.reply();
  CHECK(reply.status == 200);
  CHECK_THAT(reply.head, Contains("X-Request-Id: x1\r\n"));
  std::string text;
  const auto events = reply.events();
  REQUIRE(events.size() == FakeHost::kTokens + 1);
  CHECK(events.back() == "[DONE]");
  for (std::size_t i = 0; i < FakeHost::kTokens; ++i) {
    const Json event = Json::parse(events[i]);
    text += event.at("choices").at(0).at("delta").at("content");
    CHECK(std::to_string(event.at("created").get<std::int64_t>()) ==
          asked.field("Leasehold-Created"));
  }
  CHECK(text == fake_text());
  CHECK_FALSE(reply.body.contains(": t"));
  client.write(get("/v1/models", kKey));  // the connection serves another request
  CHECK(client.reply().status == 200);
}

TEST_CASE("gateway: without a stream the answer is whole after a death and after a frozen host") {
  ThreeHosts hosts;
  hosts.allow(2);
  HttpClient client(hosts.gateway.address());
  client.write(ask(chat(false)));
  FakeHost* const first = hosts.serving();
  REQUIRE(first != nullptr);
  first->die();
  REQUIRE(eventually([&] { return first->running() == 0; }));
  FakeHost* const second = hosts.serving();
  REQUIRE(second != nullptr);
  second->freeze();
  hosts.allow(FakeHost::kTokens);
  const HttpReply reply = client.reply();
  CHECK(reply.status == 200);
  CHECK_THAT(reply.head, Contains("Content-Type: application/json"));
  CHECK(content_of(reply) == fake_text());
  CHECK(eventually([&] { return hosts.gateway.logs("cause=silent"); }));
}

TEST_CASE("gateway: a host that drains is left once another one has caught up") {
  ThreeHosts hosts;
  hosts.allow(3);
  HttpClient client(hosts.gateway.address());
  client.write(ask(chat(true)));
  REQUIRE(client.read_until(has_word(2)));
  FakeHost* const first = hosts.serving();
  REQUIRE(first != nullptr);
  first->set_ready(false, "Draining");
  // The next host runs beside the first one, which ends once that one has caught up.
  REQUIRE(eventually([&] { return hosts.running() == 2; }));
  CHECK(first->running() == 1);
  for (FakeHost* host : hosts.all())
    if (host != first) host->allow(FakeHost::kTokens);
  const HttpReply reply = client.reply();
  CHECK(eventually([&] { return first->running() == 0; }));
  CHECK(streamed(reply) == fake_text());
  CHECK(eventually([&] { return hosts.gateway.logs("cause=draining"); }));
}

TEST_CASE("gateway: a text never continues on a host of another identity") {
  FakeHost one("one"), other("other", "another");
  GatewayProcess gateway({one.address(), other.address()},
                         {"--beat-ms", "50", "--move-timeout-ms", "300"});
  REQUIRE(eventually([&] { return gateway.logs("name=one") && gateway.logs("name=other"); }));
  one.allow(2);
  other.allow(2);
  HttpClient client(gateway.address());
  client.write(ask(chat(true)));
  REQUIRE(client.read_until(has_word(1)));
  FakeHost& first = one.running() > 0 ? one : other;
  FakeHost& second = one.running() > 0 ? other : one;
  first.die();
  second.allow(FakeHost::kTokens);
  const HttpReply reply = client.reply();
  REQUIRE_FALSE(reply.events().empty());
  CHECK(second.asked().empty());
  CHECK_THAT(reply.body, Contains("\"error\""));
  CHECK(reply.events().back() == "[DONE]");
  CHECK_FALSE(has_word(2)(reply.body));
}

TEST_CASE("gateway: a host that lacks the key of a text is passed over, and logged once") {
  ThreeHosts hosts;
  FakeHost* first = nullptr;
  for (std::size_t texts = 1; texts <= 2; ++texts) {
    hosts.allow(2);
    HttpClient client(hosts.gateway.address());
    client.write(ask(chat(true)));
    REQUIRE(client.read_until(has_word(1)));
    first = hosts.serving();
    REQUIRE(first != nullptr);
    for (FakeHost* host : hosts.all())
      if (host != first) host->refuse_with(401, "invalid_api_key");
    first->set_ready(false, "Draining");
    for (FakeHost* host : hosts.all())
      if (host != first) REQUIRE(eventually([&] { return host->asked().size() == texts; }));
    first->allow(FakeHost::kTokens);
    CHECK(streamed(client.reply()) == fake_text());
    first->set_ready(true);
    REQUIRE(eventually([&] {
      const std::string log = hosts.gateway.log();
      return log.find("state=ready", log.rfind("state=draining")) != std::string::npos;
    }));
  }
  const std::string log = hosts.gateway.log();
  for (FakeHost* host : hosts.all()) {
    const std::string line = "another host has accepted host=" + host->address();
    CHECK(log.contains(line) == (host != first));
    CHECK(log.find(line) == log.rfind(line));
  }
}

TEST_CASE("gateway: requests that no host can serve get a typed error at once") {
  FakeHost host("h");
  GatewayProcess gateway({host.address()}, kQuick);
  REQUIRE(gateway.has_health(200));
  const HttpReply unknown = gateway.send(ask(chat(false, "other model")));
  CHECK(unknown.status == 404);
  CHECK_THAT(unknown.body, Contains("model_not_found") && Contains("other model"));
  CHECK(eventually([&] { return gateway.logs("code=model_not_found"); }));
  const HttpReply emitted = gateway.send(ask({{"model", "m"}, {"emitted", Json::array()}}));
  CHECK(emitted.status == 400);
  CHECK_THAT(emitted.body, Contains("emitted"));
  CHECK(gateway.send(get("/leasehold/host", kKey)).status == 404);
  host.refuse_with(400, "BadRequest");
  const std::size_t connections = host.connections();
  for (int i = 0; i < 5; ++i) CHECK(gateway.send(ask(chat(true))).status == 400);
  CHECK(host.connections() <= connections + 2);  // a refusal leaves its connection open
  host.refuse_with(429, "QuotaTokens");
  CHECK(gateway.send(ask(chat(true))).status == 429);
  host.refuse_with(0, "");
  CHECK(gateway.send(ask(chat(false))).status == 200);  // the quota was the tenant's
  host.refuse_with(503, "NoModelLoaded");
  CHECK(gateway.send(ask(chat(true))).status == 503);
  host.refuse_with(0, "");
  CHECK_THAT(gateway.send(ask(chat(true))).body, Contains("QueueFull"));  // it asked for a pause
  host.set_ready(false, "NoModelLoaded");
  REQUIRE(gateway.has_health(503));
  CHECK(gateway.send(get("/health/live", "")).status == 200);
  const HttpReply none = gateway.send(ask(chat(true)));
  CHECK(none.status == 503);
  CHECK_THAT(none.body, Contains("NoModelLoaded"));
  const HttpReply message = gateway.send(post("/v1/messages", kKey, chat(false)));
  CHECK(message.json().at("type") == "error");
  CHECK(message.json().at("error").at("type") == "overloaded_error");
}

TEST_CASE("gateway: a client that leaves ends its text at the host") {
  FakeHost host("h");
  host.allow(1);
  GatewayProcess gateway({host.address()}, kQuick);
  REQUIRE(gateway.has_health(200));
  HttpClient client(gateway.address());
  client.write(ask(chat(true)));
  REQUIRE(client.read_until(has_word(0)));
  client.close();
  CHECK(eventually([&] { return host.running() == 0; }));
}

TEST_CASE("gateway: lists are those of all hosts; cancellations and files find their host") {
  FakeHost a("a", "same", "small"), b("b", "same", "large");
  GatewayProcess gateway({a.address(), b.address()}, {"--metrics", "127.0.0.1:0"});
  REQUIRE(eventually([&] { return gateway.logs("name=a") && gateway.logs("name=b"); }));
  const Json models = gateway.send(get("/v1/models", kKey)).json();
  CHECK(models.at("data").size() == 4);  // two models, and an adapter of each
  CHECK(gateway.send(get("/v1/models/l%61rge", kKey)).json().at("id") == "large");
  const HttpReply cancelled = gateway.send(post("/v1/requests/b/cancel", kKey, Json::object()));
  CHECK(cancelled.status == 200);
  CHECK(cancelled.json().at("id") == "b");
  CHECK(gateway.send(post("/v1/requests/x/cancel", kKey, Json::object())).status == 404);
  CHECK(gateway.send(get("/v1/files/a", kKey)).json().at("id") == "a");
  CHECK(gateway.send(get("/v1/files/b", kKey)).json().at("id") == "b");
  CHECK(gateway.send(get("/v1/files/x", kKey)).status == 404);
  CHECK(gateway.send(post("/tokenize", kKey, {{"model", "large"}})).json().at("host") == "b");
  HttpClient metrics(gateway.logged_address("metrics ready address="));
  metrics.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string page = metrics.reply().body;
  CHECK_THAT(page, Contains("leasehold_gateway_host_ready{host=\"" + a.address() + "\"} 1"));
  CHECK_THAT(page, Contains("leasehold_gateway_requests_total{status=\"404\"} 2"));
}

TEST_CASE("gateway: an answer without a body leaves its connection usable") {
  FakeHost host("h");
  GatewayProcess gateway({host.address()});
  REQUIRE(gateway.has_health(200));
  HttpClient client(gateway.address());
  client.write("OPTIONS /v1/models HTTP/1.1\r\nHost: h\r\n\r\n");
  const HttpReply allowed = client.reply();
  CHECK(allowed.status == 204);
  CHECK_FALSE(allowed.head.contains("Transfer-Encoding"));
  client.write(get("/v1/models", kKey));
  CHECK(client.reply().status == 200);
}

TEST_CASE("gateway: SIGTERM lets running texts end and takes no new ones") {
  FakeHost host("h");
  host.allow(1);
  GatewayProcess gateway({host.address()}, kQuick);
  REQUIRE(gateway.has_health(200));
  HttpClient client(gateway.address());
  client.write(ask(chat(true)));
  REQUIRE(client.read_until(has_word(0)));
  gateway.child().signal(SIGTERM).value();
  REQUIRE(eventually([&] { return gateway.logs("gateway drains requests=1"); }));
  CHECK_THROWS(HttpClient(gateway.address()));
  host.allow(FakeHost::kTokens);
  CHECK(streamed(client.reply()) == fake_text());
  CHECK(exit_status_of(gateway.child()) == 0);
}

TEST_CASE("gateway: a configuration with an error names the value and what to do") {
  auto directory = TemporaryDirectory::create("gateway").value();
  const std::string file = directory.file("gateway.toml");
  const auto errors_of = [&](const std::string& text) {
    std::ofstream(file) << text;
    const ProgramEnd end = run_to_end("leasehold-gateway", {"--config", file});
    CHECK(end.exit_code != 0);
    CAPTURE(text);
    return end.errors;
  };
  const std::string hosts = "hosts = [\"http://127.0.0.1:1\"]\n";
  const std::string listen = "listen = \"" + directory.file("s") + "\"\n";
  CHECK_THAT(errors_of(listen), Contains("either --hosts or --cell"));
  CHECK_THAT(errors_of("hosts = [\"http://127.0.0.1:1\", \"http://127.0.0.1:1\"]\n"),
             Contains("http://127.0.0.1:1 is named twice"));
  CHECK_THAT(errors_of("hosts = [\"ftp://h:1\"]\n"), Contains("'ftp://h:1' is not a host"));
  CHECK_THAT(errors_of("hosts = [\"http://h\"]\n"), Contains("no port"));
  CHECK_THAT(errors_of(hosts + "cell = \"/c.toml\"\n"), Contains("exclude each other"));
  CHECK_THAT(errors_of("cell = \"" + directory.file("none") + "\"\n"),
             Contains("--cell: ") && Contains("none"));
  const std::string exposed = "hosts = [\"http://gpu1:80\"]\nlisten = \"10.0.0.1:80\"\n";
  CHECK_THAT(errors_of(exposed), Contains("http://gpu1:80") && Contains("--plaintext-hosts"));
  CHECK_THAT(errors_of(exposed + "plaintext-hosts = true\n"), Contains("--tls-certificate"));
  CHECK_THAT(errors_of("hosts = [\"http://LOCALHOST:80\"]\nlisten = \"10.0.0.1:80\"\n"),
             !Contains("--plaintext-hosts"));
  CHECK_THAT(errors_of(hosts + "host = 1\n"), Contains("gateway.toml:2") && Contains("host"));
  CHECK_THAT(errors_of(hosts + "beat-ms = 1\n"), Contains("beat-ms"));
  CHECK_THAT(errors_of(hosts + "tls-key = \"k\"\n"), Contains("needs --tls-certificate"));
  CHECK_THAT(errors_of(hosts + listen + "tls-key = \"" + directory.file("k") +
                       "\"\ntls-certificate = \"" + directory.file("c") + "\"\n"),
             Contains(directory.file("c")) && Contains("FileNotFound"));
  for (const char* name : {"c", "k"}) std::ofstream(directory.file(name)) << "no certificate";
  const std::string encrypted = hosts + listen + "tls-key = \"" + directory.file("k") +
                                "\"\ntls-certificate = \"" + directory.file("c") + "\"\n";
  CHECK_THAT(errors_of(encrypted),
             Contains("other users can read") && Contains("PermissionDenied"));
  REQUIRE(::chmod(directory.file("k").c_str(), 0600) == 0);
  CHECK_THAT(errors_of(encrypted), Contains(directory.file("c")) && Contains("FileCorrupt"));
  CHECK_THAT(errors_of(hosts + listen + "host-ca = \"" + directory.file("c") + "\"\n"),
             Contains(directory.file("c") + " has no certificate"));
  CHECK_THAT(errors_of(hosts + "listen = \"10.0.0.1:80\"\n"), Contains("--tls-certificate"));
  FakeHost host("h");
  GatewayProcess running({host.address()});
  CHECK_THAT(errors_of(hosts + "listen = \"" + running.address() + "\"\n"),
             Contains("SocketInUse"));
}

TEST_CASE(
    "gateway: a file of its cell that it cannot read is an error that says whose it must be") {
  auto directory = TemporaryDirectory::create("gateway").value();
  const std::string file = directory.file("cell.toml"), password = directory.file("password");
  std::ofstream(file) << "cell = \"c\"\netcd-user = \"u\"\netcd-password-file = \"" << password
                      << "\"\n";
  std::ofstream(password) << "secret\n";
  std::vector<std::string> argv{program_path("leasehold-gateway"), "--cell", file};
  // Root reads every file, unless it has not these rights.
  if (::geteuid() == 0)
    argv.insert(argv.begin(),
                {"/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"});
  const auto error_without = [&](const std::string& unreadable) {
    REQUIRE(::chmod(unreadable.c_str(), 0) == 0);
    const std::string log = directory.file("log");
    Child child = Child::start({.argv = argv, .log_path = log}).value();
    CHECK(exit_status_of(child) == 2);
    const std::string text = file_bytes(log);
    CHECK_THAT(text, Contains(unreadable + ": Permission denied"));
    CHECK_THAT(text, !Contains("secret"));
    return text;
  };
  const std::string user = std::to_string(::geteuid());
  CHECK_THAT(error_without(password),
             Contains("--etcd-password-file") && Contains("the user of this program, " + user));
  CHECK_THAT(error_without(file), Contains("user " + user) && Contains("gateway-cell.toml"));
}

}  // namespace leasehold::testing
