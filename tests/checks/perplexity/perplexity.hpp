/// Measures how well a model predicts a text.
///
/// The text is cut into windows of equal length, each read into an empty cache. The model predicts
/// every token of a window but the first from the tokens before it; perplexity is
/// exp(mean(-ln p(token))). With a reference model, whole predictions are compared
/// (token_odds.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/checks/local_model/local_model.hpp"
#include "tests/checks/perplexity/token_odds.hpp"

namespace leasehold {

struct PerplexityConfig {
  std::string model_path;
  std::string reference_path;  ///< Empty: none.
  std::string adapter_path;    ///< LoRA adapter of the model; empty: none.
  std::string text;
  std::uint32_t window = 0;  ///< 0: the context of the model, at most 512.
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;
  KvType reference_kv_type = KvType::F16;
  Arithmetic arithmetic = Arithmetic::F32;  ///< Arithmetic of the model; the reference uses F32.
  bool reference_backend = false;
};

using TokensDone = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Loads a model whose first sequence uses the adapter of the config, if it names one. Errors:
/// those of loading either file.
Result<std::unique_ptr<LocalModel>> load_adapted(const PerplexityConfig& config,
                                                 LocalOptions options);

/// Errors: those of loading; BadRequest for a text of fewer than two tokens, a window outside of 2
/// to the model's context, or a reference that tokenizes the text differently.
Result<TextScore> measure_perplexity(const PerplexityConfig& config, const TokensDone& progress);

}  // namespace leasehold
