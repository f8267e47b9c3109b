/// Measures the mean divergence of llama.cpp's predictions and of ours from the same reference,
/// which is our f32 arithmetic on the same file. Both predict the same tokens from the same
/// context. tests/checks/peer/peer_perplexity.py runs llama.cpp, and judges the means.
#pragma once

#include <string>

#include "tests/checks/perplexity/perplexity.hpp"

namespace leasehold {

/// Means over the positions of one file, in nats.
struct FileDivergence {
  std::size_t positions = 0;
  double peer = 0;
  /// Our divergence, with our predictions coded in 16 bits as the peer's are (token_odds.hpp).
  double ours = 0;
  double ours_exact = 0;        ///< Our divergence without coding.
  double difference_error = 0;  ///< Standard error of ours - peer, assuming independent positions.
};

/// Checks that the peer accepts the file and the text with windows of `config.window` tokens.
/// Errors: those of reading the model; BadRequest for a window below 4 or beyond the model's
/// context, and for a text of fewer than two windows, which the peer refuses.
Result<void> check_peer_window(const PerplexityConfig& config);

/// Compares the second half of each window with what the peer wrote (peer_logits.hpp). The
/// reference is the model of `config` in f32; `reference_path` and `reference_backend` are not
/// used. Errors: those of check_peer_window, of loading and of PeerLogits; FileCorrupt if the peer
/// used another window or vocabulary.
Result<FileDivergence> compare_with_peer(const PerplexityConfig& config,
                                         const std::string& logits_path);

}  // namespace leasehold
