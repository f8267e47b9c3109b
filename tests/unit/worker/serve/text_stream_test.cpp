#include "worker/serve/text_stream.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/ipc/control/peer_bench.hpp"
#include "tests/unit/worker/model/gguf_builder.hpp"
#include "worker/serve/request_key.hpp"

namespace leasehold::testing {
namespace {

constexpr std::string_view kLlama = "🦙";  // four bytes
constexpr TokenId byte_token(char byte) {
  return 3 + static_cast<unsigned char>(byte);
}

struct StreamBench {
  StreamBench() : tokenizer(read_tokenizer()) {}

  static Tokenizer read_tokenizer() {
    const TemporaryFile file(tiny_llama().bytes());
    return *Tokenizer::from_metadata(*GgufFile::open(file.path()));
  }
  TextStream stream(std::vector<TokenId> emitted = {}) {
    return TextStream(bench.peer, RequestId{"r"}, tokenizer, emitted);
  }
  /// The parameters of the next message to the client.
  nlohmann::json received(const char* method) {
    const nlohmann::json message = bench.other->must_read();
    REQUIRE(message.at("method") == method);
    return message.at("params");
  }
  std::string text() { return received("token").at("text"); }

  PeerBench bench;
  Tokenizer tokenizer;
};

}  // namespace

TEST_CASE("text stream: a character comes whole, with its last token") {
  StreamBench bench;
  TextStream stream = bench.stream();
  for (std::uint32_t i = 0; i < 4; ++i) {
    stream.send_token({RequestId{"t/r"}, byte_token(kLlama[i]), i}, false);
    const nlohmann::json message = bench.received("token");
    REQUIRE(message.at("position") == i);
    REQUIRE(message.at("request") == "r");
    REQUIRE(message.at("text") == (i < 3 ? "" : kLlama));
  }
}

TEST_CASE("text stream: after a rebind a character goes on where it was cut") {
  StreamBench bench;
  TextStream stream = bench.stream({byte_token(kLlama[0]), byte_token(kLlama[1])});
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[2]), 2}, false);
  REQUIRE(bench.text().empty());
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[3]), 3}, false);
  REQUIRE(bench.text() == kLlama);
}

TEST_CASE("text stream: what can become no character any more goes out with the last token") {
  StreamBench bench;
  TextStream stream = bench.stream();
  stream.send_token({RequestId{"t/r"}, byte_token(kLlama[0]), 0}, true);
  REQUIRE(bench.text() == "\uFFFD");
}

TEST_CASE("text stream: an end says why, and which lease said so") {
  StreamBench bench;
  TextStream stream = bench.stream();
  stream.send_completed({.request = RequestId{"t/r"},
                         .reason = CompletionReason::Revoked,
                         .emitted_tokens = 7,
                         .verdict = LeaseVerdict{{17, 4}, false, RevokeReason::Operator}});
  const nlohmann::json end = bench.received("completed");
  REQUIRE(end.at("reason") == "Revoked");
  REQUIRE(end.at("emitted_tokens") == 7);
  REQUIRE(end.at("lease") == "17.4");
  REQUIRE(end.at("scope") == "tenant");
  REQUIRE(end.at("revoke_reason") == "operator");
}

TEST_CASE("text stream: a good end carries what else there is to know") {
  StreamBench bench;
  TextStream stream = bench.stream();
  stream.send_completed({.reason = CompletionReason::MaxTokensReached}, "the context is full");
  REQUIRE(bench.received("completed").at("detail") == "the context is full");
}

TEST_CASE("text stream: a client that has gone is no concern of the stream") {
  StreamBench bench;
  TextStream stream = bench.stream();
  bench.bench.peer.reset();
  stream.send_token({RequestId{"t/r"}, byte_token('a'), 0}, false);
}

TEST_CASE("request key: the engine's name keeps tenants apart and gives both halves back") {
  const RequestId inner = inner_id(TenantId{"acme"}, RequestId{"r.1"});
  REQUIRE(inner.value == "acme/r.1");
  REQUIRE(outer_id(inner).value == "r.1");
  REQUIRE(tenant_of(inner).value == "acme");
  REQUIRE(inner_id(TenantId{"a"}, RequestId{"b"}) != inner_id(TenantId{"b"}, RequestId{"a"}));
}

}  // namespace leasehold::testing
