/// The tokens delivered for one request, and the tokens of its prompt with their log probabilities:
/// each position once, without gaps. Also which version of its adapter computed them, and how many
/// tokens of its prompt were cached.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Threads: one at a time.
class TokenLedger {
 public:
  TokenLedger() = default;
  /// Starts with what the request says that an earlier process received.
  explicit TokenLedger(const wire::RequestSubmit& request)
      : tokens_(request.emitted),
        adapter_digest_(request.adapter_digest),
        running_adapter_(request.adapter_digest),
        has_prompt_(request.prompt_logprobs.has_value()),
        prompt_positions_(request.received_prompt_positions) {}

  /// Appends the token. Errors: MalformedMessage when its position is not the next one; the ledger
  /// is unchanged then.
  Result<void> take(const wire::TokenEmitted& token) {
    if (token.position != size()) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the worker sent position {} {}, expected {}", token.position,
                              token.position < size() ? "twice" : "too early", size()));
    }
    tokens_.push_back(token.token);
    adapter_digest_ = running_adapter_;
    return {};
  }

  /// Notes RequestCompleted::cached_tokens of a submission. The first number counts.
  void note_cached(std::optional<std::uint32_t> tokens) {
    if (!cached_tokens_) cached_tokens_ = tokens;
  }
  /// 0 also if no submission reported a number.
  std::uint32_t cached_tokens() const { return cached_tokens_.value_or(0); }

  /// Takes the next tokens of the prompt. Errors: as above.
  Result<void> take(const wire::PromptLogprobs& logprobs) {
    if (logprobs.position != prompt_positions_) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the worker sent prompt position {}, expected {}", logprobs.position,
                              prompt_positions_));
    }
    prompt_positions_ += static_cast<std::uint32_t>(logprobs.tokens.size());
    adapter_digest_ = running_adapter_;
    return {};
  }
  /// Notes RequestSubmitted::adapter_digest of the worker that sends the next positions.
  void note_adapter(const std::string& digest) {
    if (!digest.empty()) running_adapter_ = digest;
  }
  /// Of the positions so far, which the text must continue under; empty: any version may begin it.
  const std::string& adapter_digest() const { return adapter_digest_; }
  void set_prompt_tokens(std::uint32_t count) { prompt_tokens_ = count; }
  std::uint32_t prompt_positions() const { return prompt_positions_; }
  /// True once the whole prompt has arrived, if the request asks for it.
  bool has_whole_prompt() const {
    return !has_prompt_ || (prompt_tokens_ > 0 && prompt_positions_ >= prompt_tokens_);
  }
  /// Positions of prompt and text, which one model must have computed.
  std::uint32_t positions() const { return prompt_positions_ + size(); }

  /// Token ids, one per position from 0.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }

 private:
  std::vector<std::int32_t> tokens_;
  std::string adapter_digest_;
  std::string running_adapter_;
  std::optional<std::uint32_t> cached_tokens_;
  bool has_prompt_ = false;
  std::uint32_t prompt_tokens_ = 0;  // 0: not known yet
  std::uint32_t prompt_positions_ = 0;
};

}  // namespace leasehold::client
