// Texts that survive the host that began them: another host, with a broker and a worker of its own,
// goes on with the same bytes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "tests/process/http/http_client.hpp"
#include "tests/support/continuable_stream.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kTokensBeforeDeath = 4;  // of all choices
const std::string kOwnUser = "uid:" + std::to_string(::getuid());

/// A request as a gateway sends it to any host.
struct Request {
  std::string path;
  Json body;
  std::size_t choices = 1;

  std::string sent_with(const std::string& key, const std::vector<Tokens>& emitted = {}) const {
    Json with = body;
    if (!emitted.empty()) with["emitted"] = emitted;
    return post(path, key, with,
                "Leasehold-Stream: 1000\r\nLeasehold-Created: 1700000000\r\nLeasehold-Request: " +
                    body["prompt_cache_key"].get<std::string>() + "\r\n");
  }
};

std::vector<Request> requests() {
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"a":{"type":"string","minLength":100},"b":{"type":"integer"}},
          "required":["a","b"],"additionalProperties":false})");
  const Json tool{{"type", "function"},
                  {"function", {{"name", "add"}, {"parameters", schema}, {"strict", true}}}};
  const auto chat = [](const char* name, const Json& more) {
    Json body{
        {"messages", Json::array({{{"role", "user"}, {"content", std::string(name) + " story"}}})},
        {"max_tokens", 150},
        {"stream", true},
        {"prompt_cache_key", name},
        {"stream_options", {{"include_usage", true}}}};
    body.update(more);
    return body;
  };
  const std::string kChat = "/v1/chat/completions";
  const Json format{{"type", "json_schema"},
                    {"json_schema", {{"name", "s"}, {"strict", true}, {"schema", schema}}}};
  return {
      {kChat, chat("greedy", {{"temperature", 0}, {"ignore_eos", true}})},
      {kChat,
       chat("sampled",
            {{"ignore_eos", true}, {"frequency_penalty", 0.5}, {"repetition_penalty", 1.2}})},
      {kChat, chat("schema", {{"response_format", format}})},
      {kChat, chat("tools", {{"tools", Json::array({tool})}, {"tool_choice", "required"}})},
      {kChat, chat("three", {{"n", 3}, {"ignore_eos", true}}), 3},
      {kChat, chat("logprobs", {{"logprobs", true}, {"top_logprobs", 2}, {"ignore_eos", true}})},
      {kChat, chat("whole", {{"stream", false}, {"logprobs", true}, {"ignore_eos", true}})},
      {"/v1/messages",
       chat("message", {{"stop_sequences", Json::array({"the dragon"})}, {"ignore_eos", true}})}};
}

/// The groups of tokens that have arrived.
auto has_groups(std::size_t wanted) {
  return [wanted](const std::string& text) {
    std::size_t count = 0;
    for (auto at = text.find(": t "); at != std::string::npos; at = text.find(": t ", at + 1))
      ++count;
    return count >= wanted;
  };
}

struct Host : HttpSystem {
  explicit Host(const char* pace_us)
      : HttpSystem({"--slow-motion-us", pace_us, "--http-trusted-proxy", kOwnUser}),
        key(admit("ann")) {}
  std::string key;
};

}  // namespace

TEST_CASE("http continue: after the death of its host each kind of text goes on with its bytes") {
  Host first("100"), second("0");
  const std::vector<Request> all = requests();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const Request& request : all) {
    clients.push_back(std::make_unique<HttpClient>(first.path()));
    clients.back()->write(request.sent_with(first.key));
  }
  for (const auto& client : clients) REQUIRE(client->read_until(has_groups(kTokensBeforeDeath)));
  REQUIRE(first.system().worker().signal(SIGKILL));

  for (std::size_t i = 0; i < all.size(); ++i) {
    const Request& request = all[i];
    INFO(request.body);
    // What was read before the death, which may end within a group.
    ReadStream text = read_stream(clients[i]->so_far().body);
    CHECK_FALSE(text.is_complete);
    const auto emitted = tokens_of(text.groups, request.choices);
    const HttpReply reply = second.send(request.sent_with(second.key, emitted));
    REQUIRE(reply.status == 200);
    const ReadStream rest = read_stream(reply.body);
    CHECK(rest.is_complete);
    text.groups.insert(text.groups.end(), rest.groups.begin(), rest.groups.end());
    text.ending = rest.ending;
    const ReadStream undisturbed = read_stream(second.send(request.sent_with(second.key)).body);
    // Choices advance at their own pace, so the groups are compared by choice and position.
    const auto by_place = [](const Group& group) {
      return std::pair(group.choice, group.position);
    };
    std::ranges::sort(text.groups, {}, by_place);
    ReadStream expected = undisturbed;
    std::ranges::sort(expected.groups, {}, by_place);
    CHECK(joined(text) == joined(expected));
    CHECK(text.groups.size() == expected.groups.size());
    // The host died between the last token and the end.
    const auto all_tokens = tokens_of(undisturbed.groups, request.choices);
    const ReadStream end = read_stream(second.send(request.sent_with(second.key, all_tokens)).body);
    CHECK(end.groups.empty());
    CHECK(end.ending == undisturbed.ending);
  }
}

TEST_CASE("http continue: a host takes a text again that it has not ended yet") {
  Host host("100");
  const Request request = requests().front();
  HttpClient earlier(host.path());
  earlier.write(request.sent_with(host.key));
  REQUIRE(earlier.read_until(has_groups(kTokensBeforeDeath)));
  const ReadStream begun = read_stream(earlier.so_far().body);
  const HttpReply again = host.send(request.sent_with(host.key, tokens_of(begun.groups, 1)));
  REQUIRE(again.status == 200);
  CHECK(read_stream(again.body).is_complete);
}

TEST_CASE("http continue: what a gateway may send is refused with its field") {
  Host host("0");
  const std::string key = host.key;
  const auto param_of = [](const HttpReply& reply) {
    CHECK(reply.status == 400);
    return reply.json()["error"]["param"];
  };
  const Request greedy = requests().front();
  const auto refused = [&](const std::string& emitted, const Json& more = Json::object()) {
    Request request = greedy;
    request.body.update(more);
    request.body["emitted"] = Json::parse(emitted);
    return param_of(host.send(request.sent_with(key)));
  };
  CHECK(refused("[[1],[2]]") == "emitted");
  CHECK(refused("[[1,1048576]]") == "emitted/0/1");
  CHECK(refused(Json::array({Tokens(151, 5)}).dump()) == "emitted/0");
  const Json choice = {{"guided_choice", {"yes", "no"}}, {"ignore_eos", false}};
  CHECK(refused("[[5]]", choice) == "emitted");  // fits no choice
  HttpSystem untrusting;
  const std::string other = untrusting.admit("ann");
  Json body = untrusting.completion(other, 4, false);
  body["emitted"] = Json::parse("[[5]]");
  CHECK(param_of(untrusting.send(post("/v1/completions", other, body))) == "emitted");
}

}  // namespace leasehold::testing
