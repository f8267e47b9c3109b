#include "tests/checks/soak/round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/script_runner.hpp"
#include "tests/checks/soak/soak_system.hpp"

namespace leasehold::soak {
namespace {

using runner::ActionKind;
using runner::Missing;
using runner::Record;
using runner::Starts;
using runner::Text;

constexpr std::uint64_t kActionsPerScan = 3;

// A killed worker costs one start; a killed broker disturbs every tenant.
constexpr runner::ActionShare kShares[] = {
    {ActionKind::KillTenant, 40},   {ActionKind::KillWorker, 10},
    {ActionKind::KillBroker, 3},    {ActionKind::KillBrokerAndWorker, 3},
    {ActionKind::KillResuming, 6},  {ActionKind::KillAdopting, 3},
    {ActionKind::StopTenant, 8},    {ActionKind::StopWorker, 5},
    {ActionKind::StopBroker, 3},    {ActionKind::RevokeLease, 14},
    {ActionKind::DrainLease, 6},    {ActionKind::RevokeWeights, 6},
    {ActionKind::ReplaceWorker, 5}, {ActionKind::SleepWorker, 6},
    {ActionKind::RevokeText, 8}};

bool was_reclaimed(const Text& text) {
  return std::ranges::any_of(text.record.revocations, [](const runner::Revocation& revocation) {
    return revocation.reason == name(RevokeReason::PreemptedByPriority);
  });
}

/// The samples that the judge requires and the record lacks.
Missing missing_samples(const Record& record) {
  if (record.swaps.value_or(0) == 0) return "no request was swapped";
  if (record.used_blocks->published == 0) return "no prompt used a published block";
  if (text_ends(record.texts) == 0) return "no stream ended with a published text";
  if (std::ranges::none_of(record.texts, was_reclaimed))
    return "no memory of the scavenger was reclaimed";
  return std::nullopt;
}

class Round {
 public:
  Round(const Settings& settings, const Workload& workload, const runner::Poller& poller,
        const RoundPlan& plan)
      : plan_(plan),
        workload_(workload),
        soak_(settings, workload, poller, plan.directory),
        script_(system_, kChaos, plan.seed) {}

  Result<RoundResult> run() {
    while (runner::kills(record_.actions) < plan_.kills && system_.clock().now() < plan_.until) {
      const bool acted = TRY(script_.run_next());
      if (acted && ++actions_ % kActionsPerScan == 0) scan();
    }
    TRY(serve_all_tenants());
    TRY(system_.poll_until([this] { return unsettled(); }, kSettleTimeout, Starts::NoTenants));
    TRY(system_.collect_event_logs());
    for (const Text& text : record_.texts)
      find_canaries(text.tenant, text.record.tokens, workload_.canaries, *record_.canaries);
    return RoundResult{count(record_), runner::judge(record_), failures(record_)};
  }

 private:
  /// Searches for canaries. A search that fails because the broker died is repeated after later
  /// actions.
  void scan() {
    if (BrokerView* broker = system_.view())
      (void)find_canaries(*broker, workload_.canaries, *record_.canaries);
  }

  /// Waits without further actions until every tenant has a complete answer, and the record has
  /// all samples that its judge requires.
  Result<void> serve_all_tenants() {
    system_.resume_all();
    std::set<std::string> answered;
    std::size_t next = record_.texts.size();
    TimePoint next_revocation = system_.clock().now();
    return system_.poll_until(
        [&]() -> Missing {
          for (; next < record_.texts.size(); ++next)
            if (record_.texts[next].record.completed) answered.insert(record_.texts[next].tenant);
          if (answered.size() < workload_.tenants.size()) return "a tenant got no complete answer";
          if (text_ends(record_.texts) == 0) revoke_text(next_revocation);
          return missing_samples(record_);
        },
        kSettleTimeout, Starts::Tenants);
  }

  void revoke_text(TimePoint& next) {
    if (system_.clock().now() < next) return;
    next = system_.clock().now() + runner::kIdleTimeout;
    (void)runner::revoke_lease(system_, wire::LeaseScope::Shared, script_.random());
  }

  /// Describes what has not ended yet. Returns nothing once all is quiet and free, and then stores
  /// that status for the judge.
  Missing unsettled() {
    // Published texts hold memory until their leases end.
    if (soak_.publisher().is_idle())
      (void)runner::revoke_lease(system_, wire::LeaseScope::Shared, 0);
    for (const runner::Tenant& tenant : system_.tenants())
      if (tenant.process.has_process()) return tenant.spec.name + " never ended";
    if (!soak_.tight_tenant().is_idle()) return "the tight tenant's requests never ended";
    BrokerView* broker = system_.view();
    if (broker == nullptr) return "the broker cannot be reached";
    if (!system_.all_workers_ready()) return "a worker never became ready";
    const auto status = broker->status();
    if (!status) return "the broker does not answer: " + status.error().detail;
    if (status->free_bytes != status->capacity_bytes) {
      return fmt::format("{} of {} bytes never became free",
                         status->capacity_bytes - status->free_bytes, status->capacity_bytes);
    }
    if (status->swap.free_bytes != status->swap.capacity_bytes) {
      return fmt::format("{} of {} bytes of swap never became free",
                         status->swap.capacity_bytes - status->swap.free_bytes,
                         status->swap.capacity_bytes);
    }
    record_.last = *status;
    return std::nullopt;
  }

  const RoundPlan& plan_;
  const Workload& workload_;
  SoakSystem soak_;
  runner::System& system_ = soak_.system();
  Record& record_ = soak_.record();
  runner::ScriptRunner script_;
  std::uint64_t actions_ = 0;
};

}  // namespace

const runner::Script kChaos{.shares = kShares,
                            .max_tokens_between = 40,
                            .max_stop_actions = 4,
                            .max_polls_to_second_kill = 40};

Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const runner::Poller& poller, const RoundPlan& plan) {
  return Round(settings, workload, poller, plan).run();
}

}  // namespace leasehold::soak
