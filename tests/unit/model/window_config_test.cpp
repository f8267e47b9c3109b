/// Layers with a window, their rotation, and the soft caps and scales of the families that have
/// them.
#include <catch2/catch.hpp>
#include <cmath>

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
  check_refused({{windowed("gemma3", 6).set("gemma3.rope.freq_base_swa", kNan), Errc::FileCorrupt,
                  "rope.freq_base_swa"}});
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
