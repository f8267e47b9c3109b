#include "worker/engine/submissions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/expects.hpp"

namespace leasehold {
namespace {

bool is_queue_full(Errc code) {
  return code == Errc::QuotaConcurrent || code == Errc::QueueFull;
}

}  // namespace

void Submissions::set_quota(const wire::TenantQuota& quota) {
  take_returned();
  deps_.scheduler->set_quota(quota);
  allowances_.set_quota(quota, deps_.clock->now());
}

void Submissions::shorten(PromptRequest& request) const {
  const auto limit = allowances_.most_per_request(request.tenant, key_of(request));
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
  deps_.scheduler->fit().shorten(request, limit.value_or(kNoLimit));
}

Result<void> Submissions::submit(PromptRequest request) {
  expects(request.adapter.name.empty() || request.adapter.use,
          "a request with an adapter is queued once it has it");
  TRY(check_usable(request));
  return queue(std::move(request));
}

void Submissions::submit(PromptRequest request, OnQueued on_queued) {
  if (!request.adapter.name.empty())
    return submit_with_adapter(std::move(request), std::move(on_queued));
  const Result<void> queued = submit(std::move(request));
  on_queued(queued ? Result<AdapterUse>() : std::unexpected(queued.error()));
}

/// A request that can never run is refused before its adapter takes memory.
void Submissions::submit_with_adapter(PromptRequest request, OnQueued on_queued) {
  for (const Result<void>& checked : {check_usable(request), deps_.scheduler->check(request)})
    if (!checked) return on_queued(std::unexpected(checked.error()));
  note_arrival();
  adapter_waits_.wait(std::move(request), [this, on_queued = std::move(on_queued)](
                                              Result<PromptRequest> loaded) mutable {
    if (!loaded) return on_queued(std::unexpected(loaded.error()));
    AdapterUse use = loaded->adapter.use;
    const Result<void> queued = submit(*std::move(loaded));
    on_queued(queued ? Result<AdapterUse>(std::move(use)) : std::unexpected(queued.error()));
  });
}

Result<void> Submissions::check_usable(const PromptRequest& request) const {
  if (!deps_.weights->is_bound()) return deps_.weights->check();
  TRY(deps_.leases->check_usable(request.lease));
  TRY(check_token_ids(request.prompt, n_vocab_));
  TRY(check_token_ids(request.emitted, n_vocab_));
  for (const LogitBias& bias : request.sampling.logit_bias)
    TRY(check_token_ids({&bias.token, 1}, n_vocab_));
  return {};
}

Result<void> Submissions::queue(PromptRequest request) {
  note_arrival();
  const Result<void> weights = deps_.weights->check();
  const RequestId id = request.engine_request_id;
  if (!weights && request.rebound_from && !refused_rebinds_.contains(id)) {
    (void)refused_rebinds_.push({.owner = request.tenant, .key = id});
    return fail(Errc::EngineLeaseFenced,
                fmt::format("{}; submit again under lease {}, and the request waits",
                            weights.error().detail, to_string(request.lease)));
  }
  TRY(take_allowance(request));
  Result<void> queued = deps_.scheduler->submit(std::move(request));
  if (queued) (void)refused_rebinds_.erase(id);
  if (weights || queued || !is_queue_full(queued.error().code)) return queued;
  return fail(Errc::WeightsLoading,
              fmt::format("{}; {}", weights.error().detail, queued.error().detail));
}

/// Takes the request's demand from the allowances of its tenant and key.
Result<void> Submissions::take_allowance(PromptRequest& request) {
  take_returned();
  request.rate_charge = {};
  const ApiKeyId key = key_of(request);
  if (!allowances_.is_limited(request.tenant, key) || !deps_.scheduler->check(request)) return {};
  const std::uint64_t all = deps_.scheduler->fit().most_positions(request);
  const std::uint64_t at_least = known_tokens(request) + 1;
  const RateDemand demand{.tokens = all,
                          .needed = request.may_shorten ? std::min(all, at_least) : all,
                          .is_new_request = !request.rebound_from};
  std::vector<RateOwner> owners =
      TRY(allowances_.take(request.tenant, key, demand, deps_.clock->now()));
  request.rate_charge = {
      .owners = std::move(owners), .unused_tokens = all, .held_tokens = demand.needed};
  return {};
}

void Submissions::take_returned() {
  for (const auto& [owner, returned] : deps_.scheduler->tenancies().take_returned())
    allowances_.give_back(owner, returned);
}

/// Empty for a lease without a key, and for one that is not known here.
ApiKeyId Submissions::key_of(const PromptRequest& request) const {
  const Tenancies& tenancies = deps_.scheduler->tenancies();
  return tenancies.contains(request.lease) ? tenancies.at(request.lease).api_key : ApiKeyId{};
}

}  // namespace leasehold
