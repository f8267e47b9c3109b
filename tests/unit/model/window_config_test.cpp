/// Layers with a window, their rotation, and the soft caps and scales of the families that have
/// them.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/model/kv_type.hpp"
#include "kernels/numerics/attention_order.hpp"
#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

constexpr const char* kPattern = "attention.sliding_window_pattern";

/// A model of `n_layers` with a window of 16 in some of them.
GgufBuilder windowed(const std::string& architecture, std::uint32_t n_layers) {
  return tiny_model(architecture)
      .set(architecture + ".attention.sliding_window", 16u)
      .set(architecture + ".block_count", n_layers);
}

std::vector<bool> windows_of(const GgufBuilder& builder) {
  const auto config = config_of(builder);
  REQUIRE(config.has_value());
  CHECK(config->windows.width == 16);
  CHECK(config->n_context == 64);
  CHECK_FALSE(config->has_sliding_window);
  return config->windows.has_window;
}

/// One byte per layer, as GGUF stores booleans.
GgufBuilder with_pattern(GgufBuilder builder, const std::string& key, const std::string& layers) {
  return builder.set_raw(key, GgufType::Array,
                         raw(GgufType::Bool) + raw(std::uint64_t{layers.size()}) + layers);
}

}  // namespace

TEST_CASE("windows: each family's layers, or the pattern of the file") {
  CHECK(windows_of(windowed("gemma2", 4)) == std::vector{true, false, true, false});
  CHECK(windows_of(windowed("gpt-oss", 3)
                       .set("gpt-oss.expert_count", 4u)
                       .set("gpt-oss.expert_used_count", 2u)) == std::vector{true, false, true});
  CHECK(windows_of(windowed("olmo2", 5)) == std::vector{true, true, true, false, true});
  const std::vector<bool> gemma3 = windows_of(windowed("gemma3", 7));
  CHECK(gemma3 == std::vector{true, true, true, true, true, false, true});
  CHECK(windows_of(windowed("gemma3", 3).set("gemma3." + std::string(kPattern), 2u)) ==
        std::vector{true, false, true});
  CHECK(windows_of(with_pattern(windowed("olmo2", 3), "olmo2." + std::string(kPattern),
                                {'\0', '\1', '\1'})) == std::vector{false, true, true});
  // A pattern includes the layers that only propose tokens.
  CHECK(windows_of(with_pattern(windowed("olmo2", 4).set("olmo2.nextn_predict_layers", 1u),
                                "olmo2." + std::string(kPattern), {'\0', '\1', '\1', '\0'})) ==
        std::vector{false, true, true});
  const auto without = config_of(tiny_model("olmo2"));
  REQUIRE(without.has_value());
  CHECK(without->windows == WindowConfig{});
  CHECK(without->windows.of(1) == 0);
  const auto unnamed = config_of(tiny_model("gemma2"));
  REQUIRE(unnamed.has_value());
  CHECK(unnamed->windows.of(0) == 4096);
  CHECK(unnamed->windows.of(1) == 0);
  check_refused({{with_pattern(windowed("olmo2", 3), "olmo2." + std::string(kPattern), "\1\1"),
                  Errc::FileCorrupt, "has 2 elements for 3 layers"},
                 {windowed("gemma3", 3).set("gemma3." + std::string(kPattern), 0u),
                  Errc::FileCorrupt, "sliding_window_pattern is 0"},
                 {with_pattern(windowed("olmo2", 2), "olmo2." + std::string(kPattern), "\1\2"),
                  Errc::FileCorrupt, "is 2, not 0 or 1"}});
}

TEST_CASE("windows: a window of every layer still limits the context") {
  const auto config = config_of(windowed("llama", 2));
  REQUIRE(config.has_value());
  CHECK(config->n_context == 16);
  CHECK(config->has_sliding_window);
  CHECK(config->windows == WindowConfig{});
}

TEST_CASE("windows: their layers rotate without scaling, from a base of their own") {
  const auto gemma3 = config_of(windowed("gemma3", 6)
                                    .set("gemma3.rope.freq_base", 1e6f)
                                    .set("gemma3.rope.scaling.factor", 8.0f));
  REQUIRE(gemma3.has_value());
  REQUIRE(gemma3->window_rope.has_value());
  CHECK(gemma3->rope.scaling == RopeScaling::Linear);
  CHECK(gemma3->window_rope->scaling == RopeScaling::None);
  CHECK(gemma3->window_rope->base == 10000.0f);
  const auto named = config_of(windowed("gemma3", 6).set("gemma3.rope.freq_base_swa", 5e4f));
  REQUIRE(named.has_value());
  CHECK(named->window_rope->base == 5e4f);
  const auto olmo = config_of(windowed("olmo2", 4).set("olmo2.rope.freq_base", 5e5f));
  REQUIRE(olmo.has_value());
  CHECK(olmo->window_rope->base == 5e5f);
  CHECK_FALSE(config_of(windowed("gemma2", 2))->window_rope.has_value());
  const auto gemma2 = config_of(windowed("gemma2", 2)
                                    .set("gemma2.rope.freq_base_swa", 5e4f)
                                    .set("gemma2.rope.scaling.factor", 8.0f));
  REQUIRE(gemma2.has_value());
  CHECK(gemma2->window_rope->base == 5e4f);
  CHECK(gemma2->window_rope->scaling == RopeScaling::Linear);
  const auto narrow = config_of(windowed("gemma2", 2).set("gemma2.attention.key_length_swa", 4u));
  REQUIRE(narrow.has_value());
  CHECK(narrow->window_rope->dim == 4);
  check_refused({{windowed("gemma3", 6).set("gemma3.rope.freq_base_swa", kNan), Errc::FileCorrupt,
                  "rope.freq_base_swa"}});
}

TEST_CASE("windows: divisors of another number of pairs than their layers rotate are refused") {
  const auto with_divisors = [] {
    return windowed("gemma2", 2).vector("rope_freqs.weight", {1, 2, 4, 8});
  };
  const auto config = config_of(with_divisors().set("gemma2.rope.freq_base_swa", 5e4f));
  REQUIRE(config.has_value());
  CHECK(config->window_rope->freq_factors == std::vector<float>{1, 2, 4, 8});
  check_refused({{with_divisors().set("gemma2.rope.dimension_count_swa", 4u),
                  Errc::UnsupportedModel, "rope.dimension_count_swa"},
                 {with_divisors().set("gemma2.attention.key_length_swa", 4u),
                  Errc::UnsupportedModel, "rotate 2 pairs"}});
}

TEST_CASE("config: soft caps are read, or have the family's values; other families refuse them") {
  const auto gemma2 = config_of(tiny_model("gemma2"));
  REQUIRE(gemma2.has_value());
  CHECK(gemma2->softcaps == SoftcapConfig{.attention = 50.0f, .logits = 30.0f});
  const auto named = config_of(tiny_model("gemma2")
                                   .set("gemma2.attn_logit_softcapping", 5.0f)
                                   .set("gemma2.final_logit_softcapping", 0.0f));
  REQUIRE(named.has_value());
  CHECK(named->softcaps == SoftcapConfig{.attention = 5.0f, .logits = 0.0f});
  const auto gemma3 = config_of(tiny_model("gemma3").set("gemma3.final_logit_softcapping", 30.0f));
  REQUIRE(gemma3.has_value());
  CHECK(gemma3->softcaps == SoftcapConfig{.attention = 0.0f, .logits = 30.0f});
  check_refused({{tiny_model("gemma2").set("gemma2.attn_logit_softcapping", -1.0f),
                  Errc::FileCorrupt, "attn_logit_softcapping"},
                 {tiny_model("qwen3").set("qwen3.final_logit_softcapping", 30.0f),
                  Errc::UnsupportedModel, "final_logit_softcapping"}});
}

TEST_CASE("config: gemma scales embeddings, and the largest models their scores by the width") {
  const auto small = config_of(tiny_model("gemma3").set("gemma3.attention.key_length", 16u));
  REQUIRE(small.has_value());
  CHECK(small->scales.embedding == std::sqrt(32.0f));
  CHECK(small->scales.attention == 0.25f);
  CHECK(small->activation == Activation::GeGlu);
  for (const auto& [architecture, n_layers] :
       {std::pair("gemma2", 46u), std::pair("gemma3", 62u)}) {
    const std::string key = architecture;
    const auto large = config_of(tiny_model(key)
                                     .set(key + ".attention.key_length", 16u)
                                     .set(key + ".block_count", n_layers));
    REQUIRE(large.has_value());
    CHECK(large->scales.attention == 1.0f / std::sqrt(8.0f));
  }
}

namespace {

KvLayout groups_of(const GgufBuilder& builder) {
  const auto config = config_of(builder);
  REQUIRE(config.has_value());
  return kv_layout(*config, KvType::F16);
}

/// A model of `n_layers` with a window in those whose byte of `pattern` is 1.
KvLayout groups_of(const std::string& pattern) {
  const auto n_layers = static_cast<std::uint32_t>(pattern.size());
  return groups_of(
      with_pattern(windowed("olmo2", n_layers), "olmo2." + std::string(kPattern), pattern));
}

/// Checks that the layers of each group lie one behind the other in a block.
void check_places(const KvLayout& layout) {
  std::vector<std::uint64_t> ends(layout.n_groups());
  for (const KvLayer& layer : layout.layers()) {
    CHECK(layer.offset_bytes == ends.at(layer.group));
    ends[layer.group] += layer.size_bytes();
  }
  for (const std::uint64_t end : ends) CHECK(end > 0);
  CHECK(layout.block_size_bytes() == std::ranges::max(ends));
}

}  // namespace

TEST_CASE("windows: layers with a window fill groups of the size of the other layers") {
  const KvLayout gemma3 = groups_of(windowed("gemma3", 26));  // four layers without a window
  check_places(gemma3);
  CHECK(gemma3.block_size_bytes() == 4 * gemma3.layer(0).size_bytes());
  CHECK(gemma3.window() == KvWindow{.n_groups = 6, .positions = 16});
  CHECK(gemma3.layer(5).group == 0);
  CHECK(gemma3.layer(0).group == 1);
  CHECK(gemma3.layer(25).group == 6);
  CHECK(groups_of(windowed("gemma2", 4)).n_groups() == 2);
}

TEST_CASE("windows: a model whose layers are all of one kind has one group") {
  for (const std::string& pattern : {std::string(5, '\0'), std::string(5, '\1')}) {
    const KvLayout layout = groups_of(pattern);
    check_places(layout);
    CHECK(layout.n_groups() == 1);
    CHECK(layout.window() == KvWindow{});
    CHECK(layout.window().first_block(1000) == 0);
  }
}

TEST_CASE("windows: many layers with a window beside one without have few groups") {
  const KvLayout layout = groups_of(std::string(1, '\0') + std::string(63, '\1'));
  check_places(layout);
  CHECK(layout.n_groups() <= KvLayout::kMaxGroups);
  CHECK(layout.block_size_bytes() == 5 * layout.layer(0).size_bytes());
}

TEST_CASE("windows: the first block is that of the first position which a row reads") {
  for (const std::uint32_t positions : {1u, 15u, 16u, 17u, 100u}) {
    const KvWindow window{.n_groups = 1, .positions = positions};
    for (std::uint32_t position = 0; position < 400; ++position)
      CHECK(window.first_block(position) == first_position(position, positions) / 16);
  }
}
