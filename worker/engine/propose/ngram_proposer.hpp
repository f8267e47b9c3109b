/// Proposes the tokens that followed the most recent earlier occurrence of the text's last kRun
/// tokens.
///
/// Source: prompt lookup (Saxena 2023), applied to emitted tokens too. When a text repeats with a
/// short period, the proposals continue that period.
#pragma once

#include <array>
#include <vector>

#include "worker/engine/propose/proposer.hpp"

namespace leasehold {

/// The index of one text. It maps the hash of a run of tokens to the run's last occurrence, and
/// each call adds the new tokens. On a collision the newer run replaces the older. Memory: 8 to 32
/// bytes for each token of the text.
class NgramIndex {
 public:
  static constexpr std::size_t kRun = 3;
  /// The most tokens that one call adds to the index. A longer text is indexed over several calls,
  /// and nothing is proposed before its end is reached.
  static constexpr std::size_t kMaxNewTokens = 4096;

  /// Appends up to `most` tokens to `proposals`, which is empty. `text` is the request's whole
  /// text, prompt and emitted tokens; it begins with the text of the last call.
  void propose(std::span<const TokenId> text, std::uint32_t most, std::vector<TokenId>& proposals);

 private:
  bool read(std::span<const TokenId> text);
  std::uint32_t& last_behind(std::span<const TokenId> run);

  std::vector<std::uint32_t>
      behind_;              // index of the token after the last such run, by hash; 0: none
  std::size_t n_read_ = 0;  // tokens of the text that are indexed
};

/// Reads only tokens, no leased memory. When the memory for a text's index cannot be allocated,
/// that text has no proposals.
class NgramProposer final : public Proposer {
 public:
  void retain(Running running) override;
  void propose(std::span<const PlannedRows> parts, std::uint32_t most,
               const GateSet* gates) override;

 private:
  struct Text {
    std::uint64_t admission = 0;  // of the text's sequence; 0: none
    NgramIndex index;
  };
  std::array<Text, kMaxStepSequences> texts_;  // by stop slot
};

}  // namespace leasehold
