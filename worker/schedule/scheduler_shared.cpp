// The part of Scheduler that fills shared leases and lends their blocks.
#include <fmt/format.h>

#include <utility>

#include "common/expects.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {
namespace {

Error fill_error(const PromptRequest& request, const Completed& how) {
  if (how.error) return *how.error;
  const std::string lease = to_string(request.lease);
  if (how.revocation) {
    return {Errc::LeaseRevoked,
            fmt::format("lease {} was revoked ({}) before its text was "
                        "computed",
                        lease, name(how.revocation->reason)),
            FailureScope::Shared};
  }
  return {Errc::EngineDecodeFailed, fmt::format("the text of lease {} was not computed ({}); "
                                                "publish it again",
                                                lease, name(how.reason))};
}

}  // namespace

Result<void> Scheduler::fill(LeaseId lease, std::vector<TokenId> text) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end() || !found->second.is_shared) {
    return fail(Errc::LeaseFenced,
                fmt::format("lease {} is not a shared lease of this worker", to_string(lease)));
  }
  if (!found->second.published.empty())
    return fail(Errc::BadRequest, fmt::format("lease {} holds its text", to_string(lease)));
  const std::size_t blocks = text.size() / limits_.tokens_per_block;
  if (blocks == 0) {
    return fail(Errc::BadRequest,
                fmt::format("the text has {} tokens, and only full blocks of {} are published; "
                            "publish a longer text",
                            text.size(), limits_.tokens_per_block));
  }
  text.resize(blocks * limits_.tokens_per_block);
  return submit({.tenant = public_owner(),
                 .lease = lease,
                 .engine_request_id = {"/" + to_string(lease)},  // unlike any tenant's id
                 .prompt = std::move(text)});
}

void Scheduler::finish_fill(Tenancy& tenancy, const Sequence& sequence, const Completed& how) {
  if (how.reason != CompletionReason::MaxTokensReached) {
    (void)note_fill_failed(sequence.request, how);
    return;
  }
  const std::span<const PrefixId> chain = sequence.blocks.cached();
  tenancy.published.assign(chain.begin(), chain.end());
  tenancy.prefixes.keep(chain);
  ++publications_;
  (void)note_fill_end(sequence.request, static_cast<std::uint32_t>(chain.size()));
}

/// Reports the end of a fill to the broker. Returns false for a request that is not a fill.
bool Scheduler::note_fill_end(const PromptRequest& request, Result<std::uint32_t> blocks) {
  if (!tenancies_.at(request.lease).is_shared) return false;
  filled_.push_back({.lease = request.lease, .blocks = std::move(blocks)});
  tenancies_.note_change(request.tenant);
  return true;
}

bool Scheduler::note_fill_failed(const PromptRequest& request, const Completed& how) {
  return note_fill_end(request, std::unexpected(fill_error(request, how)));
}

/// Repeats the lookup only after a text was published or has ended.
const PublishedMatch& Scheduler::match_published(Tenancy& tenancy, const Sequence& sequence) {
  PublishedMatch& best = tenancy.head.published;
  if (best.publications == publications_) return best;
  best = {.publications = publications_};
  const OwnedText text{&public_owner(), sequence.tokens};
  for (const auto& [lease, shared] : tenancies_) {
    if (!shared.is_shared || shared.published.empty()) continue;
    std::vector<PrefixId> chain = shared.prefixes.match(text, limits_.tokens_per_block);
    if (chain.size() <= best.chain.size()) continue;
    best.lease = lease;
    best.chain = std::move(chain);
  }
  return best;
}

/// Precondition: the lookup in the tenant's own cache found fewer blocks.
void Scheduler::start_with_published(Sequence& sequence, Tenancy& tenancy,
                                     const PublishedMatch& published) {
  Tenancy& shared = tenancies_.at(published.lease);
  tenancy.prefixes.borrow(published.chain, shared.prefixes);
  sequence.blocks.start_with_published(published.chain, shared.prefixes);
  sequence.shared_lease = published.lease;
  sequence.borrowed = published.chain;
}

void Scheduler::return_published(Sequence& sequence) {
  if (!sequence.shared_lease) return;
  tenancies_.at(*sequence.shared_lease).prefixes.release(sequence.borrowed);
  sequence.shared_lease.reset();
  sequence.borrowed.clear();
}

}  // namespace leasehold
