/// The tokens delivered for one request: each position once, without gaps.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Threads: one at a time.
class TokenLedger {
 public:
  TokenLedger() = default;
  /// `tokens`: delivered before, by an earlier process.
  explicit TokenLedger(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}

  /// Appends the token. Errors: MalformedMessage when its position is not the next one; the ledger
  /// is unchanged then.
  Result<void> take(const wire::TokenEmitted& token);

  /// Token ids, one per position from 0.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }

 private:
  std::vector<std::int32_t> tokens_;
};

}  // namespace leasehold::client
