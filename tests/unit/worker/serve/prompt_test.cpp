#include "worker/serve/prompt.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

constexpr TokenId kBos = 1, kEos = 2;
/// Prints the name of the tool that a worker tries a template with, and no other.
const std::string kKnowsTools =
    "{% for tool in tools or [] if tool.function.name.startswith('leasehold') %}"
    "{{ tool.function.name }}{% endfor %}";

struct Fixture {
  explicit Fixture(std::string_view source)
      : chat(ChatTemplate::parse(source, {.bos = "<s>", .eos = "</s>"})) {}

  PromptEncoder encoder() const {
    return {
        .tokenizer = &tokenizer, .chat = &chat, .max_context = 64, .context_bound = context_bound};
  }
  Result<std::vector<TokenId>> encode(const wire::RequestSubmit& request) const {
    return encoder().encode(request, 1732104000);
  }

  Tokenizer tokenizer = tiny_tokenizer();
  Result<ChatTemplate> chat;
  ContextBound context_bound = ContextBound::Model;
};

wire::RequestSubmit chat_of(std::string content) {
  wire::RequestSubmit request;
  request.messages.emplace().push_back({.role = "user", .content = std::move(content)});
  return request;
}

std::size_t times(const std::vector<TokenId>& tokens, TokenId wanted) {
  return static_cast<std::size_t>(std::ranges::count(tokens, wanted));
}

std::optional<Error> refusal_by(std::string_view source) {
  const auto chat = ChatTemplate::parse(source, {.bos = "<s>", .eos = "</s>"});
  return check_prompts(tiny_tokenizer(), chat).value();
}

}  // namespace

TEST_CASE("prompt: the output of a template contains control tokens, and one at the beginning") {
  const Fixture fixture("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  const auto tokens = fixture.encode(chat_of("ab"));
  REQUIRE(tokens.has_value());
  CHECK(tokens->front() == kBos);
  CHECK(tokens->back() == kEos);
  CHECK(times(*tokens, kBos) == 1);
}

TEST_CASE("prompt: names of control tokens from a client are text, wherever a template puts them") {
  wire::RequestSubmit request = chat_of("</s><s>");
  request.messages->push_back(
      {.role = "assistant",
       .content = "<s>",
       .tool_calls = R"([{"function":{"name":"</s>","arguments":"{\"</s>\": \"<s>\"}"}}])",
       .reasoning_content = "</s>"});
  request.messages->push_back(
      {.role = "tool", .content = "s>x</", .tool_call_id = "</s>", .name = "<s>"});
  request.tools = R"([{"function":{"name":"</s>","description":"<s>"}}])";
  request.chat_template_kwargs = R"({"mark":"</s>"})";
  const char* const sources[] = {
      "{% for m in messages %}{{ m.content | trim }}{{ m['content'].replace('x', '') }}{% endfor "
      "%}",
      "{{ messages[2].content.split('x') | reverse | join }}{{ messages[2].content[3:5] ~ 's>' }}",
      "{{ '<' ~ messages[2].content }}{{ messages[1] | tojson }}",
      "{{ messages[0] }}{{ messages[1].tool_calls }}",
      "{{ tools | tojson(indent=2) }}{{ messages[1].tool_calls[0].function.arguments | tojson }}",
      "{% for key, value in messages[1].tool_calls[0].function.arguments.items() %}{{ key ~ value "
      "}}"
      "{% endfor %}{{ messages[1].tool_calls[0].function.name | lower }}",
      "{% set t %}{{ messages[0].content }}{% endset %}{{ t }}{{ mark ~ "
      "messages[1].reasoning_content }}"
      "{{ messages[2].tool_call_id + messages[2].name }}"};
  for (const char* source : sources) {
    INFO(source);
    const auto tokens =
        Fixture(kKnowsTools + "{{ bos_token }}" + std::string(source) + "{{ eos_token }}")
            .encode(request);
    REQUIRE(tokens.has_value());
    CHECK(times(*tokens, kBos) == 1);
    CHECK(times(*tokens, kEos) == 1);
    CHECK(tokens->size() > 2);
  }
}

TEST_CASE("prompt: a plain prompt that asks for it has control tokens by name") {
  const Fixture fixture("ab");
  wire::RequestSubmit request;
  request.prompt = "<s>ab</s>";
  request.parse_special = true;
  const auto tokens = fixture.encode(request);
  REQUIRE(tokens.has_value());
  CHECK(times(*tokens, kBos) == 1);
  CHECK(tokens->back() == kEos);
}

TEST_CASE("prompt: only the text of an embedding gets the end token that the file asks for") {
  Fixture fixture("ab");
  wire::RequestSubmit request;
  request.prompt = "ab";
  request.embedding.emplace();
  CHECK(times(fixture.encode(request).value(), kEos) == 0);
  const TemporaryFile file(tiny_llama().set("tokenizer.ggml.add_eos_token", true).bytes());
  fixture.tokenizer = *Tokenizer::from_metadata(*GgufFile::open(file.path()));
  CHECK(fixture.encode(request).value().back() == kEos);
  request.parse_special = true;
  request.prompt = "ab</s>";
  CHECK(times(fixture.encode(request).value(), kEos) == 1);
  request.prompt_tokens = {5};
  CHECK(times(fixture.encode(request).value(), kEos) == 0);
  request.prompt_tokens.reset();
  request.embedding.reset();
  request.prompt = "ab";
  CHECK(times(fixture.encode(request).value(), kEos) == 0);
}

TEST_CASE("prompt: messages as clients send them are messages as the template knows them") {
  const auto same = [](std::string_view source, const wire::ChatMessage& sent,
                       const wire::ChatMessage& known) {
    INFO(source);
    wire::RequestSubmit request, other;
    request.messages = {{.role = "user", .content = "q"}, sent};
    other.messages = {{.role = "user", .content = "q"}, known};
    const auto tokens = Fixture(source).encode(request);
    REQUIRE(tokens.has_value());
    CHECK(*tokens == Fixture(source).encode(other).value());
  };
  const auto call = [](const std::string& arguments) {
    return R"([{"function":{"name":"f","arguments":)" + arguments + "}}]";
  };
  const std::string_view joins =
      "{% for m in messages %}{{ m.role + m.content }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}";
  same(joins, {.role = "developer", .content = "a"}, {.role = "system", .content = "a"});
  same(joins, {.role = "function", .content = "a"}, {.role = "tool", .content = "a"});
  for (const char* none : {R"("")", "null", R"("{}")", "{}"})
    same(joins, {.role = "assistant", .tool_calls = call(none)},
         {.role = "assistant", .content = "", .tool_calls = call("{}")});
  same(joins, {.role = "assistant"}, {.role = "assistant", .content = ""});
  // A template that prints what it gets would print "None".
  same(
      "{% for m in messages %}{{ m.content }}{{ m.tool_calls[0].function.name if m.tool_calls }}"
      "{% endfor %}",
      {.role = "assistant", .tool_calls = call("{}")},
      {.role = "assistant", .content = "", .tool_calls = call("{}")});
  // Some templates print calls only of turns without content, or concatenate the arguments.
  const std::string_view concatenates =
      "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name + "
      "m.tool_calls[0].function.arguments }}{% endif %}{% endfor %}";
  same(concatenates, {.role = "assistant", .tool_calls = call(R"({"x":1})")},
       {.role = "assistant", .tool_calls = call(R"("{\"x\":1}")")});
  const Fixture knows("{{ 'a' if messages[0].role == 'developer' else 'b' }}");
  wire::RequestSubmit request = chat_of("q");
  request.messages->front().role = "developer";
  CHECK(knows.encode(request).value() == Fixture("a").encode(chat_of("q")).value());
}

TEST_CASE("prompt: an unknown role is refused with its message") {
  wire::RequestSubmit request = chat_of("q");
  request.messages->push_back({.role = "</s>", .content = "a"});
  const auto refused = Fixture("{{ messages[1].role }}").encode(request);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK_THAT(refused.error().detail, Contains("messages/1/role: unknown role '</s>'"));
}

TEST_CASE("prompt: the template sees tools, calls and what the client adds") {
  wire::RequestSubmit request = chat_of("q");
  request.messages->push_back(
      {.role = "assistant",
       .tool_calls = R"([{"function":{"name":"f","arguments":"{\"x\": 1}"}}])"});
  request.messages->push_back({.role = "tool", .content = "4", .tool_call_id = "c"});
  request.tools = R"([{"function":{"name":"f"}}])";
  request.chat_template_kwargs = R"({"mark":"b"})";
  const Fixture fixture(
      "{% if messages[1].content is none and messages[1].tool_calls[0].function.arguments.x == 1 "
      "and messages[2].tool_call_id == 'c' and messages[0].tool_calls is undefined "
      "and tools[0].function.name == 'f' %}{{ 'a' + mark }}{% endif %}");
  const auto tokens = fixture.encode(request);
  REQUIRE(tokens.has_value());
  CHECK(*tokens == *Fixture("ab").encode(chat_of("q")));
}

TEST_CASE("prompt: a template that needs descriptions of tools gets empty ones") {
  wire::RequestSubmit request = chat_of("q");
  request.tools = R"([{"function":{"name":"b"}},{"function":{"name":"b","description":null}}])";
  const Fixture fixture(
      "{% for t in tools %}{{ 'a'+t.function.description+t.function.name }}{% endfor %}");
  CHECK(fixture.encode(request).value() == *Fixture("abab").encode(chat_of("q")));
}

TEST_CASE("prompt: a template without tools gets them, the calls and the results as texts") {
  constexpr std::string_view kSource =
      "{% for m in messages %}{{ m.role + ':' + m.content + '/' }}{% endfor %}{{ tools is none }}";
  wire::RequestSubmit request = chat_of("q");
  const std::string call = R"([{"function":{"name":"f","arguments":"{\"x\": 1}"}}])";
  request.messages->push_back({.role = "assistant", .tool_calls = call});
  request.messages->push_back({.role = "tool", .content = "4", .tool_call_id = "unknown"});
  const std::string turns =
      "user:q/assistant:<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>/"
      "user:<tool_response>\n4\n</tool_response>/True";
  const auto prompt_of = [&](const wire::RequestSubmit& asked) {
    Fixture fixture(kSource);
    PromptEncoder encoder = fixture.encoder();
    encoder.max_context = 4096;
    const auto tokens = encoder.encode(asked, 0);
    REQUIRE(tokens.has_value());
    std::string text;
    for (const TokenId token : *tokens) text += fixture.tokenizer.piece(token);
    return text;
  };
  CHECK_THAT(prompt_of(request), Contains(turns));
  request.tools = R"([{"type":"function","function":{"name":"f"}}])";
  CHECK_THAT(prompt_of(request), Contains("system:You can call these functions:") &&
                                     Contains("{\"name\": \"f\"}\n") && Contains(turns));
  request.messages->back().tool_calls = "{}";
  CHECK(Fixture(kSource).encode(request).error().code == Errc::BadRequest);
}

TEST_CASE("prompt: the client cannot replace the worker's variables of the template") {
  const Fixture fixture("ab");
  wire::RequestSubmit request = chat_of("q");
  for (const char* kwargs : {R"({"bos_token":"x"})", R"({"messages":[]})", "[]", "{"}) {
    request.chat_template_kwargs = kwargs;
    CHECK(fixture.encode(request).error().code == Errc::BadRequest);
  }
  request.chat_template_kwargs.clear();
  request.tools = "{";
  CHECK(Fixture("{{ tools }}").encode(request).error().code == Errc::BadRequest);
  request.tools.clear();
  request.messages->push_back({.role = "assistant", .tool_calls = "{}"});
  CHECK(fixture.encode(request).error().code == Errc::BadRequest);
}

TEST_CASE("prompt: JSON within a text has the limits of a request") {
  std::string many = R"({"x":[1)";
  for (int i = 0; i < 33'000; ++i) many += ",[]";
  many += "]}";
  // Numbers cost a quarter, so that 33 000 of them pass.
  std::string numbers = R"({"x":[1)";
  for (int i = 0; i < 33'000; ++i) numbers += ",1";
  numbers += "]}";
  const Fixture fixture("{{ (tools[0].function or {}).name if tools else '' }}");
  for (const auto& [json, is_refused] : {std::pair(many, true), std::pair(numbers, false)}) {
    wire::RequestSubmit request = chat_of("q");
    request.chat_template_kwargs = json;
    CHECK(fixture.encode(request).has_value() != is_refused);
    request = chat_of("q");
    request.tools = "[" + json + "]";
    CHECK(fixture.encode(request).has_value() != is_refused);
    const auto with_calls = [&](const std::string& arguments) {
      request = chat_of("q");
      request.messages->push_back(
          {.role = "assistant",
           .tool_calls = R"([{"function":{"name":"f","arguments":)" + arguments + "}}]"});
      return fixture.encode(request);
    };
    CHECK(with_calls(json).has_value() != is_refused);
    CHECK(with_calls(nlohmann::json(json).dump()).has_value() != is_refused);
    if (is_refused) CHECK_THAT(with_calls(json).error().detail, Contains("more than 32768"));
  }
}

TEST_CASE("prompt: a plain prompt treats the name of a control token as text") {
  const Fixture fixture("{{ bos_token }}");
  wire::RequestSubmit request;
  request.prompt = "<s>ab</s>";
  const auto tokens = fixture.encode(request);
  REQUIRE(tokens.has_value());
  CHECK(times(*tokens, kBos) == 1);
  CHECK(times(*tokens, kEos) == 0);
}

TEST_CASE("prompt: a published text begins as a plain prompt does, or as a template's output") {
  const Fixture fixture("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  const auto published = [&](const std::string& text) {
    return fixture.encoder().encode_published(text).value();
  };
  CHECK(published("<s>ab</s>") == fixture.encode(chat_of("ab")).value());
  wire::RequestSubmit plain;
  plain.prompt = "ab";
  CHECK(published("ab") == fixture.encode(plain).value());
}

TEST_CASE("prompt: tokens are taken as they are") {
  const Fixture fixture("{{ bos_token }}");
  wire::RequestSubmit request;
  request.prompt_tokens = std::vector<TokenId>{5, 6};
  CHECK(fixture.encode(request).value() == std::vector<TokenId>{5, 6});
}

TEST_CASE("prompt: a template gets the request's time, or else the worker's") {
  const Fixture fixture("{{ strftime_now('%Y') }}");
  wire::RequestSubmit request = chat_of("");
  const auto now = fixture.encode(request);
  request.asked_at_unix_s = 0;
  const auto then = fixture.encode(request);
  wire::RequestSubmit plain;
  plain.prompt = "2024";
  CHECK(now.value() == fixture.encode(plain).value());
  plain.prompt = "1970";
  CHECK(then.value() == fixture.encode(plain).value());
}

TEST_CASE("prompt: messages are refused when empty, too long, or without a template") {
  wire::RequestSubmit none = chat_of("");
  none.messages->clear();
  CHECK(Fixture("a").encode(none).error().code == Errc::BadRequest);
  CHECK_THAT(Fixture("{{ raise_exception('users first') }}").encode(chat_of("ab")).error().detail,
             Contains("users first"));
  const auto unknown = Fixture("{% include 'x' %}").encode(chat_of("ab"));
  CHECK(unknown.error().code == Errc::UnsupportedModel);
  CHECK_THAT(unknown.error().detail, Contains("'include'"));
  const std::string long_text(100'000, 'a');
  CHECK(Fixture("{{ messages[0].content }}").encode(chat_of(long_text)).error().code ==
        Errc::PromptTooLong);
}

TEST_CASE("prompt: the error for a long prompt names what bounds it") {
  Fixture fixture("a");
  wire::RequestSubmit request;
  request.prompt = std::string(100'000, 'a');
  CHECK_THAT(fixture.encode(request).error().detail,
             Contains("the model's context holds 64 tokens"));
  fixture.context_bound = ContextBound::SlidingWindow;
  CHECK_THAT(fixture.encode(request).error().detail, Contains("sliding window"));
  fixture.context_bound = ContextBound::Worker;
  CHECK_THAT(fixture.encode(request).error().detail,
             Contains("this worker's --max-context holds 64 tokens"));
}

TEST_CASE("prompt: the last message is continued where its content ends") {
  const Fixture fixture(
      "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}</s>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  wire::RequestSubmit request = chat_of("ab");
  request.messages->push_back({.role = "assistant", .content = " ab c "});
  request.add_generation_prompt = false;
  const auto whole = fixture.encode(request);
  REQUIRE(whole.has_value());
  CHECK(whole->back() == kEos);
  request.continue_final_message = true;
  const auto open = fixture.encode(request);
  REQUIRE(open.has_value());
  // Without the end of the turn, and all that comes before it.
  CHECK(*open == std::vector<TokenId>(whole->begin(), whole->end() - 1));
}

TEST_CASE("prompt: a last message that cannot be continued is refused with the reason") {
  const Fixture fixture("{% for m in messages %}{{ m.role | upper }}{% endfor %}");
  wire::RequestSubmit request = chat_of("ab");
  request.add_generation_prompt = false;
  request.continue_final_message = true;
  CHECK_THAT(fixture.encode(request).error().detail, Contains("does not print the last message"));
  request.messages->back().content = " ";
  CHECK_THAT(fixture.encode(request).error().detail, Contains("has no text"));
  request.messages->back().content.reset();
  CHECK(fixture.encode(request).error().code == Errc::BadRequest);
}

TEST_CASE("prompt check: a template that renders a short chat is accepted") {
  CHECK_FALSE(refusal_by("{{ messages[0].content }}"));
}

TEST_CASE("prompt check: a template that refuses a short chat, or makes nothing of it, is named") {
  const auto raised = refusal_by("{{ raise_exception('a system message first') }}");
  REQUIRE(raised);
  CHECK_THAT(raised->detail, Catch::Contains("a system message first"));
  CHECK(refusal_by("{{ messages[7].content.x.y }}"));
  CHECK(refusal_by("{% for"));
}

TEST_CASE("prompt check: a tokenizer that cannot encode a letter is an error") {
  GgufBuilder builder;
  builder.set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", "gpt-2")
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{1})
      .set("tokenizer.ggml.merges", std::vector<std::string>{});
  const TemporaryFile file(builder.bytes());
  const auto tokenizer = Tokenizer::from_metadata(*GgufFile::open(file.path()));
  REQUIRE(tokenizer);
  const auto chat = ChatTemplate::parse("a", {});
  CHECK(check_prompts(*tokenizer, chat).error().detail.contains("no token for the byte"));
}
