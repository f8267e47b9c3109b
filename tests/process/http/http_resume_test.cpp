// Resumable requests over HTTP, whose clients leave and come back, with real processes.
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

constexpr int kTokens = 60;

/// A worker, a tenant with a key, and a resumable request of known text.
/// Ids without the part of the text's identity.
std::vector<std::string> positions_of(std::vector<std::string> ids) {
  for (std::string& id : ids) id.resize(id.find('-'));
  return ids;
}

struct ResumableText {
  explicit ResumableText(std::vector<std::string> worker_arguments = {"--slow-motion-us", "100"})
      : http(std::move(worker_arguments)) {
    key = http.admit("ann");
    body = http.completion(key, kTokens, true);
    whole = http.send(post("/v1/completions", key, body));
    body["resumable"] = true;
    body["request_id"] = "story";
  }

  /// Sends it with a key, and reads `events` events.
  std::unique_ptr<HttpClient> begin(const std::string& with, std::size_t events = 5) {
    auto client = std::make_unique<HttpClient>(http.path());
    client->write(post("/v1/completions", with, body));
    REQUIRE(client->read_until(has_events(events)));
    return client;
  }
  /// Sends it, and returns what came before the client left.
  HttpReply begin_and_leave() {
    const auto client = begin(key);
    client->close();
    return client->so_far();
  }
  /// Another key's client joins a text that a client has left, and reads two more events.
  std::unique_ptr<HttpClient> join(const std::string& with, const HttpReply& before) {
    return begin(with, before.events().size() + 2);
  }
  std::string again(const std::string& last_event_id) const {
    return post("/v1/completions", key, body, "Last-Event-ID: " + last_event_id + "\r\n");
  }
  HttpReply resume(const HttpReply& before) { return http.send(again(before.ids().back())); }
  /// Both parts have each token once, and the end of the second is that of the whole.
  void check_joined(const HttpReply& before, const HttpReply& rest) const {
    CHECK(text_of(before) + text_of(rest) == text_of(whole));
    std::vector<std::string> ids = before.ids();
    const auto more = rest.ids();
    ids.insert(ids.end(), more.begin(), more.end());
    std::vector<std::string> expected;
    for (int i = 0; i <= kTokens; ++i)  // the last one has the reason of the end
      expected.push_back(std::to_string(i) + ".0");
    expected.push_back(std::to_string(kTokens) + ".1");  // the usage
    CHECK(positions_of(ids) == expected);
    REQUIRE(rest.events().size() >= 2);
    CHECK(rest.events().back() == "[DONE]");
    CHECK(Json::parse(rest.events().end()[-2])["usage"] ==
          Json::parse(whole.events().end()[-2])["usage"]);
  }

  HttpSystem http;
  std::string key;
  Json body;
  HttpReply whole;
};

}  // namespace

TEST_CASE("http resume: a client that comes back with the last id gets each later token once") {
  ResumableText text;
  const HttpReply before = text.begin_and_leave();
  text.check_joined(before, text.resume(before));
}

TEST_CASE("http resume: events are numbered for those alone who can come back") {
  ResumableText text;
  CHECK(text.whole.ids().empty());
  const HttpReply resumable = text.http.send(post("/v1/completions", text.key, text.body));
  CHECK(text_of(resumable) == text_of(text.whole));
  CHECK(resumable.ids().size() == kTokens + 2);
}

TEST_CASE("http resume: after any event of a chat, each later one comes once, also of one token") {
  ResumableText text;
  Json body{{"model", text.body["model"]},
            {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
            {"max_tokens", 6},
            {"ignore_eos", true},
            {"resumable", true},
            {"request_id", "talk"},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}};
  const auto ask = [&](const std::string& more) {
    return text.http.send(post("/v1/chat/completions", text.key, body, more));
  };
  const HttpReply whole = ask("");
  const std::vector<std::string> ids = whole.ids(), events = whole.events();
  REQUIRE(ids.size() + 1 == events.size());  // [DONE] ends every stream
  CHECK(positions_of(ids).at(0) == "0.0");   // the role
  CHECK(positions_of(ids).at(1) == "0.1");   // and the first text
  for (std::size_t had = 1; had <= ids.size(); ++had) {
    const HttpReply rest = ask("Last-Event-ID: " + ids[had - 1] + "\r\n");
    REQUIRE(rest.status == 200);
    CHECK(rest.ids() == std::vector(ids.begin() + static_cast<std::ptrdiff_t>(had), ids.end()));
    const auto later = rest.events();
    REQUIRE(later.size() == events.size() - had);
    for (std::size_t i = 0; i < later.size(); ++i) CHECK(later[i] == events[had + i]);
  }
  // The ids have the time of the text, so that it stays the same on a host that does not know it.
  const std::string old = ids[0].substr(0, ids[0].rfind('-')) + "-1700000000";
  const HttpReply rest = ask("Last-Event-ID: " + old + "\r\n");
  CHECK(Json::parse(rest.events().at(0)).at("created") == 1'700'000'000);
}

TEST_CASE("http resume: its lease is released as soon as the client has the end") {
  ResumableText text;
  const HttpReply before = text.begin_and_leave();
  CHECK_FALSE(text.http.system().leases_of("ann").empty());
  const std::string reader = GENERATE(true, false) ? text.key : text.http.key_of("ann");
  text.check_joined(before, text.http.send(post("/v1/completions", reader, text.body,
                                                "Last-Event-ID: " + before.ids().back() + "\r\n")));
  const auto is_free = [&] {
    return std::ranges::none_of(
        text.http.system().leases_of("ann"),
        [](const wire::LeaseView& lease) { return lease.state == LeaseState::Live; });
  };
  // A fraction of the minute for which a request is kept.
  for (int tries = 0; tries < 2'000 && !is_free(); ++tries) ::poll(nullptr, 0, 5);
  CHECK(is_free());
}

TEST_CASE("http resume: a worker that drains gives the text to the client that comes back") {
  ResumableText text({"--slow-motion-us", "300", "--drain-timeout-ms", "60000"});
  const HttpReply before = text.begin_and_leave();
  REQUIRE(text.http.system().worker().signal(SIGTERM));
  REQUIRE(eventually([&] { return text.http.send(get("/health", "")).status == 503; }));
  Json other = text.body;
  other["request_id"] = "other";
  CHECK(text.http.send(post("/v1/completions", text.key, other)).status == 503);
  const Json words{{"model", other["model"]}, {"prompt", "Hi"}};
  const std::string id = "Last-Event-ID: 1.0\r\n";  // of no text
  CHECK(text.http.send(post("/tokenize", text.key, words, id)).status == 503);
  text.check_joined(before, text.resume(before));
}

TEST_CASE("http resume: a whole answer can be asked for again, and is not generated twice") {
  ResumableText text;
  text.body["stream"] = false;
  HttpClient client(text.http.path());
  client.write(post("/v1/completions", text.key, text.body));
  REQUIRE(eventually([&] { return !text.http.system().leases_of("ann").empty(); }));
  client.close();
  for (int i = 0; i < 2; ++i) {
    HttpReply reply;
    // While the first submission is parsed, it is refused for a moment.
    REQUIRE(eventually([&] {
      reply = text.http.send(post("/v1/completions", text.key, text.body));
      return reply.status == 200;
    }));
    CHECK(reply.json()["choices"][0]["text"] == text_of(text.whole));
  }
}

TEST_CASE("http resume: the text goes on after its lease was revoked while no client was there") {
  ResumableText text;
  const HttpReply before = text.begin_and_leave();
  REQUIRE(text.http.system().brokerctl({"revoke", "--tenant", "ann"}) == 0);
  text.check_joined(before, text.resume(before));
}

TEST_CASE("http resume: the text goes on at the successor of a killed worker") {
  ResumableText text;
  const HttpReply before = text.begin_and_leave();
  text.http.system().remove_worker("w1");
  text.http.system().start_ready_worker("w1");
  text.check_joined(before, text.resume(before));
}

TEST_CASE("http resume: a successor that computes otherwise refuses the text, and begins it anew") {
  const auto [option, value, named] = GENERATE(
      table<const char*, const char*, const char*>({{"--arithmetic", "f32", "/f32/f16/"},
                                                    {"--kv-type", "f32", "/int8/f32/"},
                                                    {"--max-context", "50", "context=50"}}));
  ResumableText text({"--slow-motion-us", "100"});
  const HttpReply before = text.begin_and_leave();
  text.http.system().remove_worker("w1");
  text.http.system().start_ready_worker("w1", "", {option, value});

  const HttpReply refused = text.resume(before);

  CHECK(refused.status == 409);
  CHECK(refused.json()["error"]["code"] == "RequestIdConflict");
  CHECK_THAT(refused.json()["error"]["message"].get<std::string>(), Catch::Contains(named));
  const HttpReply anew = text.http.send(post("/v1/completions", text.key, text.body));
  CHECK(anew.status == 200);
  CHECK(anew.ids().at(0) != before.ids().at(0));
}

TEST_CASE("http resume: another body under the id is a conflict, and the text goes on") {
  ResumableText text;
  const auto client = text.begin(text.key);
  Json other = text.body;
  other["max_tokens"] = kTokens + 1;
  const HttpReply refused = text.http.send(post("/v1/completions", text.key, other));
  CHECK(refused.status == 409);
  CHECK(refused.json()["error"]["code"] == "RequestIdConflict");
  CHECK(text_of(client->reply()) == text_of(text.whole));
}

TEST_CASE("http resume: the id of another tenant is answered like an unknown one") {
  ResumableText text;
  const auto client = text.begin(text.key);
  const std::string bob = text.http.admit("bob");
  const std::string last = "Last-Event-ID: " + client->so_far().ids().back() + "\r\n";
  std::vector<HttpReply> answers;
  for (const char* id : {"story", "unknown"}) {
    Json body = text.body;
    body["request_id"] = id;
    answers.push_back(text.http.send(post("/v1/completions", bob, body, last)));
  }
  CHECK(answers[0].status == answers[1].status);
  CHECK(answers[0].ids() == answers[1].ids());
  CHECK(text_of(answers[0]) == text_of(answers[1]));
  CHECK(text_of(client->reply()) == text_of(text.whole));
}

TEST_CASE("http resume: a second client takes the text over, and the first one gets an error") {
  ResumableText text({"--slow-motion-us", "300"});
  const auto first = text.begin(text.key);
  const HttpReply second = text.http.send(post("/v1/completions", text.key, text.body));
  CHECK(text_of(second) == text_of(text.whole));
  const auto events = first->reply().events();
  REQUIRE(events.size() >= 2);
  CHECK(Json::parse(events.end()[-2])["error"]["code"] == "RequestIdConflict");
}

TEST_CASE("http resume: a revoked key ends the stream that it joined, and the text goes on") {
  ResumableText text({"--slow-motion-us", "300"});
  const HttpReply before = text.begin_and_leave();
  const std::string other = text.http.key_of("ann");
  const auto joined = text.join(other, before);
  REQUIRE(text.http.revoke(other) == 0);
  const auto events = joined->reply().events();
  REQUIRE(events.size() >= 2);
  CHECK(events.size() < kTokens);
  CHECK(events.back() == "[DONE]");
  CHECK(Json::parse(events.end()[-2]).contains("error"));
  text.check_joined(before, text.resume(before));
}

TEST_CASE("http resume: a stream that joined goes on when the key that began the text is revoked") {
  ResumableText text({"--slow-motion-us", "300"});
  const HttpReply before = text.begin_and_leave();
  const std::string other = text.http.key_of("ann");
  const auto joined = text.join(other, before);
  REQUIRE(text.http.revoke(text.key) == 0);
  CHECK(text_of(joined->reply()) == text_of(text.whole));
}

TEST_CASE("http resume: an id without an event, and several choices, are refused") {
  ResumableText text;
  const std::string first = text.begin_and_leave().ids().at(0);
  const std::string identity = first.substr(first.find('-'));
  for (const char* id : {"x", "-1", "1x", "1.", "1.0.0", "4294967296.0", "1"})
    for (const std::string& sent : {std::string(id), id + identity})
      CHECK(text.http.send(text.again(sent)).status == 400);
  CHECK(text.http.send(text.again("1.0")).status == 400);
  CHECK(text.http.send(text.again("5000.0" + identity)).status == 400);
  Json several = text.body;
  several["n"] = 2;
  const HttpReply refused = text.http.send(post("/v1/completions", text.key, several));
  CHECK(refused.status == 400);
  CHECK(refused.json()["error"]["param"] == "resumable");
}

}  // namespace leasehold::testing
