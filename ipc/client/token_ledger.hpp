/// The tokens delivered for one request: each position once, without gaps; and how many tokens of
/// its prompt were cached.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Threads: one at a time.
class TokenLedger {
 public:
  TokenLedger() = default;
  /// `tokens`: tokens that were delivered to an earlier process.
  explicit TokenLedger(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}

  /// Appends the token. Errors: MalformedMessage when its position is not the next one; the ledger
  /// is unchanged then.
  Result<void> take(const wire::TokenEmitted& token) {
    if (token.position != size()) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the worker sent position {} {}, expected {}", token.position,
                              token.position < size() ? "twice" : "too early", size()));
    }
    tokens_.push_back(token.token);
    return {};
  }

  /// Notes RequestCompleted::cached_tokens of a submission. The first number counts.
  void note_cached(std::optional<std::uint32_t> tokens) {
    if (!cached_tokens_) cached_tokens_ = tokens;
  }
  /// 0 also if no submission reported a number.
  std::uint32_t cached_tokens() const { return cached_tokens_.value_or(0); }

  /// Token ids, one per position from 0.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }

 private:
  std::vector<std::int32_t> tokens_;
  std::optional<std::uint32_t> cached_tokens_;
};

}  // namespace leasehold::client
