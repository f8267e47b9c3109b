/// How well a model predicts a text.
///
/// The text is cut into windows of equal length, each read from an empty cache. Every token of a
/// window but its first is predicted from those before it in the window; perplexity is
/// exp(mean(-ln p(token))). With a reference, every such prediction is compared as a whole
/// (token_odds.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/checks/perplexity/token_odds.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold {

struct PerplexityConfig {
  std::string model_path;
  std::string reference_path;  ///< Empty: none.
  std::string text;
  std::uint32_t window = 0;  ///< 0: what the model was trained for, at most 512.
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;
  bool reference_backend = false;
};

using TokensDone = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Errors: those of loading; BadRequest for a text of fewer than two tokens, for a window that no
/// two tokens or no model fits, and for a reference with another vocabulary or other tokens.
Result<TextScore> measure_perplexity(const PerplexityConfig& config, const TokensDone& progress);

}  // namespace leasehold
