#include "kernels/model/config.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

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
                    .layers = {2, {.n_kv_heads = 2, .head_dim = 8, .n_ff = 64}},
                    .experts = {},
                    .n_vocab = kTinyVocab,
                    .n_context = 64,
                    .rope = {.dim = 8, .base = 10000.0f, .style = RopeStyle::Interleaved},
                    .scales = {.attention = 1.0f / std::sqrt(8.0f)},
                    .rms_epsilon = 1e-5f,
                    .head_epsilon = 1e-5f,
                    .tied_embeddings = false});
}

TEST_CASE("config: a missing key is named, with the most similar one of its family") {
  const auto refusal = [](GgufBuilder file) {
    return config_of(file.remove("llama.embedding_length")).error().detail;
  };
  CHECK_THAT(refusal(tiny_llama()),
             Catch::Contains("the metadata has no llama.embedding_length; convert"));
  CHECK_THAT(refusal(tiny_llama().set("llama.embeding_length", 32u)),
             Catch::Contains("no llama.embedding_length (the nearest is llama.embeding_length)"));
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
      {tiny_llama().set("general.architecture", "falcon"), Errc::UnsupportedModel, "\"falcon\"; "},
      {tiny_llama().set("general.architecture", "qwen45moe"), Errc::UnsupportedModel,
       "\"qwen45moe\" (the nearest is qwen35moe); this build computes llama"},
      {tiny_llama().set("general.architecture", std::string(1 << 20, 'q')), Errc::UnsupportedModel,
       "this build computes llama"},
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

TEST_CASE("config: the epsilon of the norms may have the name of that of layer normalisation") {
  const auto config = config_of(tiny_llama()
                                    .remove("llama.attention.layer_norm_rms_epsilon")
                                    .set("llama.attention.layer_norm_epsilon", 1e-3f));
  REQUIRE(config.has_value());
  CHECK(config->rms_epsilon == 1e-3f);
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
      {adapter, Errc::UnsupportedModel, "is an adapter (LoRA), not a model; give its base model"},
      {old_adapter, Errc::UnsupportedModel,
       "is an adapter (LoRA), not a model; give its base model"},
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

TEST_CASE("config: granite's scales are read; the residual's is moved into the others") {
  const auto config = config_of(tiny_model("granite")
                                    .set("granite.embedding_scale", 12.0f)
                                    .set("granite.residual_scale", 0.25f)
                                    .set("granite.attention.scale", 0.5f)
                                    .set("granite.logit_scale", 8.0f));
  REQUIRE(config.has_value());
  CHECK(config->scales == ScaleConfig{.embedding = 48.0f, .attention = 0.5f, .logits = 0.125f});
  CHECK(config->rms_epsilon == 1e-5f * 16);
  CHECK(config->head_epsilon == 1e-5f);
  const auto plain = config_of(tiny_model("granite"));
  REQUIRE(plain.has_value());
  CHECK(plain->scales == ScaleConfig{.attention = 1.0f / std::sqrt(8.0f)});
  check_refused({{tiny_model("granite").set("granite.residual_scale", -1.0f), Errc::FileCorrupt,
                  "granite.residual_scale"},
                 {tiny_model("granite").set("granite.residual_scale", 1e-30f), Errc::FileCorrupt,
                  "granite.residual_scale"},
                 {tiny_model("granite").set("granite.logit_scale", kNan), Errc::FileCorrupt,
                  "granite.logit_scale"}});
}

TEST_CASE("config: a key that changes nothing is ignored, whatever its type") {
  CHECK(config_of(tiny_model("ernie4_5-moe").set("ernie4_5-moe.interleave_moe_layer_step", 1u))
            .has_value());
  CHECK(config_of(tiny_llama().set("llama.attention.shared_kv_layers", 0u)).has_value());
  check_refused({{tiny_model("ernie4_5-moe").set("ernie4_5-moe.interleave_moe_layer_step", 2u),
                  Errc::UnsupportedModel, "ernie4_5-moe.interleave_moe_layer_step is 2"},
                 {tiny_model("ernie4_5-moe").set("ernie4_5-moe.interleave_moe_layer_step", "two"),
                  Errc::UnsupportedModel, "interleave_moe_layer_step"}});
}

TEST_CASE("config: other unsupported metadata is refused by its key") {
  for (const std::string key :
       {"attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias",
        "attn_logit_softcapping", "final_logit_softcapping", "logit_scale", "embedding_scale",
        "residual_scale", "interleave_moe_layer_step"}) {
    check_refused({{tiny_llama().set("llama." + key, 0.5f), Errc::UnsupportedModel, key.c_str()}});
    CHECK(config_of(tiny_llama().set("llama." + key, 0.0f)).has_value());
  }
  check_refused(
      {{tiny_llama().set("llama.attention.causal", false), Errc::UnsupportedModel, "causal"}});
}

TEST_CASE("config: the pooling of embeddings is the file's") {
  CHECK(config_of(tiny_llama())->pooling_type == PoolingType::None);
  CHECK(config_of(tiny_llama().set("llama.pooling_type", 3u))->pooling_type == PoolingType::Last);
  check_refused(
      {{tiny_llama().set("llama.pooling_type", 4u), Errc::UnsupportedModel,
        "llama.pooling_type is 4, rank"},
       {tiny_llama().set("llama.pooling_type", 5u), Errc::UnsupportedModel, "llama.pooling_type"}});
}

TEST_CASE("config: a sliding window limits the context") {
  const auto with_window = [](std::uint32_t width) {
    return *config_of(tiny_llama().set("llama.attention.sliding_window", width));
  };
  CHECK(with_window(16).n_context == 16);
  CHECK(with_window(16).has_sliding_window);
  CHECK(config_of(tiny_model("phi3").set("phi3.attention.sliding_window", 16u))->n_context == 64);
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
  const auto grouped = config_of(
      experts().set("llama.expert_group_count", 4u).set("llama.expert_group_used_count", 2u));
  REQUIRE(grouped.has_value());
  CHECK(grouped->experts.n_groups == 4);
  CHECK(grouped->experts.n_groups_used == 2);
  CHECK(config_of(tiny_llama().set("llama.expert_count", 0u))->experts == ExpertConfig{});
  CHECK(config_of(experts().set("llama.expert_feed_forward_length", 96u))->experts.n_ff == 96);
  check_refused({
      {experts().remove("llama.expert_used_count"), Errc::FileCorrupt, "expert_used_count"},
      {experts().set("llama.expert_used_count", 9u), Errc::FileCorrupt, "9 of 8 experts"},
      {experts().set("llama.expert_count", 1u << 20), Errc::UnsupportedModel, "expert_count"},
      {experts().set("llama.expert_weights_norm", false), Errc::UnsupportedModel,
       "llama.expert_weights_norm is false"},
      {experts().set("llama.expert_gating_func", 2u), Errc::UnsupportedModel, "expert_gating_func"},
      {experts().set("llama.expert_group_count", 4u), Errc::FileCorrupt, "expert_group_used_count"},
      {experts().set("llama.expert_group_count", 3u).set("llama.expert_group_used_count", 1u),
       Errc::FileCorrupt, "8 experts do not divide into 3 groups"},
      {experts().set("llama.expert_group_count", 8u).set("llama.expert_group_used_count", 1u),
       Errc::FileCorrupt, "1 of 8 groups, for 2 experts of a row"},
      {experts().set("llama.expert_group_count", 4u).set("llama.expert_group_used_count", 5u),
       Errc::FileCorrupt, "5 of 4 groups"},
      {experts().set("llama.expert_group_count", 64u), Errc::UnsupportedModel, "at most 32"},
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
  CHECK(shared->experts == ExpertConfig{.n_experts = 4,
                                        .n_used = 2,
                                        .n_ff = 32,
                                        .normalize_expert_weights = false,
                                        .n_shared_ff = 96});
  CHECK(shared->n_ff == 0);
  check_refused({
      {as("qwen2").set("qwen2.expert_count", 8u), Errc::UnsupportedModel, "qwen2.expert_count"},
      {as("qwen3moe"), Errc::FileCorrupt, "qwen3moe.expert_count"},
  });
}

TEST_CASE("config: experts of GLM-4.5 have sigmoids, a scale, a shared width and dense layers") {
  const auto glm = [] {
    return tiny_model("glm4moe")
        .set("glm4moe.block_count", 4u)
        .set("glm4moe.expert_count", 6u)
        .set("glm4moe.expert_used_count", 2u)
        .set("glm4moe.expert_feed_forward_length", 32u)
        .set("glm4moe.expert_shared_count", 2u)
        .set("glm4moe.leading_dense_block_count", 1u)
        .set("glm4moe.expert_gating_func", 2u)
        .set("glm4moe.expert_weights_norm", true)
        .set("glm4moe.expert_weights_scale", 1.5f)
        .set("glm4moe.nextn_predict_layers", 1u);
  };
  const auto config = config_of(glm());
  REQUIRE(config.has_value());
  CHECK(config->experts == ExpertConfig{.n_experts = 6,
                                        .n_used = 2,
                                        .n_ff = 32,
                                        .normalize_expert_weights = true,
                                        .gating = ExpertGating::Sigmoid,
                                        .scale = 1.5f,
                                        .n_shared_ff = 64,
                                        .n_dense_layers = 1});
  CHECK(config->n_ff == 64);
  CHECK(config->n_layers == 3);
  CHECK(config->n_skipped_layers == 1);
  CHECK_FALSE(config->experts.in_layer(0));
  CHECK(config->experts.in_layer(1));
  CHECK(config_of(glm().set("glm4moe.expert_shared_count", 0u))->experts.n_shared_ff == 0);
  for (const GgufBuilder& plain : std::vector{glm().remove("glm4moe.expert_weights_norm"),
                                              glm().set("glm4moe.expert_weights_norm", false)})
    CHECK_FALSE(config_of(plain)->experts.normalize_expert_weights);
  const auto ernie = tiny_model("ernie4_5-moe")
                         .set("ernie4_5-moe.expert_count", 4u)
                         .set("ernie4_5-moe.expert_used_count", 2u)
                         .set("ernie4_5-moe.expert_shared_count", 2u)
                         .set("ernie4_5-moe.expert_shared_feed_forward_length", 96u);
  CHECK(config_of(ernie)->experts.n_shared_ff == 96);
  CHECK(config_of(ernie)->experts.gating == ExpertGating::Softmax);
  check_refused({
      {glm().set("glm4moe.expert_gating_func", 1u), Errc::UnsupportedModel,
       "glm4moe.expert_gating_func is 1; this build computes glm4moe with 2, a sigmoid"},
      {glm().set("glm4moe.leading_dense_block_count", 4u), Errc::FileCorrupt,
       "leading_dense_block_count is 4 of 3 layers"},
      {glm().set("glm4moe.expert_weights_scale", -1.0f), Errc::FileCorrupt, "expert_weights_scale"},
      {glm().set("glm4moe.expert_shared_count", 1u << 20), Errc::UnsupportedModel,
       "expert_shared_count"},
      {glm().set("glm4moe.nextn_predict_layers", 4u), Errc::FileCorrupt,
       "nextn_predict_layers is 4 of 4 layers"},
      {tiny_model("qwen3moe")
           .set("qwen3moe.expert_count", 4u)
           .set("qwen3moe.expert_used_count", 2u)
           .set("qwen3moe.leading_dense_block_count", 1u),
       Errc::UnsupportedModel, "qwen3moe.leading_dense_block_count is 1"},
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
                      .layers = {5, {.n_kv_heads = 4, .head_dim = 8, .n_ff = 172}},
                      .experts = {},
                      .n_vocab = 512,
                      .n_context = 512,
                      .rope = {.dim = 8, .base = 10000.0f, .style = RopeStyle::Interleaved},
                      .scales = {.attention = 1.0f / std::sqrt(8.0f)},
                      .rms_epsilon = 1e-5f,
                      .head_epsilon = 1e-5f,
                      .tied_embeddings = false});
  }
}

TEST_CASE("config: a real file of an unsupported architecture is refused by name") {
  check_refused({{tiny_model("falcon"), Errc::UnsupportedModel,
                  "this build computes llama, qwen2, qwen3, qwen2moe, qwen3moe"}});
}
