#include "tests/checks/perplexity/perplexity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kRowsPerStep = 64;
constexpr std::uint32_t kUsualWindow = 512;

struct Subject {
  std::unique_ptr<LocalModel> model;
  std::vector<TokenId> tokens;  // the text in tokens of this model
};

Result<std::uint32_t> window_of(const PerplexityConfig& config, const GgufFile& file) {
  const std::uint32_t n_context = TRY(read_config(file)).n_context;
  const std::uint32_t window =
      config.window != 0 ? config.window : std::min(n_context, kUsualWindow);
  if (window >= 2 && window <= n_context) return window;
  return fail(Errc::BadRequest, fmt::format("a window of {} tokens does not fit {}; choose 2 to {}",
                                            window, file.path(), n_context));
}

Result<Subject> load(const PerplexityConfig& config, const std::string& path, std::uint32_t window,
                     KvType kv_type, Arithmetic arithmetic) {
  const GgufFile file = TRY(GgufFile::open(path));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  std::vector<TokenId> tokens = TRY(tokenizer.encode(config.text));
  return Subject{.model = TRY(load_adapted(config, {.model_path = path,
                                                    .reference = config.reference_backend,
                                                    .threads = config.threads,
                                                    .kv_type = kv_type,
                                                    .arithmetic = arithmetic,
                                                    .max_rows = kRowsPerStep,
                                                    .positions = window})),
                 .tokens = std::move(tokens)};
}

Result<void> forward(LocalModel& model, std::span<const TokenId> tokens) {
  std::vector<LocalRow> rows;
  for (const TokenId token : tokens) rows.push_back({.token = token});
  return model.forward(rows);
}

/// Scores the predictions at positions [first, first + n) of a window.
void score_step(const Subject& subject, const Subject* reference, std::span<const TokenId> targets,
                TextScore& score) {
  for (std::uint32_t i = 0; i < targets.size(); ++i) {
    const std::vector<double> odds = log_probabilities(subject.model->logits(i));
    score.surprise_nats -= odds[static_cast<std::size_t>(targets[i])];
    ++score.scored;
    if (reference == nullptr) continue;
    const double lost = divergence(log_probabilities(reference->model->logits(i)), odds);
    score.divergence_sum += lost;
    score.worst_divergence = std::max(score.worst_divergence, lost);
  }
}

Result<void> score_window(Subject& subject, Subject* reference, std::span<const TokenId> window,
                          TextScore& score) {
  subject.model->restart(0);
  if (reference != nullptr) reference->model->restart(0);
  for (std::size_t at = 0; at + 1 < window.size(); at += kRowsPerStep) {
    const std::size_t n = std::min<std::size_t>(kRowsPerStep, window.size() - 1 - at);
    TRY(forward(*subject.model, window.subspan(at, n)));
    if (reference != nullptr) TRY(forward(*reference->model, window.subspan(at, n)));
    score_step(subject, reference, window.subspan(at + 1, n), score);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LocalModel>> load_adapted(const PerplexityConfig& config,
                                                 LocalOptions options) {
  if (config.adapter_path.empty()) return LocalModel::load(std::move(options));
  options.adapters = {TRY(LocalAdapter::open(options.model_path, config.adapter_path))};
  std::unique_ptr<LocalModel> model = TRY(LocalModel::load(std::move(options)));
  model->use_adapter(0, 0);
  return model;
}

Result<TextScore> measure_perplexity(const PerplexityConfig& config, const TokensDone& progress) {
  const GgufFile file = TRY(GgufFile::open(config.model_path));
  const std::uint32_t window = TRY(window_of(config, file));
  Subject subject = TRY(load(config, config.model_path, window, config.kv_type, config.arithmetic));
  const std::span<const TokenId> tokens = subject.tokens;
  if (tokens.size() < 2)
    return fail(Errc::BadRequest,
                fmt::format("the text has {} tokens; at least 2 are needed", tokens.size()));
  std::optional<Subject> reference;
  if (!config.reference_path.empty()) {
    reference =
        TRY(load(config, config.reference_path, window, config.reference_kv_type, Arithmetic::F32));
    if (reference->tokens != subject.tokens ||
        reference->model->config().n_vocab != subject.model->config().n_vocab)
      return fail(
          Errc::BadRequest,
          fmt::format("{} tokenizes the text differently than {}; choose a reference with the "
                      "same vocabulary",
                      config.reference_path, config.model_path));
  }
  TextScore score;
  for (std::size_t at = 0; at < tokens.size(); at += window) {
    const std::size_t n = std::min<std::size_t>(window, tokens.size() - at);
    TRY(score_window(subject, reference ? &*reference : nullptr, tokens.subspan(at, n), score));
    if (progress) progress(at + n, tokens.size());
  }
  return score;
}

}  // namespace leasehold
