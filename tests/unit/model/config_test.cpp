#include "kernels/model/config.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/support/gguf_builder.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

Result<ModelConfig> config_of(const GgufBuilder& builder) {
  const TemporaryFile file(builder.bytes());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.has_value());
  return read_config(*gguf);
}

/// A change to a valid model and the expected error.
struct Change {
  GgufBuilder builder;
  Errc code;
  const char* says;
};

void check_refused(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    INFO(change.says);
    const auto config = config_of(change.builder);
    REQUIRE_FALSE(config.has_value());
    CHECK(name(config.error().code) == name(change.code));
    CHECK_THAT(config.error().detail, Contains(change.says));
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("config: a llama's metadata is read") {
  const auto config = config_of(tiny_llama());
  REQUIRE(config.has_value());
  CHECK(*config ==
        ModelConfig{.name = "tiny",
                    .architecture = "llama",
                    .n_layers = 2,
                    .n_embd = 32,
                    .n_heads = 4,
                    .n_kv_heads = 2,
                    .head_dim = 8,
                    .n_ff = 64,
                    .experts = {},
                    .n_vocab = kTinyVocab,
                    .n_context = 64,
                    .rope = {.dim = 8, .base = 10000.0f, .style = RopeStyle::Interleaved},
                    .rms_epsilon = 1e-5f,
                    .tied_embeddings = false});
}

TEST_CASE("config: missing keys have the defaults of the format") {
  const auto config = config_of(tiny_llama()
                                    .remove("general.name")
                                    .remove("llama.attention.head_count_kv")
                                    .remove("llama.rope.dimension_count")
                                    .remove_tensor("output.weight"));
  REQUIRE(config.has_value());
  CHECK(config->name == "llama");
  CHECK(config->n_kv_heads == 4);
  CHECK(config->rope.dim == 8);
  CHECK(config->tied_embeddings);
}

TEST_CASE("config: heads together may be wider than the model") {
  const auto config = config_of(
      tiny_llama().set("llama.attention.key_length", 16u).set("llama.rope.freq_base", 5e5f));
  REQUIRE(config.has_value());
  CHECK(config->head_dim == 16);
  CHECK(config->rope.dim == 8);
  CHECK(config->rope.base == 5e5f);
}

TEST_CASE("config: an unknown architecture is refused by its printable name") {
  check_refused({
      {tiny_llama().set("general.architecture", "gemma"), Errc::UnsupportedModel, "\"gemma\""},
      {tiny_llama().set("general.architecture", "a\nb\xff"), Errc::UnsupportedModel, "\"a?b?\""},
      {tiny_llama().remove("general.architecture"), Errc::FileCorrupt, "general.architecture"},
  });
}

TEST_CASE("config: a missing, zero or excessive number is refused by its key") {
  for (const std::string key : {"block_count", "embedding_length", "feed_forward_length",
                                "context_length", "attention.head_count"}) {
    INFO(key);
    check_refused({
        {tiny_llama().remove("llama." + key), Errc::FileCorrupt, key.c_str()},
        {tiny_llama().set("llama." + key, 0u), Errc::FileCorrupt, key.c_str()},
        {tiny_llama().set("llama." + key, 1u << 30), Errc::UnsupportedModel, key.c_str()},
        {tiny_llama().set("llama." + key, "two"), Errc::UnsupportedModel, key.c_str()},
    });
  }
}

TEST_CASE("config: inconsistent numbers are refused") {
  check_refused({
      {tiny_llama().set("llama.attention.head_count_kv", 3u), Errc::FileCorrupt, "evenly"},
      {tiny_llama().set("llama.attention.head_count_kv", 8u), Errc::FileCorrupt, "evenly"},
      {tiny_llama().set("llama.attention.head_count", 6u), Errc::FileCorrupt, "does not divide"},
      {tiny_llama().set("llama.attention.value_length", 16u), Errc::UnsupportedModel, "equal"},
      {tiny_llama().set("llama.rope.dimension_count", 7u), Errc::FileCorrupt, "must be even"},
      {tiny_llama().set("llama.rope.dimension_count", 10u), Errc::FileCorrupt, "must be even"},
      {tiny_llama().set("llama.rope.freq_base", kNan), Errc::FileCorrupt, "freq_base"},
      {tiny_llama().set("llama.rope.freq_base", 0.0f), Errc::FileCorrupt, "freq_base"},
      {tiny_llama().set("llama.attention.layer_norm_rms_epsilon", kNan), Errc::FileCorrupt,
       "epsilon"},
      {tiny_llama().set("llama.attention.layer_norm_rms_epsilon", -1.0f), Errc::FileCorrupt,
       "epsilon"},
      {tiny_llama().remove("llama.attention.layer_norm_rms_epsilon"), Errc::FileCorrupt, "epsilon"},
      {tiny_llama().set("llama.vocab_size", 5u), Errc::FileCorrupt, "llama.vocab_size"},
      {tiny_llama().tensor("token_embd.weight", TensorType::F32, {32, 5}), Errc::FileCorrupt,
       "5 rows"},
      {tiny_llama().remove_tensor("token_embd.weight"), Errc::MissingWeight, "token_embd.weight"},
  });
}

TEST_CASE("config: no name of a model refuses it, and every name becomes one printable line") {
  const auto name_of = [](const GgufBuilder& builder) {
    const auto config = config_of(builder);
    REQUIRE(config.has_value());
    return config->name;
  };
  const auto shown = [&](std::string_view name) {
    return name_of(tiny_llama().set("general.name", name));
  };
  CHECK(shown("My Model 7B") == "My Model 7B");
  CHECK(shown("two\nlines\tand \x1b[2J \x7f") == "two lines and  [2J  ");
  CHECK(shown("C1 \xc2\x9b!") == "C1  !");
  CHECK(shown("a\xff") == "a\uFFFD");
  CHECK(shown(std::string(257, 'x')) == std::string(256, 'x'));
  CHECK(shown(std::string(255, 'x') + "é") == std::string(255, 'x'));
  CHECK(shown("") == "llama");
  CHECK(shown(" \n ") == "llama");
  CHECK(name_of(tiny_llama().set("general.name", 7u)) == "llama");
}

TEST_CASE("config: a file that is not a model is refused with what it is and what to give") {
  const GgufBuilder adapter =
      GgufBuilder().set("general.architecture", "llama").set("general.type", "adapter");
  const GgufBuilder old_adapter =
      GgufBuilder()
          .set("general.architecture", "llama")
          .tensor("blk.0.attn_q.weight.lora_a", TensorType::F32, {32, 4});
  GgufBuilder vocabulary = GgufBuilder().set("general.architecture", "llama");
  add_tokenizer(vocabulary);
  check_refused({
      {adapter, Errc::UnsupportedModel, "is an adapter (LoRA), not a model; merge it"},
      {old_adapter, Errc::UnsupportedModel, "is an adapter (LoRA), not a model; merge it"},
      {tiny_llama().set("general.type", "adapter"), Errc::UnsupportedModel, "is an adapter (LoRA)"},
      {GgufBuilder().set("general.type", "mmproj").set("general.architecture", "clip"),
       Errc::UnsupportedModel, "is a multimodal projector, not a model; give the language model"},
      {GgufBuilder().set("general.architecture", "clip"), Errc::UnsupportedModel,
       "is a multimodal projector (clip)"},
      {GgufBuilder().set("general.architecture", "controlvector"), Errc::UnsupportedModel,
       "is a control vector"},
      {GgufBuilder().set("general.type", "imatrix"), Errc::UnsupportedModel,
       "is an importance matrix"},
      {GgufBuilder().set("imatrix.chunk_count", 3u), Errc::UnsupportedModel,
       "is an importance matrix"},
      {vocabulary, Errc::UnsupportedModel, "is a vocabulary without weights"},
      {tiny_llama().set("general.type", "soup"), Errc::UnsupportedModel, "of the type \"soup\""},
  });
  CHECK(config_of(tiny_llama().set("general.type", "model")).has_value());
}

TEST_CASE("config: position scaling is read, also from its old keys") {
  const auto linear = config_of(tiny_llama().set("llama.rope.scaling.factor", 4.0f));
  REQUIRE(linear.has_value());
  CHECK(linear->rope.scaling == RopeScaling::Linear);
  CHECK(linear->rope.factor == 4.0f);
  const auto old = config_of(tiny_llama().set("llama.rope.scale_linear", 2.0f));
  REQUIRE(old.has_value());
  CHECK(old->rope.scaling == RopeScaling::Linear);
  CHECK(old->rope.factor == 2.0f);
  const auto yarn = config_of(tiny_llama()
                                  .set("llama.rope.scaling.type", "yarn")
                                  .set("llama.rope.scaling.factor", 8.0f)
                                  .set("llama.rope.scaling.original_context_length", 32u));
  REQUIRE(yarn.has_value());
  CHECK(yarn->rope.scaling == RopeScaling::Yarn);
  CHECK(yarn->rope.factor == 8.0f);
  CHECK(yarn->rope.original_context == 32);
  const auto none = config_of(
      tiny_llama().set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f));
  REQUIRE(none.has_value());
  CHECK(none->rope == config_of(tiny_llama())->rope);
}

TEST_CASE("config: frequency divisors come from their tensor and are checked") {
  const auto with = [](const std::vector<float>& freq_factors) {
    return tiny_llama().vector("rope_freqs.weight", freq_factors);
  };
  const auto config = config_of(with({1, 1.5f, 4, 8}));
  REQUIRE(config.has_value());
  CHECK(config->rope.freq_factors == std::vector<float>{1, 1.5f, 4, 8});
  const GgufBuilder halves = tiny_llama().tensor("rope_freqs.weight", TensorType::F16, {4});
  check_refused({
      {halves, Errc::UnsupportedModel, "rope_freqs.weight is F16"},
      {with({1, 1, 1, 1, 1, 1, 1, 1}), Errc::FileCorrupt, "rope_freqs.weight has 1 rows of 8"},
      {with({1, 0, 1, 1}), Errc::FileCorrupt, "not a valid divisor"},
      {with({1, -2, 1, 1}), Errc::FileCorrupt, "not a valid divisor"},
      {with({1, kNan, 1, 1}), Errc::FileCorrupt, "not a valid divisor"},
  });
}

TEST_CASE("config: unsupported position scaling is refused by its key") {
  const auto yarn = [] {
    return tiny_llama()
        .set("llama.rope.scaling.type", "yarn")
        .set("llama.rope.scaling.factor", 4.0f);
  };
  check_refused({
      {tiny_llama().set("llama.rope.scaling.type", "longrope"), Errc::UnsupportedModel,
       "llama.rope.scaling.type is longrope"},
      {tiny_llama().set("llama.rope.scaling.factor", kNan), Errc::FileCorrupt, "scaling.factor"},
      {tiny_llama().set("llama.rope.scaling.factor", -2.0f), Errc::FileCorrupt, "scaling.factor"},
      {yarn().set("llama.rope.scaling.attn_factor", 0.5f), Errc::UnsupportedModel,
       "llama.rope.scaling.attn_factor is 0.5"},
      {yarn().set("llama.rope.scaling.yarn_beta_fast", 16.0f), Errc::UnsupportedModel,
       "yarn_beta_fast is 16"},
      {yarn().set("llama.rope.scaling.yarn_log_multiplier", 0.1f), Errc::UnsupportedModel,
       "yarn_log_multiplier"},
      {yarn().set("llama.rope.scaling.original_context_length", 0u), Errc::FileCorrupt,
       "original_context_length is 0"},
  });
}

TEST_CASE("config: other unsupported metadata is refused by its key") {
  for (const std::string key :
       {"attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias",
        "attn_logit_softcapping", "final_logit_softcapping", "logit_scale", "embedding_scale",
        "residual_scale", "expert_weights_scale"}) {
    check_refused({{tiny_llama().set("llama." + key, 0.5f), Errc::UnsupportedModel, key.c_str()}});
    CHECK(config_of(tiny_llama().set("llama." + key, 0.0f)).has_value());
  }
  check_refused(
      {{tiny_llama().set("llama.attention.causal", false), Errc::UnsupportedModel, "causal"}});
}

TEST_CASE("config: a sliding window limits the context") {
  const auto with_window = [](std::uint32_t width) {
    return *config_of(tiny_llama().set("llama.attention.sliding_window", width));
  };
  CHECK(with_window(16).n_context == 16);
  CHECK(with_window(16).has_sliding_window);
  for (const std::uint32_t width : {0u, 64u, 4096u}) {
    CHECK(with_window(width).n_context == 64);
    CHECK_FALSE(with_window(width).has_sliding_window);
  }
}

TEST_CASE("config: a llama with experts is a Mixtral with the width of its experts") {
  const auto experts = [] {
    return tiny_llama().set("llama.expert_count", 8u).set("llama.expert_used_count", 2u);
  };
  const auto config = config_of(experts());
  REQUIRE(config.has_value());
  CHECK(config->experts ==
        ExpertConfig{.n_experts = 8, .n_used = 2, .n_ff = 64, .normalize_expert_weights = true});
  CHECK(config->n_ff == 0);
  CHECK(config_of(tiny_llama().set("llama.expert_count", 0u))->experts == ExpertConfig{});
  CHECK(config_of(experts().set("llama.expert_feed_forward_length", 96u))->experts.n_ff == 96);
  check_refused({
      {experts().remove("llama.expert_used_count"), Errc::FileCorrupt, "expert_used_count"},
      {experts().set("llama.expert_used_count", 9u), Errc::FileCorrupt, "9 of 8 experts"},
      {experts().set("llama.expert_count", 1u << 20), Errc::UnsupportedModel, "expert_count"},
      {experts().set("llama.expert_weights_norm", false), Errc::UnsupportedModel,
       "llama.expert_weights_norm is false"},
      {experts().set("llama.expert_gating_func", 2u), Errc::UnsupportedModel, "expert_gating_func"},
      {experts().set("llama.expert_group_count", 4u), Errc::UnsupportedModel, "expert_group_count"},
  });
}

TEST_CASE("config: each family has its rotation, and experts if it supports them") {
  const auto as = [](const std::string& name) { return tiny_model(name); };
  CHECK(config_of(as("qwen2"))->rope.style == RopeStyle::Halves);
  CHECK(config_of(as("qwen3"))->rope.style == RopeStyle::Halves);
  const auto shared = config_of(as("qwen2moe")
                                    .set("qwen2moe.expert_count", 4u)
                                    .set("qwen2moe.expert_used_count", 2u)
                                    .set("qwen2moe.expert_feed_forward_length", 32u)
                                    .set("qwen2moe.expert_shared_feed_forward_length", 96u));
  REQUIRE(shared.has_value());
  CHECK(shared->experts ==
        ExpertConfig{.n_experts = 4, .n_used = 2, .n_ff = 32, .normalize_expert_weights = false});
  CHECK(shared->n_ff == 96);
  check_refused({
      {as("qwen2").set("qwen2.expert_count", 8u), Errc::UnsupportedModel, "qwen2.expert_count"},
      {as("qwen3moe"), Errc::FileCorrupt, "qwen3moe.expert_count"},
  });
}

TEST_CASE("config: the small trained models have their known dimensions") {
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string path = test_data(std::string("models/stories260K-") + type + ".gguf");
    if (path.empty()) return;
    INFO(path);
    const auto file = GgufFile::open(path);
    REQUIRE(file.has_value());
    const auto config = read_config(*file);
    REQUIRE(config.has_value());
    CHECK(*config ==
          ModelConfig{.name = "llama",
                      .architecture = "llama",
                      .n_layers = 5,
                      .n_embd = 64,
                      .n_heads = 8,
                      .n_kv_heads = 4,
                      .head_dim = 8,
                      .n_ff = 172,
                      .experts = {},
                      .n_vocab = 512,
                      .n_context = 512,
                      .rope = {.dim = 8, .base = 10000.0f, .style = RopeStyle::Interleaved},
                      .rms_epsilon = 1e-5f,
                      .tied_embeddings = false});
  }
}

TEST_CASE("config: a real file of an unsupported architecture is refused by name") {
  check_refused({{tiny_model("gemma2"), Errc::UnsupportedModel,
                  "this build computes llama, qwen2, qwen3, qwen2moe, qwen3moe"}});
}
