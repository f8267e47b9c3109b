// Embeddings of prompts, with a real engine.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/engine_rig.hpp"
#include "tests/support/plain_model.hpp"

namespace leasehold::testing {
namespace {

/// A text of about 60 tokens and its embedding.
struct Embedded {
  explicit Embedded(RigOptions options = {}) : rig(std::move(options)), lease(rig.grant("t")) {
    text = rig.encode(
        "Once upon a time, there was a little girl named Lily. She loved to play "
        "outside in the park. One day, she saw a big red ball and a small dog.");
    REQUIRE(text.size() > 40);
  }
  PromptRequest request(Pooling pooling, const std::string& id = "e") const {
    PromptRequest made = rig.request("t", lease, id, text, 0);
    made.embedding = EmbeddingRequest{.pooling = pooling};
    return made;
  }
  std::vector<float> end(const std::string& id = "e") {
    rig.run();
    CHECK(rig.completion(id).reason == CompletionReason::MaxTokensReached);
    CHECK(rig.outcome(id).tokens.empty());
    return rig.completion(id).embedding;
  }
  std::vector<float> embed(Pooling pooling, const std::string& id = "e") {
    REQUIRE(rig.submit(request(pooling, id)));
    return end(id);
  }

  EngineRig rig;
  LeaseId lease;
  std::vector<TokenId> text;
};

const std::vector<float>& expected(Pooling pooling) {
  static const std::vector<float> kLast = Embedded().embed(Pooling::Last);
  static const std::vector<float> kMean = Embedded().embed(Pooling::Mean);
  return pooling == Pooling::Last ? kLast : kMean;
}

Pooling any_pooling() {
  return GENERATE(Pooling::Last, Pooling::Mean);
}

}  // namespace

TEST_CASE("embeddings: are those of an independent computation in doubles") {
  const Pooling pooling = any_pooling();
  RigOptions options;
  options.kv_type = KvType::F32;
  Embedded embedded(options);
  PlainModel plain(bundled_model_path());
  std::vector<double> sums(plain.config().n_embd);
  for (const TokenId token : embedded.text) {
    plain.next(token);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = (pooling == Pooling::Mean ? sums[i] : 0.0) + plain.hidden()[i];
  }
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  const std::vector<float> embedding = embedded.embed(pooling);
  REQUIRE(embedding.size() == sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(embedding[i] == Approx(sums[i] / std::sqrt(squares)).margin(2e-6));
}

TEST_CASE("embeddings: are the same bits in any chunks, in any batch and with any threads") {
  const Pooling pooling = any_pooling();
  const auto [budget, sequences, threads] =
      GENERATE(std::tuple(256u, 64u, 1u), std::tuple(256u, 8u, 3u), std::tuple(7u, 3u, 1u),
               std::tuple(16u, 1u, 2u));
  RigOptions options;
  options.threads = threads;
  options.limits.token_budget = budget;
  options.limits.max_batch_size = sequences;
  options.limits.speculate = sequences > 8 ? 3 : 0;
  Embedded embedded(options);
  for (std::uint32_t i = 1; i < sequences && i < 4; ++i) {
    const std::string id = "other-" + std::to_string(i);
    REQUIRE(embedded.rig.submit(
        embedded.rig.request("t", embedded.lease, id, embedded.rig.encode("The dog " + id), 30)));
  }
  CHECK(embedded.embed(pooling) == expected(pooling));
}

TEST_CASE("embeddings: the reference backend gives the same bits") {
  const Pooling pooling = any_pooling();
  RigOptions options;
  options.reference = true;
  CHECK(Embedded(options).embed(pooling) == expected(pooling));
}

TEST_CASE("embeddings: only the mean computes cached rows again, and both fill the cache") {
  const Pooling pooling = any_pooling();
  Embedded embedded;
  REQUIRE(embedded.rig.submit(embedded.rig.request("t", embedded.lease, "text", embedded.text, 3)));
  embedded.rig.run();
  CHECK(embedded.embed(pooling) == expected(pooling));
  CHECK((embedded.rig.completion("e").cached_tokens == 0u) == (pooling == Pooling::Mean));
  Embedded other;
  CHECK(other.embed(pooling) == expected(pooling));
  REQUIRE(other.rig.submit(other.rig.request("t", other.lease, "text", other.text, 3)));
  other.rig.run();
  CHECK(other.rig.completion("text").cached_tokens > 0u);
  CHECK(other.rig.outcome("text").tokens == embedded.rig.outcome("text").tokens);
}

TEST_CASE("embeddings: a published text is read for the last position only") {
  const Pooling pooling = any_pooling();
  Embedded embedded;
  embedded.rig.publish({embedded.text.begin(), embedded.text.begin() + 32});
  CHECK(embedded.embed(pooling) == expected(pooling));
  CHECK((embedded.rig.completion("e").cached_tokens == 0u) == (pooling == Pooling::Mean));
}

TEST_CASE("embeddings: a revoked prompt has none, and its rebind has the same bits") {
  const Pooling pooling = any_pooling();
  RigOptions options;
  options.limits.token_budget = 20;
  Embedded embedded(options);
  REQUIRE(embedded.rig.submit(embedded.request(pooling)));
  REQUIRE(embedded.rig.step());
  REQUIRE(embedded.rig.step());
  const LeaseId old = std::exchange(embedded.lease, embedded.rig.grant("t"));
  embedded.rig.revoke(old);
  REQUIRE(embedded.rig.step());
  CHECK(embedded.rig.completion("e").reason == CompletionReason::Revoked);
  CHECK(embedded.rig.completion("e").embedding.empty());
  embedded.rig.clear_outcomes();
  PromptRequest again = embedded.request(pooling);
  again.rebound_from = old;
  REQUIRE(embedded.rig.submit(again));
  CHECK(embedded.end() == expected(pooling));
  CHECK(embedded.rig.outcome("e").rebounds.size() == 1);
}

TEST_CASE("embeddings: a prompt that is moved to another lease keeps what it has pooled") {
  const Pooling pooling = any_pooling();
  RigOptions options;
  options.limits.token_budget = 20;
  Embedded embedded(options);
  REQUIRE(embedded.rig.submit(embedded.request(pooling)));
  REQUIRE(embedded.rig.step());
  const LeaseId to = embedded.rig.grant("t");
  REQUIRE(embedded.rig.engine().move({"e"}, to, embedded.rig.clock().now()));
  embedded.rig.revoke(embedded.lease);
  CHECK(embedded.end() == expected(pooling));
}

TEST_CASE("embeddings: a preempted prompt keeps what it has pooled") {
  const Pooling pooling = any_pooling();
  EngineRig sizes;
  const std::size_t block = sizes.engine().kv_block_size_bytes();
  RigOptions options;
  options.limits.token_budget = 5;
  options.extent_bytes = block * (5 + 2 * record_block_count({sizes.config().n_context}, block));
  Embedded embedded(options);
  REQUIRE(embedded.rig.submit(
      embedded.rig.request("t", embedded.lease, "older", embedded.rig.encode("The dog"), 35)));
  REQUIRE(embedded.rig.step());
  REQUIRE(embedded.rig.submit(embedded.request(pooling)));
  while (embedded.rig.engine().scheduler().has_work()) {
    for (const GrowthRequest& growth : embedded.rig.engine().take_growth_requests())
      embedded.rig.engine().deny_growth(growth);
    REQUIRE(embedded.rig.step());
  }
  REQUIRE(embedded.rig.outcome("e").preemptions.size() == 1);
  CHECK(embedded.rig.completion("e").embedding == expected(pooling));
}

TEST_CASE("embeddings: a prompt of one token, and one that fills the context") {
  const Pooling pooling = any_pooling();
  Embedded embedded;
  embedded.text = {embedded.text.front()};
  CHECK(embedded.embed(pooling, "one").size() == embedded.rig.config().n_embd);
  embedded.text.assign(embedded.rig.config().n_context, embedded.text[0]);
  CHECK(embedded.embed(pooling, "full").size() == embedded.rig.config().n_embd);
}

TEST_CASE("embeddings: fewer dimensions are the first ones, scaled to length 1 again") {
  const Pooling pooling = any_pooling();
  Embedded embedded;
  PromptRequest request = embedded.request(pooling);
  request.embedding->dimensions = 8;
  REQUIRE(embedded.rig.submit(request));
  const std::vector<float> few = embedded.end();
  REQUIRE(few.size() == 8);
  double squares = 0;
  double whole = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    squares += double{few[i]} * few[i];
    whole += double{expected(pooling)[i]} * expected(pooling)[i];
  }
  CHECK(squares == Approx(1.0).margin(1e-6));
  for (std::size_t i = 0; i < few.size(); ++i)
    CHECK(few[i] == Approx(expected(pooling)[i] / std::sqrt(whole)).margin(1e-6));
}

}  // namespace leasehold::testing
