/// Proposes what followed the last kRun tokens where they occurred in the text before.
///
/// Source: prompt lookup (Saxena 2023), over emitted tokens too. A text that repeats itself with a
/// short period is continued with that period.
///
/// An index by hash says where a run occurred last; it is brought up to date with each call. A
/// collision forgets the older run. Memory: 8 to 32 bytes for each token of the text.
#pragma once

#include "worker/engine/proposer.hpp"

namespace leasehold {

class NgramProposer final : public Proposer {
 public:
  static constexpr std::size_t kRun = 3;
  /// Tokens that one call adds to the index. A longer text is read over several steps, and nothing
  /// is proposed before its end is reached.
  static constexpr std::size_t kReadAtOnce = 4096;

  void propose(std::span<const TokenId> text, std::uint32_t most,
               std::vector<TokenId>& proposals) override;

 private:
  bool read(std::span<const TokenId> text);
  std::uint32_t& last_behind(std::span<const TokenId> run);

  std::vector<std::uint32_t>
      behind_;              // index of the token behind the last such run, by hash; 0: none
  std::size_t n_read_ = 0;  // tokens of the text that are indexed
};

}  // namespace leasehold
