/// Layers with shapes of their own: heads, keys and values, widths, embeddings.
#include <catch2/catch.hpp>

#include "kernels/model/kv_type.hpp"
#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

/// The bytes of a list of numbers, as GGUF stores it.
std::string list(const std::vector<std::int32_t>& numbers) {
  std::string bytes = raw(GgufType::Int32) + raw(std::uint64_t{numbers.size()});
  for (const std::int32_t number : numbers) bytes += raw(number);
  return bytes;
}

/// Six layers: two with a window, one without, twice. The last three share keys and values.
GgufBuilder gemma4() {
  const std::string pattern{1, 1, 0, 1, 1, 0};
  return tiny_model("gemma4")
      .set("gemma4.block_count", 6u)
      .set("gemma4.attention.sliding_window", 16u)
      .set_raw("gemma4.attention.sliding_window_pattern", GgufType::Array,
               raw(GgufType::Bool) + raw(std::uint64_t{pattern.size()}) + pattern)
      .set("gemma4.attention.key_length_swa", 4u)
      .set("gemma4.attention.value_length_swa", 4u)
      .set("gemma4.rope.dimension_count_swa", 4u)
      .set("gemma4.attention.shared_kv_layers", 3u)
      .set("gemma4.embedding_length_per_layer_input", 16u)
      .set_raw("gemma4.attention.head_count_kv", GgufType::Array, list({2, 2, 1, 2, 2, 1}))
      .set_raw("gemma4.feed_forward_length", GgufType::Array, list({64, 64, 64, 96, 96, 96}))
      .vector("rope_freqs.weight", {1, 1, 1e30f, 1e30f});
}

}  // namespace

TEST_CASE("layers: each has the heads, kv heads and width of its kind") {
  const auto config = config_of(gemma4());
  REQUIRE(config.has_value());
  const LayerConfig windowed{.n_kv_heads = 2, .head_dim = 4, .n_ff = 64};
  const LayerConfig full{.n_kv_heads = 1, .head_dim = 8, .n_ff = 64};
  CHECK(std::vector(config->layers.begin(), config->layers.begin() + 3) ==
        std::vector{windowed, windowed, full});
  for (const auto& [layer, source] : {std::pair{3u, 1u}, std::pair{4u, 1u}, std::pair{5u, 2u}}) {
    CHECK_FALSE(config->layers[layer].stores_kv());
    CHECK(kv_layer_of(*config, layer) == source);
    CHECK(config->layers[layer].n_ff == 96);
  }
  CHECK(config->n_kv_heads == 2);
  CHECK(config->head_dim == 8);
  CHECK(config->n_ff == 96);
  CHECK(config->n_layer_embd == 16);
  CHECK(config->scales.attention == 1.0f);
  CHECK(config->norms_values);
  CHECK(config->rope.freq_factors == std::vector{1.0f, 1.0f, 1e30f, 1e30f});
  REQUIRE(config->window_rope.has_value());
  CHECK(config->window_rope->freq_factors.empty());
  CHECK(config->window_rope->dim == 4);
  CHECK(config->window_rope->base == 10000.0f);
}

TEST_CASE("layers: those that read the keys and values of others take no part of a block") {
  const auto config = config_of(gemma4());
  REQUIRE(config.has_value());
  const KvLayout layout = kv_layout(*config, KvType::F32);
  constexpr std::uint64_t kWindowed = 2 * 16 * 2 * 4 * sizeof(float);
  constexpr std::uint64_t kFull = 2 * 16 * 1 * 8 * sizeof(float);
  static_assert(kWindowed == kFull);
  CHECK(layout.block_size_bytes() == kFull);
  CHECK(layout.n_groups() == 3);
  CHECK(layout.layer(0).group == 1);
  CHECK(layout.layer(kv_layer_of(*config, 4)).group == 2);
  CHECK(layout.layer(kv_layer_of(*config, 5)).group == 0);
}

TEST_CASE("layers: shapes that contradict each other, and missing keys, are refused by name") {
  const auto kv_heads = [](const std::vector<std::int32_t>& counts) {
    return gemma4().set_raw("gemma4.attention.head_count_kv", GgufType::Array, list(counts));
  };
  check_refused({
      {gemma4().remove("gemma4.attention.sliding_window_pattern"), Errc::FileCorrupt,
       "sliding_window_pattern"},
      {gemma4().remove("gemma4.attention.sliding_window"), Errc::FileCorrupt, "sliding_window"},
      {gemma4().set("gemma4.attention.value_length_swa", 8u), Errc::UnsupportedModel,
       "value_length_swa is 8"},
      {gemma4().set("gemma4.rope.dimension_count_swa", 8u), Errc::FileCorrupt,
       "dimension_count_swa is 8"},
      {gemma4().set("gemma4.attention.shared_kv_layers", 5u), Errc::FileCorrupt,
       "shared_kv_layers is 5 of 6 layers"},
      {gemma4().set("gemma4.attention.shared_kv_layers", 2u), Errc::FileCorrupt,
       "layer 4 reads keys and values of layer 2"},
      {kv_heads({2, 2, 1, 2, 2}), Errc::FileCorrupt, "has 5 elements for 6 layers"},
      {kv_heads({2, 2, 1, 2, 2, 0}), Errc::FileCorrupt, "has the element 0"},
      {kv_heads({2, 2, 3, 2, 2, 1}), Errc::FileCorrupt, "evenly"},
      {kv_heads({2, 2, 1, 2, 1, 1}), Errc::FileCorrupt, "more kv heads"},
      {gemma4().set("gemma4.embedding_length_per_layer_input", 1u << 20), Errc::UnsupportedModel,
       "embedding_length_per_layer_input"},
      {gemma4().remove_tensor("rope_freqs.weight"), Errc::MissingWeight, "rope_freqs.weight"},
      {tiny_llama().set("llama.attention.shared_kv_layers", 1u), Errc::UnsupportedModel,
       "shared_kv_layers"},
      {tiny_llama().set("llama.embedding_length_per_layer_input", 8u), Errc::UnsupportedModel,
       "embedding_length_per_layer_input"},
  });
}

TEST_CASE("layers: cohere2 rotates those with a window, and multiplies logits") {
  const auto cohere2 = tiny_model("cohere2")
                           .set("cohere2.block_count", 4u)
                           .set("cohere2.attention.sliding_window", 16u)
                           .set("cohere2.attention.layer_norm_epsilon", 1e-5f)
                           .set("cohere2.logit_scale", 0.25f);
  const auto config = config_of(cohere2);
  REQUIRE(config.has_value());
  CHECK(is_rotated(*config, 2));
  CHECK_FALSE(is_rotated(*config, 3));
  CHECK(config->scales.logits == 0.25f);
  CHECK(config->centers_norms);
  CHECK(config->is_parallel);
  check_refused({
      {GgufBuilder(cohere2).remove("cohere2.logit_scale"), Errc::FileCorrupt, "logit_scale"},
      {GgufBuilder(cohere2).set("cohere2.logit_scale", 0.0f), Errc::FileCorrupt, "logit_scale"},
      {GgufBuilder(cohere2).remove("cohere2.attention.layer_norm_epsilon"), Errc::FileCorrupt,
       "layer_norm_epsilon"},
      {GgufBuilder(cohere2).remove("cohere2.attention.sliding_window"), Errc::FileCorrupt,
       "sliding_window"},
      {tiny_llama().set("llama.logit_scale", 0.25f), Errc::UnsupportedModel, "logit_scale"},
  });
}
