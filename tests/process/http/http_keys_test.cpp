// The lease that the requests of an API key share, with real processes.
#include <catch2/catch.hpp>
#include <chrono>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

const std::string kLongTime = "3600000";

std::string id_of(const std::string& key) {
  return api_key_id(hash_of_api_key(key)).value;
}

std::size_t count_live(HttpSystem& http, const std::string& tenant) {
  const auto leases = http.system().leases_of(tenant);
  return static_cast<std::size_t>(std::ranges::count_if(
      leases, [](const wire::LeaseView& lease) { return lease.state == LeaseState::Live; }));
}

/// A worker whose leases stay idle for long, and its page of metrics.
class CachingSystem {
 public:
  HttpSystem& http() { return http_; }
  /// Of a counter without labels. The page is at most a second old, so this waits until
  /// `requests` have been counted.
  double counted(const std::string& name, int requests) {
    std::string page;
    const std::string done = "reason=\"MaxTokensReached\"} " + std::to_string(requests) + "\n";
    REQUIRE(eventually([&] {
      HttpClient client(address_);
      client.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
      page = client.reply().body;
      return page.contains(done) && page.contains("leasehold_requests{state=\"running\"} 0\n");
    }));
    const auto at = page.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stod(page.substr(at + name.size() + 2));
  }

 private:
  HttpSystem http_{
      {"--slow-motion-us", "30", "--metrics", "127.0.0.1:0", "--http-idle-ttl-ms", kLongTime}};
  std::string address_ = logged_address(http_.system(), "metrics ready address=");
};

}  // namespace

TEST_CASE("http keys: a second request of a key computes less of an equal prompt, others all") {
  CachingSystem caching;
  HttpSystem& http = caching.http();
  for (const char* tenant : {"ann", "bob"}) http.system().admit(tenant);
  const std::string key = http.key_of("ann");
  Json body = http.completion(key, 4, false);
  std::vector<int> prompt(100);
  for (int i = 0; i < 100; ++i) prompt[static_cast<std::size_t>(i)] = 300 + i;
  body["prompt"] = prompt;
  const std::string hits = "leasehold_prefix_hit_tokens_total";
  int requests = 0;
  const auto ask = [&](const std::string& as) {
    REQUIRE(http.send(post("/v1/completions", as, body)).status == 200);
    return caching.counted(hits, ++requests);
  };
  CHECK(ask(key) == 0);
  const double own = ask(key);
  CHECK(own == 96);  // six blocks of sixteen
  CHECK(count_live(http, "ann") == 1);
  CHECK(ask(http.key_of("bob")) == own);  // another tenant
  CHECK(ask(http.key_of("ann")) == own);  // another key has a lease of its own
  CHECK(caching.counted("leasehold_prefix_cross_tenant_hits_total", requests) == 0);
}

TEST_CASE("http keys: four streams of a key go on with their texts when its lease is revoked") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  const std::string request = post("/v1/completions", key, http.completion(key, 60, true));
  const std::string undisturbed = text_of(http.send(request));

  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<HttpClient>(http.path()));
    clients.back()->write(request);
  }
  for (const auto& client : clients) REQUIRE(client->read_until(has_events(5)));
  REQUIRE(count_live(http, "ann") == 1);
  http.system().revoke_mid_request("ann");
  CHECK(eventually([&] { return count_live(http, "ann") == 1; }));  // one again, for all four
  for (const auto& client : clients) {
    const HttpReply streamed = client->reply();
    CHECK(text_of(streamed) == undisturbed);
    CHECK(streamed.events().back() == "[DONE]");
  }
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http keys: revoking a key ends its own streams, and another key's stream goes on") {
  HttpSystem http({"--slow-motion-us", "300"});
  const std::string revoked = http.admit("ann");
  const std::string other = http.key_of("ann");
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const std::string& key : {revoked, revoked, other}) {
    clients.push_back(std::make_unique<HttpClient>(http.path()));
    clients.back()->write(post("/v1/completions", key, http.completion(key, 100, true)));
  }
  for (const auto& client : clients) REQUIRE(client->read_until(has_events(3)));
  CHECK(count_live(http, "ann") == 2);
  REQUIRE(http.revoke(revoked) == 0);
  for (int i = 0; i < 2; ++i) {
    const auto events = clients[static_cast<std::size_t>(i)]->reply().events();
    REQUIRE(events.size() > 2);
    CHECK(events.back() == "[DONE]");
    CHECK(Json::parse(events.at(events.size() - 2)).contains("error"));
  }
  const auto events = clients.back()->reply().events();
  CHECK(Json::parse(events.at(events.size() - 2))["usage"]["completion_tokens"] == 100);
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http keys: an expired or limited key stops alone, and its tenant's other key goes on") {
  HttpSystem http({"--slow-motion-us", "300"});
  const std::string expiring = http.admit("ann");
  const std::string other = http.key_of("ann");
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const std::string& key : {expiring, other}) {
    clients.push_back(std::make_unique<HttpClient>(http.path()));
    clients.back()->write(post("/v1/completions", key, http.completion(key, 100, true)));
  }
  for (const auto& client : clients) REQUIRE(client->read_until(has_events(3)));
  const auto now = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
  const auto unix_ms = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch());
  http.system()
      .view()
      .command(wire::KeyUpdate{.key = {id_of(expiring)}, .expires_unix_ms = unix_ms.count()})
      .value();
  const auto ended = clients.front()->reply().events();
  CHECK(ended.back() == "[DONE]");
  CHECK(ended.at(ended.size() - 2).contains("expired at"));
  const HttpReply refused = http.send(get("/v1/models", expiring));
  CHECK(refused.status == 401);
  CHECK(refused.body.contains("expired at"));
  const auto events = clients.back()->reply().events();
  CHECK(Json::parse(events.at(events.size() - 2))["usage"]["completion_tokens"] == 100);

  REQUIRE(http.system().brokerctl({"keys", "update", id_of(expiring), "--no-expiry",
                                   "--requests-per-minute", "1", "--name", "ci"}) == 0);
  const auto ask = [&](const std::string& key) {
    return http.send(post("/v1/completions", key, http.completion(key, 4, false)));
  };
  CHECK(ask(expiring).status == 200);
  const HttpReply limited = ask(expiring);
  CHECK(limited.status == 429);
  CHECK(limited.json()["error"]["code"] == "QuotaRequests");
  CHECK(limited.head.contains("Retry-After: "));
  CHECK(ask(other).status == 200);
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http keys: two workers together hold a key to its tokens of a day") {
  System system({.worker_arguments = {}, .start_worker = false});
  const std::string one = system.directory() / "w1.http", other = system.directory() / "w2.http";
  system.start_ready_worker("w1", {}, {"--http", one, "--http-idle-ttl-ms", "0"});
  system.start_ready_worker("w2", {}, {"--http", other, "--http-idle-ttl-ms", "0"});
  system.admit("ann");
  const std::string key = mint_api_key();
  system.view().command(wire::KeyCreate{.tenant = {"ann"}, .hash = hash_of_api_key(key)}).value();
  REQUIRE(system.brokerctl({"keys", "update", id_of(key), "--tokens-per-day", "60"}) == 0);
  const auto ask = [&](const std::string& address, int tokens) {
    HttpClient client(address);
    client.write(post("/v1/completions", key,
                      {{"prompt", "Once"}, {"max_tokens", tokens}, {"ignore_eos", true}}));
    return client.reply();
  };
  const auto are_counted = [&](std::uint64_t tokens) {
    return eventually([&] { return system.view().tenants().value().at(0).tokens_today == tokens; });
  };
  const HttpReply never = ask(other, 100);
  CHECK(never.status == 400);
  CHECK(never.body.contains("may use 60 per day"));

  const HttpReply first = ask(one, 40);
  REQUIRE(first.status == 200);
  std::uint64_t used = first.json()["usage"]["total_tokens"];
  REQUIRE(are_counted(used));
  const HttpReply refused = ask(other, 30);
  CHECK(refused.status == 429);
  CHECK(refused.json()["error"]["code"] == "QuotaTokens");
  HttpReply fits;
  REQUIRE(eventually([&] { return (fits = ask(other, 4)).status == 200; }));
  used += fits.json()["usage"]["total_tokens"].get<std::uint64_t>();
  REQUIRE(are_counted(used));
  CHECK(ask(one, 15).status == 429);
  REQUIRE(system.brokerctl({"keys", "update", id_of(key), "--tokens-per-day", "none"}) == 0);
  CHECK(eventually([&] { return ask(one, 15).status == 200; }));
}

TEST_CASE("http keys: a lease outlives its last request for the idle time and no longer") {
  const std::string idle_ms = GENERATE(as<std::string>{}, "3600000", "100");
  HttpSystem http({"--http-idle-ttl-ms", idle_ms});
  const std::string key = http.admit("ann");
  REQUIRE(http.send(post("/v1/completions", key, http.completion(key, 4, false))).status == 200);
  if (idle_ms == kLongTime) {
    CHECK(count_live(http, "ann") == 1);
    REQUIRE(http.revoke(key) == 0);
  }
  CHECK(http.system().pool_is_fully_free());
}

TEST_CASE("http keys: the idle lease of one key gives its blocks to another key of the tenant") {
  HttpSystem http({"--http-idle-ttl-ms", kLongTime});
  http.system().admit("ann", {"--max-blocks", "102"});  // one extent, so one lease at a time
  for (int i = 0; i < 3; ++i) {
    const std::string key = http.key_of("ann");
    CHECK(http.send(post("/v1/completions", key, http.completion(key, 4, false))).status == 200);
  }
  CHECK(count_live(http, "ann") == 1);
}

}  // namespace leasehold::testing
