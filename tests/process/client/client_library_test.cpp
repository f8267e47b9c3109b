/// libleasehold-client with a real broker and worker, through its public header only.
#include <signal.h>

#include <catch2/catch.hpp>
#include <leasehold/client.hpp>
#include <thread>

#include "tests/support/chat_system.hpp"
#include "tests/support/no_more_threads.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kPlain{.tenant = "ann", .max_tokens = 300};

api::Session session_of(const System& system, bool rebind = true) {
  api::SessionOptions options{"ann"};
  options.broker = system.broker_socket();
  options.rebind = rebind;
  auto session = api::Session::connect(options);
  REQUIRE(session);
  return std::move(*session);
}

api::Request request_of(const TenantSpec& spec) {
  api::Request request{spec.prompt};
  request.max_tokens = spec.max_tokens;
  request.ignore_eos = spec.ignore_eos;
  return request;
}

/// Appends the next `count` tokens; checks that their positions follow each other.
void read(api::Stream& stream, std::vector<std::int32_t>& tokens, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = stream.next();
    if (!token) return;
    CHECK(token->position == tokens.size());
    tokens.push_back(token->id);
  }
}

constexpr std::size_t kAll = 1 << 20;

/// A text that runs to its end.
struct Whole {
  std::vector<api::Token> tokens;
  api::Completed completed;

  std::string text() const {
    std::string all;
    for (const api::Token& token : tokens) all += token.text;
    return all + completed.text;
  }
  std::vector<std::int32_t> ids() const {
    std::vector<std::int32_t> all;
    for (const api::Token& token : tokens) all.push_back(token.id);
    return all;
  }
};

Whole whole(api::Session& session, const api::Request& request) {
  auto stream = session.generate(request);
  REQUIRE(stream);
  Whole text;
  while (auto token = stream->next()) text.tokens.push_back(*std::move(token));
  const auto completed = stream->result();
  if (!completed) FAIL(completed.error().detail);
  text.completed = *completed;
  return text;
}

std::string refusal(api::Session& session, const api::Request& request) {
  auto stream = session.generate(request);
  if (!stream) return stream.error().detail;
  const auto completed = stream->result();
  return completed ? "accepted" : completed.error().detail;
}

/// Slow enough that no text ends before the test disturbs it.
SystemSpec slow() {
  return {.worker_arguments = {"--slow-motion-us", "100"}};
}

/// Two texts of one session, the first disturbed after ten tokens, and the text without.
struct Disturbed {
  System system{slow()};
  std::vector<std::int32_t> alone, tokens;

  api::Completed run(const std::function<void()>& disturb) {
    system.admit("ann");
    alone = System::alone(kPlain);
    api::Session session = session_of(system);
    auto stream = session.generate(request_of(kPlain));
    REQUIRE(stream);
    read(*stream, tokens, 10);
    disturb();
    read(*stream, tokens, kAll);
    const auto completed = stream->result();
    REQUIRE(completed);
    return *completed;
  }
};

}  // namespace

TEST_CASE("client library: two texts run under one lease and equal leasehold-tenant's") {
  System system({.tenants = {"ann"}});
  const auto alone = system.undisturbed(kPlain);
  {
    api::Session session = session_of(system);
    const auto lease = session.acquire();
    REQUIRE(lease);
    CHECK(lease->worker == "w1");
    for (int round = 0; round < 2; ++round) {
      auto stream = session.generate(request_of(kPlain));
      REQUIRE(stream);
      std::vector<std::int32_t> tokens;
      read(*stream, tokens, kAll);
      const auto completed = stream->result();
      REQUIRE(completed);
      CHECK((tokens == alone));
      CHECK(completed->reason == "MaxTokensReached");
      CHECK(completed->tokens == alone.size());
      CHECK(completed->leases == std::vector{lease->id});
    }
    CHECK(session.lease()->id == lease->id);
  }
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("client library: a revoked lease changes no position of the text") {
  Disturbed text;
  const auto completed = text.run([&] { text.system.revoke_mid_request("ann"); });
  CHECK((text.tokens == text.alone));
  CHECK(completed.leases.size() == 2);
}

TEST_CASE("client library: a killed worker changes no position of the text") {
  Disturbed text;
  const auto completed = text.run([&] {
    text.system.remove_worker("w1");
    text.system.start_ready_worker("w1");
  });
  CHECK((text.tokens == text.alone));
  CHECK(completed.leases.size() == 2);
}

TEST_CASE("client library: without rebind a revocation is a typed error that says what to do") {
  System system(slow());
  system.admit("ann");
  api::Session session = session_of(system, false);
  auto stream = session.generate(request_of(kPlain));
  REQUIRE(stream);
  REQUIRE(stream->next());

  system.revoke_mid_request("ann");

  const auto result = stream->result();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == "LeaseRevoked");
  CHECK(result.error().scope == "tenant");
  CHECK(result.error().detail.find("operator") != std::string::npos);
  CHECK_FALSE(result.error().next.empty());
  CHECK_FALSE(session.lease());
}

TEST_CASE("client library: another process's resumable text goes on behind what it received") {
  System system(slow());
  system.admit("ann");
  const auto alone = System::alone(kPlain);
  TenantSpec resumable = kPlain;
  resumable.more = {"--resumable", "--request-id", "story"};
  const auto killed = system.start_streaming(resumable, 20);
  REQUIRE(killed->child().signal(SIGKILL));
  killed->finish();
  std::vector<std::int32_t> tokens = killed->record().tokens;

  api::Session session = session_of(system);
  api::Request request = request_of(kPlain);
  request.request_id = "story";
  auto stream = session.resume(request, tokens);

  REQUIRE(stream);
  CHECK(stream->request_id() == "story");
  read(*stream, tokens, kAll);
  CHECK((tokens == alone));
  CHECK(stream->result()->tokens == alone.size());
}

TEST_CASE("client library: a text is cancelled from another thread, and by its destruction") {
  System system(slow());
  system.admit("ann");
  api::Session session = session_of(system);
  {
    auto stream = session.generate(request_of(kPlain));
    REQUIRE(stream);
    REQUIRE(stream->next());
    std::thread([&] { stream->cancel(); }).join();
    CHECK(stream->result()->reason == "Cancelled");
  }
  {
    REQUIRE(session.generate(request_of(kPlain))->next());
  }
  session.release();
  CHECK_FALSE(session.lease());
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("client library: a grammar, a schema or JSON mode shapes the answer") {
  System system({.tenants = {"ann"}});
  api::Session session = session_of(system);
  api::Request shaped{"Is the fox red?"};
  shaped.grammar = "root ::= \"yes\" | \"no\"";
  const std::string word = whole(session, shaped).text();
  CHECK((word == "yes" || word == "no"));

  shaped.grammar.clear();
  shaped.json_schema = R"({"type": "boolean"})";
  const std::string answer = whole(session, shaped).text();
  CHECK((answer == "true" || answer == "false"));

  shaped.json_schema = R"({"type": "boolean", "not": {"const": true}})";
  CHECK(refusal(session, shaped).find("not") != std::string::npos);
  shaped.strict_schema = false;
  const auto lenient = whole(session, shaped).completed.unchecked;
  REQUIRE(lenient.size() == 1);
  CHECK(lenient.front().find("not") != std::string::npos);

  shaped.json_schema.clear();
  shaped.json_object = true;
  shaped.max_tokens = 200;
  CHECK(whole(session, shaped).text().starts_with("{"));
  shaped.grammar = "root ::= \"a\"";
  CHECK(refusal(session, shaped).find("at most one") != std::string::npos);
}

TEST_CASE("client library: logprobs, biases, a seed and stop tokens reach the worker") {
  System system({.tenants = {"ann"}});
  api::Session session = session_of(system);
  api::Request request = request_of(kPlain);
  request.max_tokens = 40;
  const Whole plain = whole(session, request);
  CHECK_FALSE(plain.tokens.front().logprob);

  request.logprobs = true;
  request.top_logprobs = 3;
  for (const api::Token& token : whole(session, request).tokens) {
    REQUIRE(token.logprob);
    REQUIRE(token.top_logprobs.size() == 3);
    CHECK(token.top_logprobs.front().id == token.id);  // greedy
    CHECK(token.top_logprobs.front().logprob == *token.logprob);
    CHECK(token.top_logprobs.back().logprob <= *token.logprob);
  }
  request.logprobs = false;
  CHECK(refusal(session, request).find("top_logprobs") != std::string::npos);
  request.top_logprobs = 0;

  const std::int32_t wanted = plain.ids().at(3);
  request.logit_bias = {{wanted, 100.0F}};
  for (const api::Token& token : whole(session, request).tokens) CHECK(token.id == wanted);
  request.stop_token_ids = {wanted};
  CHECK(whole(session, request).completed.reason == "StopSequence");
  request.stop_token_ids.clear();
  request.logit_bias.clear();
  request.repetition_penalty = 1.3F;
  CHECK((whole(session, request).ids() != plain.ids()));
  request.repetition_penalty = 1.0F;

  request.temperature = 1.5F;
  request.seed = 1;
  const auto seeded = whole(session, request).ids();
  CHECK((whole(session, request).ids() == seeded));
  request.seed = 2;
  CHECK((whole(session, request).ids() != seeded));
}

TEST_CASE("client library: tools, calls and variables reach the chat template") {
  ChatSystem system(
      "{{ bos_token }}{{ mood }}{% for t in tools %}<{{ t.function.name }}>{% endfor %}"
      "{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}{% for c in m.tool_calls %}"
      "{{ c.function.name }}{% endfor %}{{ m.tool_call_id }}{% endfor %}");
  api::Session session = session_of(system);
  api::Request chat;
  chat.messages = {{"user", "Hi"}, {"assistant", ""}, {"tool", "7"}};
  chat.messages[1].tool_calls = R"([{"function": {"name": "add", "arguments": {}}}])";
  chat.messages[2].tool_call_id = "c1";
  chat.tools = R"([{"type": "function", "function": {"name": "add", "parameters": {}}}])";
  chat.chat_template_kwargs = R"({"mood": "calm"})";
  chat.max_tokens = 20;
  chat.ignore_eos = true;
  const Whole framed = whole(session, chat);

  api::Request spelt_out{"calm<add>[user]Hi[assistant]add[tool]7c1"};
  spelt_out.max_tokens = 20;
  spelt_out.ignore_eos = true;
  const Whole plain = whole(session, spelt_out);
  CHECK(framed.completed.prompt_tokens == plain.completed.prompt_tokens);
  CHECK((framed.ids() == plain.ids()));

  chat.tools = "[";
  CHECK(refusal(session, chat).find("tools") != std::string::npos);
}

TEST_CASE("client library: an embedding is a vector of length 1, however the prompt is given") {
  System system({.tenants = {"ann"}});
  api::Session session = session_of(system);
  const auto vector = session.embed({"Once upon a time"});
  if (!vector) FAIL(vector.error().detail);
  double squares = 0;
  for (const float element : *vector) squares += double{element} * element;
  CHECK(squares == Approx(1).epsilon(1e-5));
  const auto again = session.embed({.prompt = "Once upon a time", .pooling = "last"});
  REQUIRE(again);
  CHECK((*again == *vector));
  const auto mean = session.embed({.prompt = "Once upon a time", .pooling = "mean"});
  REQUIRE(mean);
  CHECK((*mean != *vector));
  const auto of_tokens = session.embed({.prompt = {}, .prompt_tokens = {1, 5, 9}});
  REQUIRE(of_tokens);
  CHECK(of_tokens->size() == vector->size());
  const auto refused = [&](const api::EmbeddingRequest& request) {
    const auto answer = session.embed(request);
    return answer ? "accepted" : answer.error().code + ": " + answer.error().detail;
  };
  using Catch::Matchers::StartsWith;
  CHECK_THAT(refused({}), StartsWith("BadRequest: an embedding has exactly one"));
  CHECK_THAT(refused({.prompt = "a", .prompt_tokens = {1}}), StartsWith("BadRequest"));
  CHECK_THAT(refused({.prompt = "a", .pooling = "cls"}),
             StartsWith("BadRequest: field 'embedding.pooling'"));
  CHECK_THAT(refused({.prompt = "a", .dimensions = 2}), StartsWith("BadRequest: dimensions"));
  CHECK(session.generate(request_of(kPlain)));
}

TEST_CASE("client library: refusals carry the code of the broker, the worker or the library") {
  System system(slow());
  api::SessionOptions nowhere{"ann"};
  nowhere.broker = system.directory() / "nothing.sock";
  CHECK(api::Session::connect(nowhere).error().code == "FileNotFound");
  CHECK(api::Session::connect({"no name"}).error().code == "BadRequest");
  {
    api::SessionOptions here{"ann"};
    here.broker = system.broker_socket();
    const NoMoreThreads full;
    CHECK(api::Session::connect(here).error().code == "SystemError");
  }

  api::Session session = session_of(system);
  CHECK(session.acquire().error().code == "UnknownTenant");
  CHECK(session.generate(request_of(kPlain))->result().error().code == "UnknownTenant");

  system.admit("ann");
  CHECK(session.generate({}).error().code == "BadRequest");
  api::Request too_hot = request_of(kPlain);
  too_hot.temperature = 1000;
  const auto refused = session.generate(too_hot)->result();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "BadRequest");
  CHECK(refused.error().detail.find("temperature") != std::string::npos);
  auto running = session.generate(request_of(kPlain));
  REQUIRE(running);
  CHECK(session.generate(request_of(kPlain)).error().code == "BadRequest");
  CHECK(session.acquire().error().code == "BadRequest");
}

}  // namespace leasehold::testing
