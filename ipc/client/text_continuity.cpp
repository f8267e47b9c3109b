#include "ipc/client/text_continuity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::client {
namespace {

/// Empty means not known: workers of an earlier version do not name their arithmetic.
bool is_another_arithmetic(const std::string& one, const std::string& other) {
  return !one.empty() && !other.empty() && one != other;
}

}  // namespace

TextContinuity::TextContinuity(Terms terms)
    : terms_(std::move(terms)), identity_(terms_.text_identity) {}

/// A text without tokens starts again, on the model of its first lease.
void TextContinuity::ask(wire::LeaseAcquire& wanted, std::size_t tokens) const {
  wanted.min_context = min_context_;
  if (!identity_) {
    wanted.model = terms_.model;
  } else if (tokens > 0 && !terms_.any_arithmetic) {
    wanted.text_identity = identity_;
  } else {
    wanted.model = ModelName{content_name(*identity_)};
  }
}

Result<void> TextContinuity::check(const wire::LeaseAcquired& lease, std::size_t tokens) const {
  if (tokens > 0) TRY(check_identity(lease, tokens));
  if (lease.max_context == 0 || lease.max_context >= min_context_) return {};
  return fail(Errc::PromptTooLong,
              fmt::format("the text needs {} tokens of context, and the new lease {} is on worker "
                          "{}, which holds {}; name a worker with --worker, or ask for less",
                          min_context_, to_string(lease.lease), lease.worker, lease.max_context));
}

Result<void> TextContinuity::check_identity(const wire::LeaseAcquired& lease,
                                            std::size_t tokens) const {
  if (identity_ && lease.text_identity) {
    const bool is_same_content = identity_->content == lease.text_identity->content;
    if (*identity_ == *lease.text_identity || (terms_.any_arithmetic && is_same_content)) return {};
    return fail(Errc::UnknownWorker,
                fmt::format("{} tokens were computed before, and on worker {} of the new lease {} "
                            "{}; name a worker with --worker{}",
                            tokens, lease.worker, to_string(lease.lease),
                            difference(*identity_, *lease.text_identity),
                            is_same_content ? ", or continue there with --any-arithmetic" : ""));
  }
  if (terms_.any_arithmetic || !is_another_arithmetic(arithmetic_, lease.arithmetic)) return {};
  return fail(
      Errc::UnknownWorker,
      fmt::format("{} tokens were computed in {}, and the new lease {} is on worker {}, "
                  "which computes in {}; name a worker with --worker, or continue there "
                  "with --any-arithmetic",
                  tokens, arithmetic_, to_string(lease.lease), lease.worker, lease.arithmetic));
}

/// A text that is longer than the context ends when the context is full, on every worker at the
/// same token.
std::string TextContinuity::accepted(const wire::LeaseAcquired& lease, std::size_t tokens,
                                     std::uint64_t most_tokens) {
  min_context_ =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(most_tokens, lease.max_context));
  identity_ = lease.text_identity ? lease.text_identity : identity_;
  const std::string before = std::exchange(arithmetic_, lease.arithmetic);
  return tokens > 0 && is_another_arithmetic(before, arithmetic_) ? arithmetic_ : "";
}

}  // namespace leasehold::client
