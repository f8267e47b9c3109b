#include "worker/schedule/memory/publications.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {
namespace {

Error fill_error(const PromptRequest& request, const Completed& how) {
  if (how.error) return *how.error;
  if (how.revocation) {
    const bool is_adapters = how.revocation->lease != request.lease;
    return {Errc::LeaseRevoked,
            fmt::format("lease {} was revoked ({}) before the text was computed; publish it again",
                        to_string(how.revocation->lease), name(how.revocation->reason)),
            is_adapters ? FailureScope::Adapter : FailureScope::Shared};
  }
  return {Errc::EngineDecodeFailed, fmt::format("the text of lease {} was not computed ({}); "
                                                "publish it again",
                                                to_string(request.lease), name(how.reason))};
}

}  // namespace

// ---------------------------------------------------------------------------------------- fills

Result<PromptRequest> Publications::fill_request(LeaseId lease, std::vector<TokenId> text) const {
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
  return PromptRequest{.tenant = public_owner(),
                       .lease = lease,
                       .engine_request_id = {"/" + to_string(lease)},  // unlike any tenant's id
                       .prompt = std::move(text)};
}

void Publications::end_fill(const Sequence& sequence, const Completed& how) {
  if (how.reason != CompletionReason::MaxTokensReached) {
    (void)fail_fill(sequence.request, how);
    return;
  }
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  const std::span<const PrefixId> chain = sequence.blocks.cached();
  tenancy.published.assign(chain.begin(), chain.end());
  tenancy.prefixes.keep(chain);
  tenancy.prefixes.windows().reference(windows_of(chain));
  ++revision_;
  (void)report(sequence.request, static_cast<std::uint32_t>(chain.size()));
}

bool Publications::fail_fill(const PromptRequest& request, const Completed& how) {
  return report(request, std::unexpected(fill_error(request, how)));
}

bool Publications::fail_fill(const PromptRequest& request, const Error& why) {
  return report(request, std::unexpected(why));
}

/// Reports the end of a fill to the broker. Returns false for a request that is not a fill.
bool Publications::report(const PromptRequest& request, Result<std::uint32_t> blocks) {
  if (!tenancies_.at(request.lease).is_shared) return false;
  filled_.push_back({.lease = request.lease, .blocks = std::move(blocks)});
  tenancies_.note_change(request.tenant);
  return true;
}

void Publications::lease_ends(const Tenancy& tenancy) {
  if (!tenancy.published.empty()) ++revision_;
}

// -------------------------------------------------------------------------------------- readers

/// The entries whose blocks of layers with a window the row after the chain reads.
std::span<const PrefixId> Publications::windows_of(std::span<const PrefixId> chain) const {
  return chain.subspan(limits_.first_window(static_cast<std::uint32_t>(chain.size())));
}

/// False if blocks that a reader of the match needs were evicted after the lookup: a published text
/// only references those at its end.
bool Publications::has_windows(const PublishedMatch& match) const {
  if (match.chain.empty()) return true;
  const EntryBlocks& windows = tenancies_.at(match.lease).prefixes.windows();
  return std::ranges::all_of(windows_of(match.chain),
                             [&windows](PrefixId id) { return windows.has(id); });
}

/// Repeats the lookup only after a text was published or has ended, or lost blocks.
const PublishedMatch& Publications::match(Tenancy& tenancy, const Sequence& sequence) {
  PublishedMatch& best = tenancy.head.published;
  if (best.revision == revision_ && has_windows(best)) return best;
  best = {.revision = revision_};
  const OwnedText text = sequence.owned_text(public_owner());
  for (const LeaseId lease : tenancies_.leases_of(public_owner())) {
    const Tenancy& shared = tenancies_.at(lease);
    if (shared.published.empty()) continue;
    std::vector<PrefixId> chain = shared.prefixes.match(text, limits_.tokens_per_block);
    chain.resize(length_with_windows(chain, shared.prefixes.windows(), limits_.window));
    if (chain.size() <= best.chain.size()) continue;
    best.lease = lease;
    best.chain = std::move(chain);
  }
  return best;
}

void Publications::lend(Sequence& sequence, Tenancy& tenancy, const PublishedMatch& match) {
  Tenancy& shared = tenancies_.at(match.lease);
  tenancy.prefixes.borrow(match.chain, shared.prefixes);
  const std::span<const PrefixId> windows = windows_of(match.chain);
  shared.prefixes.windows().reference(windows);
  sequence.blocks.start_with_published(
      match.chain, shared.prefixes,
      static_cast<std::uint32_t>(match.chain.size() - windows.size()));
  sequence.shared_lease = match.lease;
  sequence.borrowed = match.chain;
}

void Publications::give_back(Sequence& sequence) {
  if (!sequence.shared_lease) return;
  PrefixIndex& published = tenancies_.at(*sequence.shared_lease).prefixes;
  for (const PrefixId id : windows_of(sequence.borrowed)) published.windows().release(id);
  published.release(sequence.borrowed);
  sequence.shared_lease.reset();
  sequence.borrowed.clear();
}

}  // namespace leasehold
