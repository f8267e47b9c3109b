#include <catch2/catch.hpp>
#include <cmath>

#include "worker/adapter/peft_config.hpp"

namespace leasehold {
namespace {

using Catch::Matchers::Contains;

/// A config with more members, which override the others.
std::string config_with(std::string_view members) {
  return R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "bias": "none")" +
         (members.empty() ? "" : ", " + std::string(members)) + "}";
}

PeftConfig config_of(std::string_view members) {
  return read_peft_config(config_with(members), "c.json").value();
}

struct RefusedConfig {
  std::string_view members;
  Errc code;
  std::string_view why;
};

void check_refused_configs(std::initializer_list<RefusedConfig> cases) {
  for (const RefusedConfig& one : cases) {
    CAPTURE(one.members);
    const auto config = read_peft_config(config_with(one.members), "c.json");
    REQUIRE_FALSE(config);
    CHECK(config.error().code == one.code);
    CHECK_THAT(config.error().detail, Contains("c.json: " + std::string(one.why)));
  }
}

constexpr std::string_view kQuery = "model.layers.1.self_attn.q_proj";
constexpr std::string_view kDown = "model.layers.11.mlp.down_proj";

}  // namespace

TEST_CASE("peft config: the scale is alpha by rank, or by its root with rslora") {
  CHECK(config_of("").scale_of(kQuery) == 2.0F);
  CHECK(config_of(R"("use_rslora": true)").scale_of(kQuery) == 16.0F / std::sqrt(8.0F));
  CHECK(config_of(R"("use_rslora": null, "lora_alpha": 0.5)").scale_of(kQuery) == 0.0625F);
}

TEST_CASE(
    "peft config: patterns give single modules other ranks and alphas, the first one counts") {
  const PeftConfig config =
      config_of(R"("rank_pattern": {"layers.1.self_attn.q_proj": 4, "q_proj": 2, "own_proj": 1},)"
                R"("alpha_pattern": {"mlp.down_proj": 3})");
  CHECK(config.rank_of(kQuery) == 4);
  CHECK(config.rank_of("model.layers.2.self_attn.q_proj") == 2);
  CHECK(config.rank_of("model.layers.11.self_attn.q_proj") == 2);  // "1.…" begins inside a name
  CHECK(config.rank_of(kDown) == 8);
  CHECK(config.scale_of(kQuery) == 4.0F);
  CHECK(config.scale_of(kDown) == 3.0F / 8.0F);
}

TEST_CASE("peft config: targets and layers limit the modules, and may be left open") {
  const PeftConfig open =
      config_of(R"("target_modules": "all-linear", "layers_to_transform": null)");
  CHECK((open.has_target(kQuery) && open.has_layer(7)));
  const PeftConfig closed =
      config_of(R"("target_modules": ["q_proj", "wn_proj"], "layers_to_transform": [0, 2])");
  CHECK((closed.has_target(kQuery) && !closed.has_target(kDown)));
  CHECK((closed.has_layer(2) && !closed.has_layer(1)));
  CHECK(config_of(R"("layers_to_transform": 3)").has_layer(3));
}

TEST_CASE("peft config: another method than plain LoRA is refused by its key") {
  constexpr auto kErrc = Errc::UnsupportedModel;
  check_refused_configs(
      {{R"("peft_type": "IA3")", kErrc, "peft_type is IA3"},
       {R"("use_dora": true)", kErrc, "use_dora is set: DoRA"},
       {R"("bias": "lora_only")", kErrc, "bias is set"},
       {R"("lora_bias": true)", kErrc, "lora_bias is set"},
       {R"("modules_to_save": ["lm_head"])", kErrc, "modules_to_save is set"},
       {R"("fan_in_fan_out": true)", kErrc, "fan_in_fan_out is set"},
       {R"("layer_replication": [[0, 2]])", kErrc, "layer_replication is set"},
       {R"("target_parameters": ["experts"])", kErrc, "target_parameters is set"},
       {R"("trainable_token_indices": [1])", kErrc, "trainable_token_indices is set"},
       {R"("alora_invocation_tokens": [1])", kErrc, "alora_invocation_tokens is set"},
       {R"("init_lora_weights": "pissa_niter_4")", kErrc, "init_lora_weights is pissa"},
       {R"("lora_alpha": 0)", kErrc, "lora_alpha is 0"},
       {R"("rank_pattern": {"^q.*": 4})", kErrc, "rank_pattern has the regular"}});
  CHECK(read_peft_config(config_with(R"("modules_to_save": [], "use_dora": false, "bias": "",)"
                                     R"("init_lora_weights": "gaussian")"),
                         "c.json"));
}

TEST_CASE("peft config: malformed values are refused by their key") {
  constexpr auto kErrc = Errc::FileCorrupt;
  check_refused_configs(
      {{R"("r": 0)", kErrc, "r is not a rank"},
       {R"("r": -8)", kErrc, "r is not a rank"},
       {R"("r": 4294967296)", kErrc, "r is not a rank"},
       {R"("r": "8")", kErrc, "r is not a rank"},
       {R"("peft_type": 1)", kErrc, "peft_type is missing"},
       {R"("lora_alpha": "16")", kErrc, "lora_alpha is not a number"},
       {R"("lora_alpha": 1e300)", kErrc, "lora_alpha is not a number"},
       {R"("use_rslora": 1)", kErrc, "use_rslora is not true or false"},
       {R"("rank_pattern": [])", kErrc, "rank_pattern is not an object"},
       {R"("rank_pattern": {"q_proj": 0})", kErrc, "rank_pattern is not a rank"},
       {R"("alpha_pattern": {"q_proj": null})", kErrc, "alpha_pattern is not a number"},
       {R"("target_modules": {"q_proj": 1})", kErrc, "target_modules is not a list"},
       {R"("target_modules": [1])", kErrc, "target_modules is not a list"},
       {R"("layers_to_transform": [-1])", kErrc, "layers_to_transform is not a list"}});
  for (const std::string& text :
       {std::string(""), std::string("[]"), std::string("{"), std::string(100000, '['),
        std::string("{}"), R"({"peft_type": "LORA"})" + std::string("x")})
    CHECK(read_peft_config(text, "c.json").error().code == Errc::FileCorrupt);
}

}  // namespace leasehold
