/// A scheduler with a simulated engine: every planned row succeeds, and tokens count up.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "worker/schedule/scheduler.hpp"

namespace leasehold::testing {

inline constexpr TimePoint kNow{1'000};

class SchedulerFixture {
 public:
  explicit SchedulerFixture(SchedulerLimits limits = {}) : scheduler(filled_in(limits)) {}

  LeaseId lease(std::uint32_t slot, std::uint32_t blocks, std::uint32_t max_concurrent = 8) {
    const TenantId tenant{"t" + std::to_string(slot)};
    limit_blocks(100, tenant, max_concurrent);
    return lease_of(tenant, slot, blocks);
  }
  LeaseId lease_of(const TenantId& tenant, std::uint32_t slot, std::uint32_t blocks) {
    const LeaseId id{slot, 1};
    add_lease(id, tenant, blocks);
    return id;
  }
  void add_lease(LeaseId id, const TenantId& tenant, std::uint32_t blocks) {
    tenancies().add({.lease = id, .tenant = tenant});
    grow(id, blocks);
  }
  void limit_blocks(std::uint32_t max_blocks, const TenantId& tenant = {"t1"},
                    std::uint32_t max_concurrent = 8) {
    scheduler.set_quota(
        {.tenant = tenant, .max_concurrent = max_concurrent, .max_blocks = max_blocks});
  }
  void revoke(LeaseId id) {
    scheduler.end_lease(
        id, {.reason = CompletionReason::Revoked, .revocation = RevocationInfo{.lease = id}});
  }
  void deny_growth_requests() {
    for (const GrowthRequest& growth : tenancies().take_growth_requests())
      tenancies().deny_growth(growth);
  }
  void grow(LeaseId id, std::uint32_t blocks) {
    scheduler.blocks().add_extent(id, ExtentId{next_extent_++}, blocks);
  }

  /// The prompts of requests with different names have no common beginning.
  PromptRequest request(LeaseId id, const std::string& name, std::uint32_t prompt = 4,
                        std::uint32_t tokens = 3) const {
    return {.tenant = TenantId{"t" + std::to_string(id.slot)},
            .lease = id,
            .engine_request_id = RequestId{name},
            .prompt = std::vector<TokenId>(prompt, token_of(name)),
            .max_emitted_tokens = tokens};
  }
  void submit(PromptRequest request) { REQUIRE(scheduler.submit(std::move(request))); }
  void submit(LeaseId id, const std::string& name, std::uint32_t prompt = 4,
              std::uint32_t tokens = 3) {
    submit(request(id, name, prompt, tokens));
  }

  /// Runs one tick and returns its events.
  std::vector<SchedulerEvent> tick(TimePoint now = kNow) {
    scheduler.admit(now);
    plan = scheduler.plan();
    rows_.clear();
    for (const PlannedRows& part : plan.parts) rows_[part.sequence->request.tenant] += part.n_rows;
    for (const PlannedRows& part : plan.parts) {
      const bool wants = part.wants_token;
      scheduler.commit(part, std::vector<DrawnToken>(wants ? 1 : 0, {.sampled = {2}}));
    }
    return scheduler.take_events();
  }

  /// Rows of the last tick's plan.
  std::uint32_t row_count() const {
    std::uint32_t rows = 0;
    for (const PlannedRows& part : plan.parts) rows += part.n_rows;
    return rows;
  }

  std::uint32_t rows_of(const TenantId& tenant) const {
    const auto found = rows_.find(tenant);
    return found == rows_.end() ? 0 : found->second;
  }

  Tenancies& tenancies() { return scheduler.tenancies(); }
  const Tenancies& tenancies() const { return scheduler.tenancies(); }
  const std::vector<std::unique_ptr<Sequence>>& running() const {
    return scheduler.running().all();
  }

  Scheduler scheduler;
  StepPlan plan;  ///< Of the last tick; its sequences may have ended.

 private:
  static TokenId token_of(const std::string& name) {
    return static_cast<TokenId>(std::hash<std::string>{}(name) % (1u << 30));
  }
  static SchedulerLimits filled_in(SchedulerLimits limits) {
    if (limits.max_context == 0) limits.max_context = 256;
    if (limits.record_blocks == 0) limits.record_blocks = 1;
    return limits;
  }
  std::uint64_t next_extent_ = 1;
  std::map<TenantId, std::uint32_t> rows_;  // of the last tick
};

/// True when the events of a tick have the order of events.hpp.
inline bool is_in_order(const std::vector<SchedulerEvent>& events) {
  std::set<RequestId> ended;
  for (const SchedulerEvent& event : events) {
    if (const auto* end = std::get_if<Completed>(&event)) ended.insert(end->engine_request_id);
  }
  const auto place = [&ended](const SchedulerEvent& event) -> std::size_t {
    const auto* token = std::get_if<Token>(&event);
    if (token == nullptr) return 1 + event.index();
    return ended.contains(token->engine_request_id) ? 0 : std::variant_size_v<SchedulerEvent>;
  };
  return std::ranges::is_sorted(events, {}, place);
}

/// The events of one kind.
template <class Event>
std::vector<Event> only(const std::vector<SchedulerEvent>& events) {
  std::vector<Event> some;
  for (const SchedulerEvent& event : events) {
    if (const auto* one = std::get_if<Event>(&event)) some.push_back(*one);
  }
  return some;
}

/// The only event of this kind.
template <class Event>
Event single(const std::vector<SchedulerEvent>& events) {
  const std::vector<Event> found = only<Event>(events);
  REQUIRE(found.size() == 1);
  return found[0];
}

}  // namespace leasehold::testing
