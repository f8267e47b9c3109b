#include "worker/schedule/sequence.hpp"

namespace leasehold {

std::vector<SequenceLease> Sequence::leases() const {
  std::vector<SequenceLease> all{{request.lease, FailureScope::Tenant}};
  if (shared_lease) all.push_back({*shared_lease, FailureScope::Shared});
  if (request.adapter.use) all.push_back({request.adapter.use->lease, FailureScope::Adapter});
  return all;
}

std::optional<FailureScope> Sequence::scope_of(LeaseId lease) const {
  if (lease == request.lease) return FailureScope::Tenant;
  if (lease == shared_lease) return FailureScope::Shared;
  if (uses(request, lease)) return FailureScope::Adapter;
  return std::nullopt;
}

OwnedText Sequence::owned_text(const TenantId& owner) const {
  return {&owner, tokens, request.adapter_digest()};
}

RecordCommit Sequence::record_commit(std::uint32_t n_rows, std::span<const TokenId> next) const {
  return {.engine_request_id = &request.engine_request_id,
          .sampling = &request.sampling,
          .adapter = request.adapter_digest(),
          .max_emitted_tokens = request.max_emitted_tokens,
          .prompt_tokens = static_cast<std::uint32_t>(request.prompt.size()),
          .committed = blocks.committed() + n_rows,
          .tokens = tokens,
          .next = next,
          .blocks = blocks.blocks_of(blocks.committed() + n_rows),
          .windows = blocks.windows().between(0, blocks.windows().end()),
          .first_window = blocks.windows().first(),
          .own_blocks = blocks.record_blocks(),
          .state_blocks = blocks.recurrent().blocks(),
          .state_copy = blocks.recurrent().valid_after(n_rows)};
}

}  // namespace leasehold
