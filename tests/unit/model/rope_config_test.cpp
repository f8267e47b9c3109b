#include "kernels/model/rope_config.hpp"

#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

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
  CHECK(yarn->rope.yarn.original_context == 32);
  const auto none = config_of(
      tiny_llama().set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f));
  REQUIRE(none.has_value());
  CHECK(none->rope == config_of(tiny_llama())->rope);
}

TEST_CASE("config: yarn's parameters and the factors of the rotation are read") {
  const auto config = config_of(tiny_model("mistral3")
                                    .set("mistral3.rope.scaling.type", "yarn")
                                    .set("mistral3.rope.scaling.factor", 16.0f)
                                    .set("mistral3.rope.scaling.original_context_length", 32u)
                                    .set("mistral3.rope.scaling.yarn_beta_fast", 4.0f)
                                    .set("mistral3.rope.scaling.yarn_beta_slow", 2.0f)
                                    .set("mistral3.rope.scaling.yarn_ext_factor", 0.5f)
                                    .set("mistral3.rope.scaling.yarn_log_multiplier", 1.0f)
                                    .set("mistral3.rope.scaling.attn_factor", 1.5f)
                                    .set("mistral3.rope.scaling.yarn_attn_factor", 2.0f)
                                    .set("mistral3.attention.temperature_scale", 0.25f));
  REQUIRE(config.has_value());
  CHECK(config->rope.yarn == YarnScaling{.base = 10000.0,
                                         .rope_dim = 8,
                                         .factor = 16.0,
                                         .original_context = 32,
                                         .beta_fast = 4.0,
                                         .beta_slow = 2.0,
                                         .extrapolation = 0.5,
                                         .log_multiplier = 1.0});
  CHECK(config->rope.magnitude == 3.0f);
  CHECK(config->rope.query_temperature == QueryTemperature{.growth = 0.25f, .step = 32});
  check_refused({{tiny_model("mistral3").set("mistral3.attention.temperature_scale", 0.25f),
                  Errc::FileCorrupt, "original_context_length"},
                 {tiny_model("mistral3")
                      .set("mistral3.attention.temperature_scale", kNan)
                      .set("mistral3.rope.scaling.original_context_length", 32u),
                  Errc::FileCorrupt, "temperature_scale"}});
}

TEST_CASE("config: a file may name the magnitude that yarn gives, and does not double it") {
  const auto magnitude = [](GgufBuilder builder) {
    const auto config = config_of(builder.set("olmo2.rope.scaling.factor", 8.0f)
                                      .set("olmo2.rope.scaling.original_context_length", 32u));
    REQUIRE(config.has_value());
    return rope_angles(config->rope, 64).magnitude;
  };
  const auto yarn = [] { return tiny_model("olmo2").set("olmo2.rope.scaling.type", "yarn"); };
  CHECK(magnitude(yarn()) == Approx(1.2079441541679836));
  CHECK(magnitude(yarn().set("olmo2.rope.scaling.yarn_attn_factor", 1.2079442f)) ==
        Approx(1.2079441541679836));
  CHECK(magnitude(yarn().set("olmo2.rope.scaling.yarn_attn_factor", 0.5f)) == Approx(0.5));
  CHECK(magnitude(yarn().set("olmo2.rope.scaling.attn_factor", 0.5f)) == Approx(0.60397207708));
  CHECK(magnitude(tiny_model("olmo2").set("olmo2.rope.scaling.yarn_attn_factor", 0.5f)) == 1.0f);
}

TEST_CASE("config: a longrope model has divisors for contexts below and above the original one") {
  const auto with = [](const char* longer, const char* shorter) {
    GgufBuilder builder = tiny_model("phi3").set("phi3.rope.scaling.original_context_length", 16u);
    if (*longer != 0) builder.vector(longer, {2, 3, 4, 5});
    if (*shorter != 0) builder.vector(shorter, {1, 1, 2, 2});
    return builder;
  };
  const auto config = config_of(with("rope_factors_long.weight", "rope_factors_short.weight"));
  REQUIRE(config.has_value());
  CHECK(config->rope.freq_factors == std::vector<float>{2, 3, 4, 5});
  CHECK(config->rope.short_factors == std::vector<float>{1, 1, 2, 2});
  CHECK(config->rope.uses_short_factors(16));
  CHECK_FALSE(config->rope.uses_short_factors(17));
  const auto plain = rope_frequencies(8, 10000.0);
  CHECK(rope_angles(config->rope, 16).frequencies[3] == plain[3] / 2);
  CHECK(rope_angles(config->rope, 17).frequencies[3] == plain[3] / 5);
  check_refused({
      {with("rope_factors_long.weight", ""), Errc::MissingWeight, "rope_factors_short.weight"},
      {with("", "rope_factors_short.weight"), Errc::MissingWeight, "rope_factors_long.weight"},
      {with("rope_factors_long.weight", "rope_factors_short.weight")
           .remove("phi3.rope.scaling.original_context_length"),
       Errc::FileCorrupt, "original_context_length"},
      {with("rope_factors_long.weight", "rope_factors_short.weight")
           .vector("rope_freqs.weight", {1, 1, 1, 1}),
       Errc::FileCorrupt, "both rope_freqs.weight and rope_factors_long.weight"},
  });
}

TEST_CASE("config: some layers of smollm3 are not rotated") {
  const auto config = config_of(tiny_model("smollm3"));
  REQUIRE(config.has_value());
  CHECK(config->rope.rotates(2));
  CHECK_FALSE(config->rope.rotates(3));
  CHECK(config->rope.rotates(4));
  CHECK_FALSE(config->rope.rotates(7));
}

TEST_CASE("config: granite is not rotated if the file says that its rotation is not trained") {
  for (const bool is_trained : {false, true}) {
    const auto config =
        config_of(tiny_model("granite").set("granite.rope.scaling.finetuned", is_trained));
    REQUIRE(config.has_value());
    CHECK(config->rope.rotates(0) == is_trained);
  }
}

TEST_CASE("config: a file with sections of positions has the pairs of halves") {
  const auto style = [](const std::vector<std::int32_t>& sections) {
    const auto config = config_of(tiny_model("glm4").set("glm4.rope.dimension_sections", sections));
    REQUIRE(config.has_value());
    return config->rope.style;
  };
  CHECK(style({2, 1, 1, 0}) == RopeStyle::Halves);
  CHECK(style({0, 0, 0, 0}) == RopeStyle::Interleaved);
  CHECK(style({4}) == RopeStyle::Interleaved);
  check_refused({{tiny_model("glm4").set("glm4.rope.dimension_sections", 4u),
                  Errc::UnsupportedModel, "glm4.rope.dimension_sections"}});
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
      {yarn().set("llama.rope.scaling.attn_factor", -0.5f), Errc::FileCorrupt,
       "llama.rope.scaling.attn_factor is -0.5"},
      {yarn().set("llama.rope.scaling.yarn_beta_fast", 0.5f), Errc::FileCorrupt,
       "yarn_beta_fast is 0.5 and yarn_beta_slow 1"},
      {yarn().set("llama.rope.scaling.yarn_beta_slow", 0.0f), Errc::FileCorrupt, "yarn_beta_slow"},
      {yarn().set("llama.rope.scaling.yarn_log_multiplier", kNan), Errc::FileCorrupt,
       "yarn_log_multiplier"},
      {yarn().set("llama.rope.scaling.yarn_ext_factor", 1.5f), Errc::FileCorrupt,
       "yarn_ext_factor is 1.5"},
      {yarn().set("llama.rope.scaling.original_context_length", 0u), Errc::FileCorrupt,
       "original_context_length is 0"},
  });
}
