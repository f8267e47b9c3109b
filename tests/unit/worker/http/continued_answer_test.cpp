// An answer that is cut after any token goes on elsewhere with the bytes that would have followed.
#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/continuable_stream.hpp"
#include "tests/unit/worker/http/fake_client.hpp"
#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "worker/http/answers/answer_driver.hpp"
#include "worker/http/exchange.hpp"
#include "worker/text/sampling/generated_text.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;
using namespace leasehold::testing;

/// Tokens of one byte, and then markers without a text: the bytes 1, 2 … of a script.
Tokenizer byte_tokenizer() {
  return *tokenizer_of(byte_vocabulary({}, {{"<think>", kControl},
                                            {"</think>", kControl},
                                            {"<tool_call>", kControl},
                                            {"</tool_call>", kControl}}));
}

std::int32_t token_of(char byte) {
  return byte >= 1 && byte <= 4 ? 255 + byte : static_cast<unsigned char>(byte);
}

/// A text of each choice; every byte is a token.
struct Script {
  std::vector<std::string> choices;
  std::string reason = "EndOfSequence";
};

/// A worker that generates a script, and an answer that streams it.
class Answering {
 public:
  Answering(Api api, Json body, Script script, const std::vector<Tokens>& emitted = {})
      : script_(std::move(script)) {
    if (!emitted.empty()) body["emitted"] = emitted;
    model.n_vocab = tokenizer.n_vocab();
    const auto parsed = parse_api_request(
        api, body.dump(), model,
        {.request_id = RequestId{"r"}, .created_unix_s = 7, .may_continue = true});
    INFO(body << (parsed ? "" : parsed.error().error.detail));
    REQUIRE(parsed.has_value());
    request = *parsed;
    request.beat = std::chrono::seconds(10);
  }

  void begin() {
    caller.tenant = {"A"};
    caller.key = "k";
    caller.key_id = {"k1"};
    boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                          [this](const std::exception_ptr&) { is_over = true; });
    world.run_until(
        [this] { return world.worker.calls("request.submit").size() == choices_of(request); });
    choices_.resize(choices_of(request));
    for (const Json& call : world.worker.calls("request.submit")) {
      const auto seed = call.at("sampling").value("seed", std::uint64_t{0});
      submitted(choices_.at(seed - request.submit.sampling.seed), call);
    }
  }

  /// Generates one token of each choice after the other, until all have ended.
  std::string finish() {
    std::size_t ended = 0;
    for (std::uint32_t position = 0; ended < choices_.size(); ++position) {
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        const std::size_t end = text_of(i).size();
        if (position < end && position >= choices_[i].emitted) generate(i, position);
        if (position != end) continue;
        complete(i);
        ++ended;
      }
    }
    world.run_until([this] { return is_over; });
    world.settle();
    return bytes();
  }

  void generate(std::size_t choice, std::uint32_t position) {
    Choice& each = choices_[choice];
    wire::TokenEmitted token{
        .request = each.id, .token = token_of(text_of(choice)[position]), .position = position};
    token.text = each.text->push(token.token);
    each.sent = position + 1;
    if (request.submit.sampling.logprobs) {
      token.logprob = -0.25f * static_cast<float>(position);
      token.top_logprobs = {{token.token, *token.logprob}, {'z', -8.0f}};
    }
    world.worker.notify_submitter("token.emitted", token.to_json());
    world.settle();
  }

  void complete(std::size_t choice, std::string error = {}) {
    Choice& each = choices_[choice];
    wire::RequestCompleted completed{.request = each.id,
                                     .reason = error.empty() ? script_.reason : error,
                                     .emitted_tokens = each.sent,
                                     .scope = "tenant"};
    if (error.empty()) completed.text = each.text->finish();
    world.worker.notify_submitter("request.completed", completed.to_json());
    world.settle();
  }

  /// What a client reads, without the head.
  std::string bytes() const {
    Exchange exchange{.chunked = false, .has_events = true};
    std::string text;
    for (const ServerEvents& events : reader.writes)
      if (!events.empty()) text += exchange.text_of(events, HttpStream::Follows::More);
    return text;
  }

  ServerWorld world;
  Tokenizer tokenizer = byte_tokenizer();
  ApiModel model{.name = "model", .max_context = 4096};
  Shared shared{dependencies(world, tokenizer)};
  FakeClient reader;
  Caller caller;
  ApiRequest request;
  bool is_over = false;

 private:
  struct Choice {
    RequestId id;
    std::uint32_t emitted = 0;  // as the request says
    std::uint32_t sent = 0;     // these and those that the worker generated
    std::optional<GeneratedText> text;
  };

  const std::string& text_of(std::size_t choice) const {
    return script_.choices[choice % script_.choices.size()];
  }

  void submitted(Choice& choice, const Json& call) {
    const wire::Sampling& sampling = request.submit.sampling;
    SamplingParams params;
    params.stop = sampling.stop.all;
    params.min_tokens = sampling.min_tokens;
    params.includes_stop = sampling.include_stop_str_in_output;
    choice.id = {call.at("request_id")};
    choice.text.emplace(tokenizer, params);
    const Tokens emitted = call.value("emitted", Tokens{});
    choice.emitted = choice.sent = static_cast<std::uint32_t>(emitted.size());
    for (const std::int32_t token : emitted) (void)choice.text->push(token);
    if (!call.contains("prompt_logprobs")) return;
    wire::PromptLogprobs prompt{.request = choice.id, .position = 0, .tokens = {}};
    for (const char byte : std::string("Once"))
      prompt.tokens.push_back({.token = byte, .logprob = -1.0f, .top_logprobs = {}});
    prompt.tokens.front().logprob.reset();
    world.worker.notify_submitter("prompt.logprobs", prompt.to_json());
    world.settle();
  }

  Script script_;
  std::vector<Choice> choices_;
};

ReadStream streamed(Api api, const Json& body, const Script& script,
                    const std::vector<Tokens>& emitted = {}) {
  Answering answering(api, body, script, emitted);
  answering.begin();
  const ReadStream read = read_stream(answering.finish());
  CHECK(read.is_complete);
  CHECK(answering.reader.answers == 0);
  return read;
}

/// Cuts the answer after each of its tokens and lets another worker go on.
void check_continued(Api api, const Json& body, const Script& script) {
  const ReadStream whole = streamed(api, body, script);
  const std::size_t choices = body.value("n", std::size_t{1});
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < choices; ++i)
    tokens += script.choices[i % script.choices.size()].size();
  REQUIRE(whole.groups.size() == tokens);
  for (std::size_t cut = 0; cut <= tokens; ++cut) {
    const std::span sent(whole.groups.data(), cut);
    INFO(body << " cut after " << cut);
    ReadStream both = streamed(api, body, script, tokens_of(sent, choices));
    REQUIRE(both.groups.size() == tokens - cut);
    both.groups.insert(both.groups.begin(), sent.begin(), sent.end());
    REQUIRE(joined(both) == joined(whole));
  }
}

Json merged(Json body, const Json& more) {
  body.update(more);
  return body;
}

Json chat(const Json& more = Json::object()) {
  return merged({{"messages", Json::parse(R"([{"role":"user","content":"Hi"}])")},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}},
                more);
}

const Json kTools =
    Json::parse(R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])");
const std::string kCall = R"(<tool_call>{"name":"f","arguments":{}}</tool_call>)";

/// The body as it is, and without a stream.
void check_both(Api api, Json body, const Script& script) {
  check_continued(api, body, script);
  body["stream"] = false;
  body.erase("stream_options");
  check_continued(api, body, script);
}

}  // namespace

TEST_CASE("continued answer: a chat goes on after any token with the same bytes") {
  check_both(Api::Chat, chat(), {{"Zwei \xC3\xA4 und \xE2\x82\xAC."}});
  check_both(Api::Chat, chat({{"stop", {"abc", "bcd"}}}), {{"xaby abcx"}, "StopSequence"});
  check_both(Api::Chat,
             chat({{"stop", Json::array({"bcd"})}, {"include_stop_str_in_output", true}}),
             {{"aab bcd"}, "StopSequence"});
  check_both(Api::Chat, chat({{"stop", Json::array({"ab"})}, {"min_tokens", 4}}),
             {{"xabyab"}, "StopSequence"});
  check_both(Api::Chat, chat(), {{"<think>Hm, so</think>Yes."}, "MaxTokensReached"});
  check_both(Api::Chat, chat({{"tools", kTools}}), {{"Ok " + kCall + "\n" + kCall}});
  check_both(Api::Chat, chat({{"tools", kTools}, {"stop", Json::array({"a?"})}}),
             {{"\1Hm a\2Oka \3{\"name\":\"f\",\"arguments\":{}}\4"}});
  check_both(Api::Chat, chat({{"tools", kTools}, {"tool_choice", "required"}}),
             {{R"({"name":"f","arguments":{}})"}});
  check_both(Api::Chat, chat({{"logprobs", true}, {"top_logprobs", 2}}), {{"Zwei \xC3\xA4."}});
  check_continued(
      Api::Chat,
      chat({{"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}}),
      {{"Zwei \xC3\xA4."}});
}

TEST_CASE("continued answer: each choice goes on after its own tokens") {
  const Script script{{"One.", "Two, longer", "3"}};
  check_both(Api::Chat, chat({{"n", 3}}), script);
  check_both(Api::Chat, chat({{"n", 2}, {"tools", kTools}}), {{kCall, "No"}});
  check_both(Api::Completions, {{"prompt", "Once"}, {"n", 3}, {"stream", true}, {"logprobs", 1}},
             script);
}

TEST_CASE("continued answer: a completion goes on with its echo sent once") {
  const Json body{{"prompt", "Once"}, {"stream", true}};
  const Script script{{"upon \xC3\xA4 time"}};
  check_both(Api::Completions, body, script);
  check_both(Api::Completions, merged(body, {{"echo", true}}), script);
  check_both(Api::Completions, merged(body, {{"logprobs", 2}}), script);
  check_both(Api::Completions, merged(body, {{"echo", true}, {"logprobs", 2}}), script);
}

TEST_CASE("continued answer: responses and messages go on with the same items and numbers") {
  const Json tool = Json::parse(R"({"type":"function","name":"f","parameters":{},"strict":false})");
  const Json response{{"input", "Hi"}, {"stream", true}, {"store", false}};
  const std::string thoughts = "<think>Hm</think>Ok " + kCall;
  check_both(Api::Responses, merged(response, {{"tools", Json::array({tool})}}), {{thoughts}});
  check_both(Api::Responses,
             merged(response, {{"include", Json::array({"message.output_text.logprobs"})}}),
             {{"<think>Hm</think>Ok \xC3\xA4"}, "MaxTokensReached"});
  const Json message = merged(chat(), {{"max_tokens", 100},
                                       {"stop_sequences", Json::array({"\n\n"})},
                                       {"tools", Json::parse(R"([{"name":"f",
                                                  "input_schema":{"type":"object"}}])")}});
  check_both(Api::Messages, message, {{thoughts}});
  check_both(Api::Messages, message, {{"a\nb\n\n"}, "StopSequence"});
}

TEST_CASE("continued answer: without its comments it is the stream of any other client") {
  Answering plain(Api::Chat, chat({{"tools", kTools}}), {{"Ok " + kCall}});
  plain.request.beat.reset();
  plain.begin();
  CHECK(plain.finish() ==
        joined(streamed(Api::Chat, chat({{"tools", kTools}}), {{"Ok " + kCall}})));
}

TEST_CASE(
    "continued answer: events that a returning client has are not sent, but their tokens are") {
  const Json body{{"prompt", "Once"}, {"stream", true}, {"resumable", true}, {"request_id", "r"}};
  const Script script{{"upon a"}};
  check_continued(Api::Completions, body, script);
  const ReadStream whole = streamed(Api::Completions, body, script);
  const std::string& has = whole.groups[3].bytes;
  const auto id = has.find("id: ") + 4;
  Answering answering(Api::Completions, body, script, {{'u'}});
  answering.caller.last_event_id = has.substr(id, has.find('\n', id) - id);
  answering.begin();
  ReadStream rest = read_stream(answering.finish());
  REQUIRE(rest.groups.size() == 5);
  CHECK(rest.groups[0].token == 'p');
  for (std::size_t i = 0; i < 3; ++i) CHECK(rest.groups[i].bytes.empty());
  CHECK(rest.groups[3].bytes == whole.groups[4].bytes);
  CHECK(rest.ending == whole.ending);
}

TEST_CASE("continued answer: known tokens are read as a prompt, unless their logprobs follow") {
  const std::vector<Tokens> emitted{{'a', 'b'}};
  const auto submitted = [&](Api api, const Json& body) {
    Answering answering(api, body, {{"abc"}}, emitted);
    answering.begin();
    const Json call = answering.world.worker.calls("request.submit").front();
    (void)answering.finish();
    return call.value("emitted", Tokens{}).size();
  };
  CHECK(submitted(Api::Chat, chat()) == 2);
  CHECK(submitted(Api::Chat, chat({{"logprobs", true}})) == 2);
  CHECK(submitted(Api::Chat, {{"messages", chat()["messages"]}, {"logprobs", true}}) == 0);
}

TEST_CASE("continued answer: each attempt has an id of its own at the worker, unless resumable") {
  const auto id_of = [](bool is_resumable) {
    Answering answering(Api::Completions,
                        {{"prompt", "Once"}, {"stream", true}, {"resumable", is_resumable}},
                        {{"abc"}});
    answering.begin();
    (void)answering.finish();
    return answering.world.worker.calls("request.submit").front().at("request_id");
  };
  CHECK(id_of(true) == "r");
  CHECK(id_of(false) != "r");
  CHECK(id_of(false) != id_of(false));
}

TEST_CASE("continued answer: another token than the known one ends it with an error") {
  Answering answering(Api::Completions, {{"prompt", "Once"}, {"logprobs", 1}}, {{"abc"}},
                      {{'a', 'x'}});
  answering.begin();
  answering.generate(0, 0);
  answering.generate(0, 1);
  answering.world.run_until([&] { return answering.is_over; });
  CHECK(answering.reader.status == 400);
  const Json error = Json::parse(answering.reader.body)["error"];
  CHECK(error["param"] == "emitted");
  CHECK(error["message"].get<std::string>().starts_with(
      "emitted token 1 of choice 0 is 120, and this worker generates 98; "));
  answering.complete(0, "Cancelled");
}

TEST_CASE("continued answer: an error after the head is the API's event and a comment") {
  const auto end_of = [](Api api, const Json& body) {
    Answering answering(api, body, {{"abc"}});
    answering.begin();
    answering.generate(0, 0);
    answering.complete(0, "DeadlineExceeded");
    answering.world.run_until([&] { return answering.is_over; });
    const std::string text = answering.bytes();
    CHECK(text.ends_with(": x TimedOut 0\n\n"));
    return text;
  };
  CHECK(end_of(Api::Chat, chat()).contains("data: [DONE]\n\n: x"));
  CHECK(end_of(Api::Chat, {{"messages", chat()["messages"]}})
            .contains("event: error\ndata: {\"error\":{"));
  CHECK(end_of(Api::Messages, {{"messages", chat()["messages"]}, {"max_tokens", 9}})
            .contains("event: error\ndata: {\"error\":{\"details\""));
}

TEST_CASE("continued answer: beats begin before a worker has the request, also without a stream") {
  ServerWorld world;
  const Tokenizer tokenizer = byte_tokenizer();
  Shared shared(dependencies(world, tokenizer));
  FakeClient reader;
  Caller caller;
  caller.tenant = {"A"};
  caller.key = "k";
  caller.key_id = {"k1"};
  ApiRequest request;
  request.submit = world.request;
  request.beat = std::chrono::milliseconds(1);
  world.broker.held = "lease.acquire";
  bool is_over = false;
  boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                        [&](const std::exception_ptr&) { is_over = true; });
  world.run_until([&] { return reader.writes.size() == 3; });
  for (const ServerEvents& write : reader.writes) {
    REQUIRE(write.size() == 1);
    CHECK(write.front().comment == "b");
    CHECK(write.front().data.empty());
  }
  reader.is_disconnected = true;
  world.run_until([&] { return is_over; });
  world.broker.answer_held();
  world.settle();
}

}  // namespace leasehold::http
