/// The distance of our probabilities from the fp32 reference on the same weights, over a fixed
/// text, with keys and values in the worker's format.
#include "tests/checks/perplexity/perplexity.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/model/matrix.hpp"
#include "tests/support/plain_model.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kStoryTokens = 256;

std::string story() {
  std::ifstream file(source_dir() + "/tests/data/texts/story.txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<TokenId> tokens_of(const std::string& model_path) {
  const auto file = GgufFile::open(model_path);
  auto tokens = *Tokenizer::from_metadata(*file)->encode(story());
  tokens.resize(std::min(tokens.size(), kStoryTokens));
  return tokens;
}

struct Quality {
  double mean_divergence;
  double perplexity;
  double reference_perplexity;
};

Quality against_reference(const std::string& model_path, KvType kv_type,
                          Arithmetic arithmetic = Arithmetic::F32) {
  const std::vector<TokenId> tokens = tokens_of(model_path);
  auto model = LocalModel::load({.model_path = model_path,
                                 .kv_type = kv_type,
                                 .arithmetic = arithmetic,
                                 .positions = kStoryTokens});
  REQUIRE(model.has_value());
  PlainModel reference(model_path);
  TextScore score;
  double reference_nll = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const LocalRow row{.token = tokens[i]};
    REQUIRE((*model)->forward({&row, 1}));
    const auto ours = log_probabilities((*model)->logits(0));
    const auto plain = reference.next(tokens[i]);
    const auto exact = log_probabilities(std::vector<float>(plain.begin(), plain.end()));
    const auto target = static_cast<std::size_t>(tokens[i + 1]);
    score.divergence_sum += divergence(exact, ours);
    score.surprise_nats -= ours[target];
    reference_nll -= exact[target];
    ++score.scored;
  }
  return {score.mean_divergence(), score.perplexity(),
          std::exp(reference_nll / static_cast<double>(score.scored))};
}

/// Of logits [positions, n_vocab].
double mean_divergence(const std::vector<float>& reference, const std::vector<float>& other,
                       std::size_t positions) {
  const std::size_t n_vocab = reference.size() / positions;
  double sum = 0;
  for (std::size_t at = 0; at < reference.size(); at += n_vocab)
    sum += divergence(log_probabilities(std::span(reference).subspan(at, n_vocab)),
                      log_probabilities(std::span(other).subspan(at, n_vocab)));
  return sum / static_cast<double>(positions);
}

PerplexityConfig config_for(const std::string& name) {
  return {.model_path = matrix_model(name), .text = story()};
}

}  // namespace

TEST_CASE("model: mean KL from the fp32 reference is below 1e-3 on the trained models") {
  const std::string name =
      GENERATE("own", "stories260K-f32", "stories260K-f16", "stories260K-q8_0", "stories260K-q4_0");
  const Quality quality = against_reference(matrix_model(name), KvType::F16);
  std::printf("%-18s mean KL %.3e  perplexity %.4f, of the reference %.4f\n", name.c_str(),
              quality.mean_divergence, quality.perplexity, quality.reference_perplexity);
  CAPTURE(name, quality.mean_divergence);
  CHECK(quality.mean_divergence <= 1e-3);
  CHECK(quality.mean_divergence >= 0);
  CHECK(quality.perplexity == Approx(quality.reference_perplexity).epsilon(1e-3));
  // Perplexities over 512 tokens. The bundled model was trained on other texts.
  CHECK(quality.perplexity < (name == "own" ? 200 : 5));
}

TEST_CASE("model: rounded activations keep the mean KL below 1e-3 on the trained models") {
  const std::string name = GENERATE("own", "stories260K-q8_0", "stories260K-q4_0");
  const Quality quality = against_reference(matrix_model(name), KvType::F16, Arithmetic::Int8);
  std::printf("%-18s int8: mean KL %.3e  perplexity %.4f, of the reference %.4f\n", name.c_str(),
              quality.mean_divergence, quality.perplexity, quality.reference_perplexity);
  CAPTURE(name, quality.mean_divergence);
  CHECK(quality.mean_divergence <= 1e-3);
  CHECK(quality.mean_divergence > 1e-6);
  CHECK(quality.perplexity == Approx(quality.reference_perplexity).epsilon(1e-2));
}

// The trained models have heads narrower than 32 elements, so these are the random ones. Rounded
// activations differ more: 2e-3 to 9e-3 (oracle_test).
constexpr double kMostKvDivergence = 5e-3;

TEST_CASE("model: keys and values in q8_0 keep the mean KL from those in f16 below 5e-3") {
  const std::string name = GENERATE("kq-llama-bf16", "kq-llama-q4_k_m", "kq-llama-q6_k",
                                    "kq-qwen2-q4_k_m", "kq-qwen3-q4_k_m");
  const std::string model = matrix_model(name);
  const std::vector<TokenId> text = matrix_text(kStoryTokens);
  const auto logits = [&](KvType kv_type) {
    return compute_logits(model, text, {.kv_type = kv_type, .chunking = Chunking::Sixteens});
  };
  const double mean = mean_divergence(logits(KvType::F16), logits(KvType::Q8_0), text.size());
  const double of_f16 = mean_divergence(logits(KvType::F32), logits(KvType::F16), text.size());
  std::printf("%-18s mean KL of q8_0 from f16 %.3e, of f16 from f32 %.3e\n", name.c_str(), mean,
              of_f16);
  CAPTURE(name, mean);
  CHECK(mean <= kMostKvDivergence);
  CHECK(mean > of_f16);
}

TEST_CASE("perplexity: the distance of a model to itself is zero, to a coarser one positive") {
  PerplexityConfig config = config_for("stories260K-q4_0");
  config.reference_path = config.model_path;
  const auto itself = measure_perplexity(config, {});
  REQUIRE(itself.has_value());
  CHECK(itself->divergence_sum == 0);
  config.reference_path = matrix_model("stories260K-f32");
  const auto other = measure_perplexity(config, {});
  REQUIRE(other.has_value());
  CHECK(other->mean_divergence() > 1e-4);
  CHECK(other->worst_divergence >= other->mean_divergence());
  CHECK(other->perplexity() == itself->perplexity());
}

TEST_CASE("perplexity: windows are read from an empty cache, and all but their first are scored") {
  PerplexityConfig config = config_for("own");
  const std::size_t n_tokens = [&] {
    const auto file = GgufFile::open(config.model_path);
    return Tokenizer::from_metadata(*file)->encode(config.text)->size();
  }();
  std::uint64_t reported = 0;
  config.window = 100;
  const auto cut = measure_perplexity(config, [&](std::uint64_t done, std::uint64_t total) {
    CHECK(total == n_tokens);
    CHECK(done > reported);
    reported = done;
  });
  REQUIRE(cut.has_value());
  CHECK(reported == n_tokens);
  CHECK(cut->scored == n_tokens - (n_tokens + 99) / 100);
  config.window = 0;
  CHECK(measure_perplexity(config, {})->perplexity() < cut->perplexity());
}

TEST_CASE("perplexity: invalid input is refused with its cause") {
  PerplexityConfig config = config_for("own");
  config.window = 1;
  CHECK(measure_perplexity(config, {}).error().code == Errc::BadRequest);
  config.window = 1u << 20;
  CHECK(measure_perplexity(config, {}).error().code == Errc::BadRequest);
  config = config_for("own");
  config.text.clear();
  CHECK(measure_perplexity(config, {}).error().code == Errc::BadRequest);
  config = config_for("own");
  config.reference_path = matrix_model("stories260K-f32");
  CHECK_THAT(measure_perplexity(config, {}).error().detail, Catch::Contains("vocabulary"));
  config.reference_path = "/nowhere.gguf";
  CHECK(measure_perplexity(config, {}).error().code == Errc::FileNotFound);
}

}  // namespace leasehold::testing
