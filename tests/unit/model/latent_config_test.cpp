#include <cmath>

#include "tests/unit/model/config_cases.hpp"

namespace leasehold::testing {
namespace {

constexpr const char* kYarnLog = "deepseek2.rope.scaling.yarn_log_multiplier";

/// Four heads with 8 unrotated and 4 rotated elements; 16 latent elements, and values of 6.
GgufBuilder latent_model() {
  return tiny_model("deepseek2")
      .set("deepseek2.attention.head_count_kv", 1u)
      .set("deepseek2.rope.dimension_count", 4u)
      .set("deepseek2.attention.q_lora_rank", 24u)
      .set("deepseek2.attention.kv_lora_rank", 16u)
      .set("deepseek2.attention.key_length", 20u)
      .set("deepseek2.attention.value_length", 16u)
      .set("deepseek2.attention.key_length_mla", 12u)
      .set("deepseek2.attention.value_length_mla", 6u)
      .remove_tensor("blk.0.attn_q.weight")
      .remove_tensor("blk.1.attn_q.weight");
}

/// As files from before April 2025: the keys and values of each head share a tensor, [28, 16].
GgufBuilder with_fused_heads() {
  return latent_model()
      .set("deepseek2.attention.head_count_kv", 4u)
      .set("deepseek2.attention.key_length", 12u)
      .set("deepseek2.attention.value_length", 6u)
      .remove("deepseek2.attention.key_length_mla")
      .remove("deepseek2.attention.value_length_mla")
      .tensor("blk.0.attn_kv_b.weight", TensorType::F32, {16, 56})
      .tensor("blk.1.attn_kv_b.weight", TensorType::F32, {16, 56});
}

GgufBuilder with_yarn(float log_multiplier) {
  GgufBuilder builder = latent_model()
                            .set("deepseek2.rope.scaling.type", "yarn")
                            .set("deepseek2.rope.scaling.factor", 8.0f);
  if (log_multiplier > 0) builder.set(kYarnLog, log_multiplier);
  return builder;
}

GgufBuilder with_experts() {
  return latent_model()
      .set("deepseek2.expert_count", 8u)
      .set("deepseek2.expert_used_count", 2u)
      .set("deepseek2.expert_feed_forward_length", 32u)
      .set("deepseek2.expert_shared_count", 2u);
}

/// With as many tokens as GLM-4.7-Flash.
GgufBuilder like_glm_flash() {
  constexpr std::uint32_t kTokens = 154880;
  return with_experts()
      .set("tokenizer.ggml.tokens", std::vector<std::string>(kTokens, "a"))
      .remove_tensor("token_embd.weight")
      .tensor("token_embd.weight", TensorType::Q8_0, {32, kTokens});
}

}  // namespace

TEST_CASE("config: latent attention caches one key of its rank and its rotated elements") {
  const auto config = config_of(latent_model());
  REQUIRE(config.has_value());
  CHECK(config->latent ==
        LatentConfig{.rank = 16, .query_rank = 24, .unrotated_dim = 8, .value_dim = 6});
  CHECK(config->head_dim == 20);
  CHECK(config->n_kv_heads == 1);
  CHECK(config->rope.dim == 4);
  CHECK(config->layers[1] ==
        LayerConfig{.n_kv_heads = 1, .head_dim = 20, .n_ff = 64, .latent_dim = 16});
  CHECK(attention_width(*config) == 24);
  CHECK(config->scales.attention == 1.0f / std::sqrt(12.0f));
}

TEST_CASE("config: an older file has the same heads, whose keys and values share a tensor") {
  const auto older = config_of(with_fused_heads());
  REQUIRE(older.has_value());
  CHECK(*older == config_of(latent_model()));
}

TEST_CASE("config: a file with attn_q computes queries directly, whatever rank it names") {
  const auto config =
      config_of(latent_model().tensor("blk.0.attn_q.weight", TensorType::F32, {32, 48}));
  REQUIRE(config.has_value());
  CHECK(config->latent.query_rank == 0);
  check_refused({{latent_model().remove("deepseek2.attention.q_lora_rank"), Errc::FileCorrupt,
                  "q_lora_rank"}});
}

TEST_CASE("config: yarn of latent attention scales its scores and not its rotation") {
  const double growth = 0.1 * std::log(8.0);
  const auto config = config_of(with_yarn(0.0707f));
  REQUIRE(config.has_value());
  CHECK(config->scales.attention ==
        Approx(std::pow(1 + 0.707 * growth, 2) / std::sqrt(12.0)).epsilon(1e-6));
  CHECK(rope_angles(config->rope, 64).magnitude == 1.0f);
  const auto without = config_of(with_yarn(0));
  REQUIRE(without.has_value());
  CHECK(without->scales.attention ==
        Approx(std::pow(1 + growth, 2) / std::sqrt(12.0)).epsilon(1e-6));
  CHECK(rope_angles(without->rope, 64).magnitude == Approx(1 + growth));
  check_refused({{latent_model().set("deepseek2.rope.scaling.factor", 4.0f), Errc::UnsupportedModel,
                  "rope.scaling.type is not yarn"}});
}

TEST_CASE("config: the temperature of latent queries may have a step of its own") {
  const auto warm = [] {
    return with_yarn(0.1f).set("deepseek2.attention.temperature_scale", 0.2f);
  };
  CHECK(config_of(warm().set("deepseek2.rope.scaling.original_context_length", 32u))
            ->rope.query_temperature == QueryTemperature{.growth = 0.2f, .step = 32});
  CHECK(config_of(warm().set("deepseek2.attention.temperature_length", 48u))
            ->rope.query_temperature.step == 48);
}

TEST_CASE("config: deepseek2 gates by softmax unless the file or its size says sigmoid") {
  const auto gating = [](GgufBuilder builder) { return config_of(builder)->experts.gating; };
  CHECK(gating(with_experts()) == ExpertGating::Softmax);
  CHECK(gating(with_experts().set("deepseek2.expert_gating_func", 1u)) == ExpertGating::Softmax);
  CHECK(gating(with_experts().set("deepseek2.expert_gating_func", 2u)) == ExpertGating::Sigmoid);
  for (const auto& [n_layers, expected] :
       {std::pair(46u, ExpertGating::Softmax), std::pair(47u, ExpertGating::Sigmoid),
        std::pair(48u, ExpertGating::Sigmoid)}) {
    CHECK(gating(with_experts().set("deepseek2.block_count", n_layers)) == ExpertGating::Softmax);
    CHECK(gating(like_glm_flash().set("deepseek2.block_count", n_layers)) == expected);
  }
  check_refused({{with_experts().set("deepseek2.expert_gating_func", 3u), Errc::UnsupportedModel,
                  "expert_gating_func is 3"}});
  const auto config = config_of(with_experts());
  CHECK(config->experts.n_shared_ff == 64);
  CHECK_FALSE(config->experts.normalize_expert_weights);
}

TEST_CASE("config: files with other dimensions of latent attention are refused with the key") {
  check_refused({
      {latent_model().remove("deepseek2.attention.key_length_mla"), Errc::FileCorrupt,
       "key_length_mla"},
      {with_fused_heads().remove("deepseek2.attention.value_length"), Errc::FileCorrupt,
       "attention.value_length"},
      {with_fused_heads().set("deepseek2.attention.key_length", 4u), Errc::FileCorrupt,
       "attention.key_length is 4"},
      {latent_model().remove("deepseek2.attention.kv_lora_rank"), Errc::FileCorrupt,
       "kv_lora_rank"},
      {latent_model().remove("deepseek2.attention.value_length_mla"), Errc::FileCorrupt,
       "value_length_mla"},
      {latent_model().set("deepseek2.attention.key_length_mla", 4u), Errc::FileCorrupt,
       "key_length_mla is 4"},
      {latent_model().set("deepseek2.attention.key_length", 12u), Errc::FileCorrupt,
       "key_length is 12"},
      {latent_model().set("deepseek2.attention.value_length", 6u), Errc::FileCorrupt,
       "value_length is 6"},
      {latent_model().set("deepseek2.attention.head_count_kv", 4u), Errc::FileCorrupt,
       "head_count_kv is 4"},
      {latent_model().set("deepseek2.attention.kv_lora_rank", 1024u), Errc::FileCorrupt,
       "key_length is 20"},
  });
}

}  // namespace leasehold::testing
