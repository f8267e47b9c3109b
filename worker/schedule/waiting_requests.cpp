#include "worker/schedule/waiting_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "common/counted.hpp"
#include "common/fair_shares.hpp"
#include "worker/schedule/queue_full.hpp"

namespace leasehold {

Result<void> WaitingRequests::check_room(const Tenancy& tenancy) const {
  if (tenancy.waiting.size() >= limits_.max_waiting_per_lease) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("lease {} has {} waiting; retry when one ends",
                            to_string(tenancy.lease), counted(tenancy.waiting.size(), "request")));
  }
  const ResourceShare share{.held = tenancies_.waiting_of(tenancy.tenant),
                            .taken = tenancies_.waiting_count(),
                            .capacity = limits_.max_waiting};
  if (may_take_more(share)) return {};
  return queue_full(tenancy.tenant, share);
}

void WaitingRequests::add(PromptRequest request) {
  tenancies_.note_change(request.tenant);
  request.arrival = ++arrivals_;
  insert(std::move(request));
}

void WaitingRequests::insert(PromptRequest request) {
  note_deadline(request);
  Tenancy& tenancy = tenancies_.at(request.lease);
  std::deque<PromptRequest>& waiting = tenancy.waiting;
  const auto after = std::ranges::upper_bound(waiting, request, is_admitted_before);
  waiting.insert(after, std::move(request));
  tenancies_.note_busy(tenancy);
}

bool WaitingRequests::contains(const RequestId& engine_request_id) const {
  for (const auto& [lease, tenancy] : tenancies_.busy()) {
    for (const PromptRequest& waiting : tenancy->waiting) {
      if (waiting.engine_request_id == engine_request_id) return true;
    }
  }
  return false;
}

bool WaitingRequests::has_users(LeaseId adapter) const {
  return std::ranges::any_of(tenancies_.busy(), [adapter](const auto& entry) {
    return std::ranges::any_of(entry.second->waiting, [adapter](const PromptRequest& request) {
      return uses(request, adapter);
    });
  });
}

// ----------------------------------------------------------------------------------------- ends

bool WaitingRequests::end(const RequestId& engine_request_id, const Completed& how,
                          bool already_delivered) {
  for (const auto& [lease, tenancy] : tenancies_.busy()) {
    const auto found =
        std::ranges::find(tenancy->waiting, engine_request_id, &PromptRequest::engine_request_id);
    if (found == tenancy->waiting.end()) continue;
    complete(*found, how, already_delivered);
    tenancy->waiting.erase(found);
    return true;
  }
  return false;
}

void WaitingRequests::end_all(Tenancy& tenancy, const Completed& how) {
  for (const PromptRequest& request : tenancy.waiting) complete(request, how);
  tenancy.waiting.clear();
}

void WaitingRequests::end_users(LeaseId adapter, Completed how) {
  if (how.revocation) how.revocation->scope = FailureScope::Adapter;
  const auto is_user = [adapter](const PromptRequest& request) { return uses(request, adapter); };
  for (const auto& [lease, tenancy] : tenancies_.busy()) {
    for (const PromptRequest& request : tenancy->waiting)
      if (is_user(request)) complete(request, how);
    std::erase_if(tenancy->waiting, is_user);
  }
}

void WaitingRequests::drop_expired(TimePoint now) {
  if (now < next_expiry_) return;
  next_expiry_ = kNever;
  const auto expired = [now](const PromptRequest& request) {
    return request.deadline && *request.deadline <= now;
  };
  for (const auto& [lease, tenancy] : tenancies_.busy()) {
    for (const PromptRequest& request : tenancy->waiting) {
      if (expired(request)) complete(request, {.reason = CompletionReason::DeadlineExceeded});
    }
    std::erase_if(tenancy->waiting, expired);
    for (const PromptRequest& request : tenancy->waiting) note_deadline(request);
  }
}

void WaitingRequests::note_deadline(const PromptRequest& request) {
  if (request.deadline) next_expiry_ = std::min(next_expiry_, *request.deadline);
}

/// The head holds a copy of the request, and so its adapter.
void WaitingRequests::drop_head(const PromptRequest& request) {
  WaitingHead& head = tenancies_.at(request.lease).head;
  if (head.arrival == request.arrival) head = {};
}

void WaitingRequests::complete(const PromptRequest& request, Completed how,
                               bool already_delivered) {
  drop_head(request);
  if (publications_.fail_fill(request, how)) return;
  tenancies_.give_back_rest(request);
  swap_.free(request, how);
  how.engine_request_id = request.engine_request_id;
  how.emitted_tokens = static_cast<std::uint32_t>(request.emitted.size());
  if (request.was_admitted()) how.cached_tokens = request.cached;
  if (!already_delivered) events_.add(std::move(how));
  tenancies_.note_change(request.tenant);
}

void WaitingRequests::reject_first(Tenancy& tenancy, Error reason) {
  reject(tenancy.waiting.front(), std::move(reason));
  tenancy.waiting.pop_front();
}

void WaitingRequests::reject(const PromptRequest& request, Error reason) {
  drop_head(request);
  if (request.was_admitted()) {
    reason.code = Errc::OutOfBlocks;
    return complete(request, {.reason = CompletionReason::EngineError, .error = std::move(reason)});
  }
  if (publications_.fail_fill(request, reason)) return;
  tenancies_.give_back_rest(request);
  events_.add(
      AdmissionRejected{.engine_request_id = request.engine_request_id,
                        .reason = std::move(reason),
                        .lease = request.lease,
                        .emitted_tokens = static_cast<std::uint32_t>(request.emitted.size())});
  tenancies_.note_change(request.tenant);
}

}  // namespace leasehold
