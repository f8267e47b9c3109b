/// Reads the file that llama.cpp's `llama-perplexity --kl-divergence-base FILE` writes.
///
/// Source: files that the program wrote. The format is little-endian: the bytes `_logits_`; int32
/// tokens per window;
/// int32 size of the vocabulary; int32 windows; int32 tokens of all windows; then, for each window,
/// a record of token_odds.hpp for each position that predicts a token of the second half, with
/// codes padded to an even number. The file has the first token of a window as in the text, but the
/// program computes it as BOS if the model begins texts with BOS.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

/// Threads: one.
class PeerLogits {
 public:
  /// Errors: FileNotFound; FileCorrupt for another kind of file, counts beyond the limits, a size
  /// that does not match the counts (a truncated file), and a token outside the vocabulary.
  static Result<PeerLogits> open(const std::string& path);

  std::uint32_t window() const { return window_; }  ///< Tokens of each window.
  std::uint32_t n_vocab() const { return n_vocab_; }
  std::uint32_t windows() const { return windows_; }
  std::span<const TokenId> tokens(std::uint32_t window) const {
    return std::span(tokens_).subspan(std::size_t{window} * window_, window_);
  }

  /// The positions of a window that are in the file: from `first_position` to the last but one.
  std::uint32_t first_position() const { return window_ / 2; }
  std::uint32_t positions() const { return window_ - 1 - window_ / 2; }

  /// Returns the log probabilities at the next position, window after window. Precondition: there
  /// is a next position. Errors: FileCorrupt; those of decode_odds.
  Result<std::vector<double>> next();  // [n_vocab]

 private:
  PeerLogits() = default;
  Result<void> read_counts(std::uint64_t size_bytes);
  Result<void> read_tokens();

  std::string path_;
  std::ifstream file_;
  std::uint32_t window_ = 0, n_vocab_ = 0, windows_ = 0;
  std::vector<TokenId> tokens_;  // [windows, window]
  std::vector<std::uint16_t> row_;
};

}  // namespace leasehold
