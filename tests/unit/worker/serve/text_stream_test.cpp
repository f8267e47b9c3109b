#include "worker/serve/text_stream.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "tests/unit/ipc/control/peer_fixture.hpp"
#include "worker/kv/request_ids.hpp"

namespace leasehold::testing {
namespace {

constexpr std::string_view kLlama = "🦙";  // four bytes

struct StreamFixture {
  TextStream stream(std::vector<TokenId> emitted = {}, std::vector<std::string> stops = {}) {
    TextStream made(fixture.peer, RequestId{"r"},
                    GeneratedText(tokenizer, {.stop = std::move(stops)}));
    (void)made.continue_after(emitted);
    return made;
  }
  /// The parameters of the next message to the client.
  nlohmann::json received(const char* method) {
    const nlohmann::json message = fixture.other->read_required();
    REQUIRE(message.at("method") == method);
    return message.at("params");
  }
  std::string text() { return received("token.emitted").at("text"); }

  PeerFixture fixture;
  Tokenizer tokenizer = tiny_tokenizer();
};

}  // namespace

TEST_CASE("text stream: a character is sent whole, with its last token") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  for (std::uint32_t i = 0; i < 4; ++i) {
    stream.send_token({RequestId{"t/r"}, byte_token(kLlama[i]), i});
    const nlohmann::json message = fixture.received("token.emitted");
    REQUIRE(message.at("position") == i);
    REQUIRE(message.at("request") == "r");
    REQUIRE(message.at("text") == (i < 3 ? "" : kLlama));
  }
}

TEST_CASE("text stream: after a rebind a split character continues") {
  StreamFixture fixture;
  TextStream stream = fixture.stream({byte_token(kLlama[0]), byte_token(kLlama[1])});
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[2]), 2});
  REQUIRE(fixture.text().empty());
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[3]), 3});
  REQUIRE(fixture.text() == kLlama);
}

TEST_CASE("text stream: bytes of an incomplete character are sent with the end") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[0]), 0});
  REQUIRE(fixture.text().empty());
  stream.send_completed({.reason = CompletionReason::EndOfSequence});
  REQUIRE(fixture.received("request.completed").at("text") == "\uFFFD");
}

TEST_CASE("text stream: a preemption is notified with its cause, and the text continues") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[0]), 0});
  REQUIRE(fixture.text().empty());
  stream.send_preempted({RequestId{"t/r"}, Errc::QuotaBlocks, 5, 2, 1});
  REQUIRE(fixture.received("request.preempted") == nlohmann::json{{"request", "r"},
                                                                  {"cause", "QuotaBlocks"},
                                                                  {"freed_blocks", 5},
                                                                  {"swapped_blocks", 2},
                                                                  {"emitted_tokens", 1}});
  for (std::uint32_t i = 1; i < 4; ++i)
    stream.send_token({RequestId{"t/r"}, byte_token(kLlama[i]), i});
  REQUIRE(fixture.text().empty());
  REQUIRE(fixture.text().empty());
  REQUIRE(fixture.text() == kLlama);
}

TEST_CASE("text stream: the possible beginning of a stop string is held back until the end") {
  StreamFixture fixture;
  TextStream stream = fixture.stream({byte_token('a'), byte_token('<')}, {"</s>"});
  stream.send_token({RequestId{"t/r"}, byte_token('b'), 2});
  REQUIRE(fixture.text() == "<b");  // held back before the rebind
  stream.send_token({RequestId{"t/r"}, byte_token('<'), 3});
  REQUIRE(fixture.text().empty());
  TextStream revoked = stream;
  stream.send_completed({.reason = CompletionReason::MaxTokensReached});
  REQUIRE(fixture.received("request.completed").at("text") == "<");
  // A revocation does not end the text: the rest is sent after the rebind.
  revoked.send_completed(
      {.reason = CompletionReason::Revoked, .revocation = RevocationInfo{{17, 4}}});
  REQUIRE_FALSE(fixture.received("request.completed").contains("text"));
}

TEST_CASE("text stream: a stop string and what follows it are not sent") {
  StreamFixture fixture;
  TextStream stream = fixture.stream({}, {"ab"});
  std::string text;
  for (std::uint32_t i = 0; i < 4; ++i) {
    stream.send_token({RequestId{"t/r"}, byte_token("xabc"[i]), i});
    text += fixture.text();
  }
  stream.send_completed({.reason = CompletionReason::StopSequence});
  REQUIRE_FALSE(fixture.received("request.completed").contains("text"));
  REQUIRE(text == "x");
}

TEST_CASE("text stream: requested log probabilities are sent with their token") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  stream.send_token({RequestId{"t/r"}, byte_token('a'), 0, Logprobs{-0.5f, {{7, -0.25f}}}});
  const nlohmann::json message = fixture.received("token.emitted");
  REQUIRE(message.at("logprob") == -0.5);
  REQUIRE(message.at("top_logprobs") == nlohmann::json::parse(R"([{"token":7,"logprob":-0.25}])"));
  stream.send_token({RequestId{"t/r"}, byte_token('a'), 1});
  REQUIRE_FALSE(fixture.received("token.emitted").contains("logprob"));
}

TEST_CASE("text stream: an end names its reason and the lease") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  stream.send_completed({.engine_request_id = RequestId{"t/r"},
                         .reason = CompletionReason::Revoked,
                         .emitted_tokens = 7,
                         .revocation = RevocationInfo{{17, 4}, RevokeReason::Operator}});
  const nlohmann::json end = fixture.received("request.completed");
  REQUIRE(end.at("reason") == "Revoked");
  REQUIRE(end.at("emitted_tokens") == 7);
  REQUIRE(end.at("lease") == "17.4");
  REQUIRE(end.at("scope") == "tenant");
  REQUIRE(end.at("revoke_reason") == "operator");
}

TEST_CASE("text stream: an end with an error has its scope, and a normal end has none") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  const auto [error, scope] = GENERATE(table<Error, std::string>(
      {{{Errc::MissingWeight, "part blk.1"}, "engine"},
       {{Errc::OutOfBlocks, "0 free"}, "tenant"},
       {{.code = Errc::Draining, .detail = "stopping", .scope = FailureScope::Engine}, "engine"}}));
  stream.send_completed({.reason = CompletionReason::EngineError, .error = error});
  const nlohmann::json end = fixture.received("request.completed");
  REQUIRE(end.at("reason") == name(error.code));
  REQUIRE(end.at("scope") == scope);
  stream.send_completed({.reason = CompletionReason::MaxTokensReached});
  REQUIRE(fixture.received("request.completed").at("scope") == "");
}

TEST_CASE("text stream: a refusal after waiting names the lease and the tokens emitted before") {
  StreamFixture fixture;
  TextStream stream = fixture.stream({byte_token('a'), byte_token('b')});
  stream.send_rejected({.engine_request_id = RequestId{"t/r"},
                        .reason = {Errc::Draining, "lease 17.4 is draining"},
                        .lease = {17, 4},
                        .emitted_tokens = 2});
  const nlohmann::json end = fixture.received("request.completed");
  REQUIRE(end.at("reason") == "Draining");
  REQUIRE(end.at("lease") == "17.4");
  REQUIRE(end.at("emitted_tokens") == 2);
  REQUIRE(end.at("scope") == "tenant");
}

TEST_CASE("text stream: an end without an error can carry a detail") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  stream.send_completed({.reason = CompletionReason::MaxTokensReached}, "the context is full");
  REQUIRE(fixture.received("request.completed").at("detail") == "the context is full");
}

TEST_CASE("text stream: sending to a closed connection does nothing") {
  StreamFixture fixture;
  TextStream stream = fixture.stream();
  fixture.fixture.peer.reset();
  stream.send_token({RequestId{"t/r"}, byte_token('a'), 0});
}

TEST_CASE("request ids: engine_request_id separates tenants and contains both parts") {
  const RequestId engine_request_id = to_engine_request_id(TenantId{"acme"}, RequestId{"r.1"});
  REQUIRE(engine_request_id.value == "acme/r.1");
  REQUIRE(to_client_request_id(engine_request_id).value == "r.1");
  REQUIRE(tenant_of(engine_request_id).value == "acme");
  REQUIRE(to_engine_request_id(TenantId{"a"}, RequestId{"b"}) !=
          to_engine_request_id(TenantId{"b"}, RequestId{"a"}));
}

}  // namespace leasehold::testing
