#include "worker/schedule/request_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

Result<void> RequestFit::check(const PromptRequest& request) const {
  TRY(check_sampling(request.sampling));
  if (request.prompt.empty()) return fail(Errc::BadRequest, "the prompt is empty");
  const bool is_fill = tenancies_.at(request.lease).is_shared;
  const bool emits_too_much = is_fill && request.max_emitted_tokens > 0;
  if (emits_too_much || request.max_emitted_tokens < request.emitted.size()) {
    return fail(
        Errc::BadRequest,
        fmt::format("max_emitted_tokens is {}, and {} tokens were emitted before; ask for more",
                    request.max_emitted_tokens, request.emitted.size()));
  }
  if (!fits_context(request, limits_.max_context)) {
    return fail(
        Errc::PromptTooLong,
        fmt::format("the prompt has {} tokens, and the model's context holds {}; shorten it",
                    known_tokens(request), limits_.max_context));
  }
  return check_blocks(request);
}

/// A preempted request may continue when its present text fits.
Result<void> RequestFit::check_blocks(const PromptRequest& request) const {
  const std::uint32_t allowed = tenancies_.limit_of(request);
  const std::uint64_t most =
      request.was_admitted() ? known_tokens(request) : most_positions(request);
  const std::uint32_t blocks =
      limits_.blocks_for(static_cast<std::uint32_t>(most)) + limits_.fixed_blocks_of(request);
  const std::uint32_t ever =
      request.was_admitted() ? allowed : tenancies_.most_blocks_of(request.tenant);
  if (blocks <= std::min(allowed, ever)) return {};
  if (blocks > ever) {
    return fail(
        Errc::QuotaBlocks,
        fmt::format("up to {} tokens need {} KV blocks, and tenant {} may hold {} here; ask "
                    "for fewer tokens",
                    most, blocks, request.tenant.value, ever));
  }
  return std::unexpected(
      Error{.code = Errc::QuotaBlocks,
            .detail = fmt::format("up to {} tokens need {} KV blocks, and tenant {} may hold {} "
                                  "here while it has leases on other workers; retry when one ends",
                                  most, blocks, request.tenant.value, allowed),
            .retry_after_ms = kOtherLeaseEnds_ms});
}

/// A continued text keeps its token limit, and waits for blocks that other workers hold. The limit
/// never falls below min_tokens, so that `check` refuses a text that cannot have that many.
void RequestFit::shorten(PromptRequest& request, std::uint64_t most_tokens) const {
  if (!request.may_shorten) return;
  std::uint32_t blocks = tenancies_.most_blocks_of(request.tenant);
  if (request.emitted.empty()) blocks = std::min(blocks, tenancies_.limit_of(request));
  const std::uint32_t for_text = blocks - std::min(blocks, limits_.fixed_blocks_of(request));
  const std::uint64_t positions =
      std::min({limits_.positions_in(for_text), std::uint64_t{limits_.max_context}, most_tokens});
  const std::uint64_t more = positions - std::min<std::uint64_t>(positions, request.prompt.size());
  const std::uint64_t most =
      std::max({more, std::uint64_t{1}, std::uint64_t{request.emitted.size()},
                std::uint64_t{request.sampling.min_tokens}});
  request.max_emitted_tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(request.max_emitted_tokens, most));
}

std::uint64_t RequestFit::most_positions(const PromptRequest& request) const {
  return std::min<std::uint64_t>(std::uint64_t{request.max_emitted_tokens} + request.prompt.size(),
                                 limits_.max_context);
}

std::optional<CompletionReason> RequestFit::capacity_end(const Sequence& sequence) const {
  if (sequence.emitted() >= sequence.request.max_emitted_tokens)
    return CompletionReason::MaxTokensReached;
  if (sequence.tokens.size() >= limits_.max_context) return CompletionReason::ContextFull;
  return std::nullopt;
}

}  // namespace leasehold
