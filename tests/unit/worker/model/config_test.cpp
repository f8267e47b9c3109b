#include "worker/model/config.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/worker/model/gguf_builder.hpp"

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

/// One change to a good model, and what the refusal must say.
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

TEST_CASE("config: a llama's metadata becomes its numbers") {
  const auto config = config_of(tiny_llama());
  REQUIRE(config.has_value());
  CHECK(*config == ModelConfig{.name = "tiny",
                               .architecture = "llama",
                               .n_layers = 2,
                               .n_embd = 32,
                               .n_heads = 4,
                               .n_kv_heads = 2,
                               .head_dim = 8,
                               .n_ff = 64,
                               .n_vocab = kTinyVocab,
                               .n_context = 64,
                               .rope_dim = 8,
                               .rope_base = 10000.0f,
                               .rope_style = RopeStyle::Interleaved,
                               .rms_epsilon = 1e-5f,
                               .tied_embeddings = false});
}

TEST_CASE("config: what a file leaves out has the value the format gives it") {
  const auto config = config_of(tiny_llama()
                                    .remove("general.name")
                                    .remove("llama.attention.head_count_kv")
                                    .remove("llama.rope.dimension_count")
                                    .remove_tensor("output.weight"));
  REQUIRE(config.has_value());
  CHECK(config->name == "llama");
  CHECK(config->n_kv_heads == 4);
  CHECK(config->rope_dim == 8);
  CHECK(config->tied_embeddings);
}

TEST_CASE("config: heads may be wider together than the model") {
  const auto config = config_of(
      tiny_llama().set("llama.attention.key_length", 16u).set("llama.rope.freq_base", 5e5f));
  REQUIRE(config.has_value());
  CHECK(config->head_dim == 16);
  CHECK(config->rope_dim == 8);
  CHECK(config->rope_base == 5e5f);
}

TEST_CASE("config: an unknown architecture is refused by its name, made safe to print") {
  check_refused({
      {tiny_llama().set("general.architecture", "gemma"), Errc::UnsupportedModel, "\"gemma\""},
      {tiny_llama().set("general.architecture", "a\nb\xff"), Errc::UnsupportedModel, "\"a?b?\""},
      {tiny_llama().remove("general.architecture"), Errc::FileCorrupt, "general.architecture"},
  });
}

TEST_CASE("config: each number that is missing, zero or absurd is refused by its key") {
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

TEST_CASE("config: numbers that contradict each other are refused") {
  check_refused({
      {tiny_llama().set("llama.attention.head_count_kv", 3u), Errc::FileCorrupt, "evenly"},
      {tiny_llama().set("llama.attention.head_count_kv", 8u), Errc::FileCorrupt, "evenly"},
      {tiny_llama().set("llama.attention.head_count", 6u), Errc::FileCorrupt, "does not divide"},
      {tiny_llama().set("llama.attention.value_length", 16u), Errc::UnsupportedModel, "equal"},
      {tiny_llama().set("llama.rope.dimension_count", 7u), Errc::FileCorrupt, "even number"},
      {tiny_llama().set("llama.rope.dimension_count", 10u), Errc::FileCorrupt, "even number"},
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
      {tiny_llama().set("general.name", "a\xff"), Errc::FileCorrupt, "general.name"},
  });
}

TEST_CASE("config: scaled positions and mixtures of experts are refused, not computed wrongly") {
  check_refused({
      {tiny_llama().set("llama.rope.scaling.type", "yarn"), Errc::UnsupportedModel, "is yarn"},
      {tiny_llama().set("llama.rope.scaling.factor", 4.0f), Errc::UnsupportedModel, "factor is 4"},
      {tiny_llama().set("llama.rope.scale_linear", 2.0f), Errc::UnsupportedModel, "scale_linear"},
      {tiny_llama().set("llama.expert_count", 8u), Errc::UnsupportedModel, "mixture"},
  });
  CHECK(config_of(tiny_llama()
                      .set("llama.rope.scaling.type", "none")
                      .set("llama.rope.scaling.factor", 4.0f)
                      .set("llama.expert_count", 0u))
            .has_value());
}

TEST_CASE("config: the real small models have the numbers they were trained with") {
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string path = test_data(std::string("models/stories260K-") + type + ".gguf");
    if (path.empty()) return;
    INFO(path);
    const auto file = GgufFile::open(path);
    REQUIRE(file.has_value());
    const auto config = read_config(*file);
    REQUIRE(config.has_value());
    CHECK(*config == ModelConfig{.name = "llama",
                                 .architecture = "llama",
                                 .n_layers = 5,
                                 .n_embd = 64,
                                 .n_heads = 8,
                                 .n_kv_heads = 4,
                                 .head_dim = 8,
                                 .n_ff = 172,
                                 .n_vocab = 512,
                                 .n_context = 512,
                                 .rope_dim = 8,
                                 .rope_base = 10000.0f,
                                 .rope_style = RopeStyle::Interleaved,
                                 .rms_epsilon = 1e-5f,
                                 .tied_embeddings = false});
  }
}

TEST_CASE("config: a real file in an architecture we do not compute is refused by name") {
  const std::string qwen = test_data("models/kq-qwen2-q8_0.gguf");
  if (qwen.empty()) return;
  CHECK_THAT(read_config(*GgufFile::open(qwen)).error().detail, Contains("\"qwen2\""));
}
