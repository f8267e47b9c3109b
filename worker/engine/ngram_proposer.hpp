/// Proposes what followed the last kRun tokens where they occurred in the text before.
///
/// Source: prompt lookup (Saxena 2023), over emitted tokens too. A text that repeats itself with a
/// short period is continued with that period.
#pragma once

#include <array>
#include <vector>

#include "worker/engine/proposer.hpp"

namespace leasehold {

/// The index of one text. By hash it says where a run of tokens occurred last; it is brought up to
/// date with each call. A collision forgets the older run. Memory: 8 to 32 bytes for each token of
/// the text.
class NgramIndex {
 public:
  static constexpr std::size_t kRun = 3;
  /// Tokens that one call adds to the index. A longer text is read over several steps, and nothing
  /// is proposed before its end is reached.
  static constexpr std::size_t kReadAtOnce = 4096;

  /// Appends up to `most` tokens to `proposals`, which is empty. `text` is all of the request's
  /// text, prompt and emitted; it begins with that of the last call.
  void propose(std::span<const TokenId> text, std::uint32_t most, std::vector<TokenId>& proposals);

 private:
  bool read(std::span<const TokenId> text);
  std::uint32_t& last_behind(std::span<const TokenId> run);

  std::vector<std::uint32_t>
      behind_;              // index of the token behind the last such run, by hash; 0: none
  std::size_t n_read_ = 0;  // tokens of the text that are indexed
};

/// Reads tokens only, no leased memory. Without memory for an index its text has no proposals.
class NgramProposer final : public Proposer {
 public:
  void retain(Running running) override;
  void propose(std::span<const PlannedRows> parts, std::uint32_t most,
               const GateSet* gates) override;

 private:
  struct Text {
    std::uint64_t admission = 0;  // of its sequence; 0: none
    NgramIndex index;
  };
  std::array<Text, kMaxStepSequences> texts_;  // by stop slot
};

}  // namespace leasehold
