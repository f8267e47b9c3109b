#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/expects.hpp"
#include "common/random.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kTickContext = 512;
constexpr std::uint32_t kTickPromptTokens = 32;
constexpr std::uint32_t kMostTickTextTokens = 128;
constexpr TimePoint kTickTime{1};

class LoadedScheduler {
 public:
  explicit LoadedScheduler(const TickLoad& load)
      : load_(load),
        scheduler_({.max_batch_size = load.running,
                    .token_budget = 4 * load.running,
                    .max_context = kTickContext,
                    .record_blocks = 1,
                    .max_waiting_per_lease = load.waiting,
                    .max_waiting = 4 * load.waiting}) {
    for (std::uint32_t i = 0; i < load.tenants + load.idle_leases; ++i) {
      scheduler_.set_quota(
          {.tenant = tenant(i), .max_concurrent = load.running, .max_blocks = 1u << 20});
      scheduler_.tenancies().add({.lease = lease(i), .tenant = tenant(i)});
      scheduler_.blocks().add_extent(lease(i), ExtentId{i + 1}, kTickContext);
    }
    refill();
  }

  /// Submits requests until the number of waiting requests is restored.
  void refill() {
    while (scheduler_.tenancies().waiting_count() < load_.waiting) {
      const std::uint32_t i = static_cast<std::uint32_t>(next_++ % load_.tenants);
      const auto submitted = scheduler_.submit(
          {.tenant = tenant(i),
           .lease = lease(i),
           .engine_request_id = RequestId{fmt::format("req-{}", next_)},
           .prompt = std::vector<TokenId>(kTickPromptTokens, static_cast<TokenId>(next_)),
           .max_emitted_tokens =
               static_cast<std::uint32_t>(1 + random_.below(kMostTickTextTokens))});
      expects(submitted.has_value(), "the queue holds the waiting requests");
    }
  }

  StepPlan schedule() {
    scheduler_.admit(kTickTime);
    StepPlan plan = scheduler_.plan();
    (void)scheduler_.blocks().take_released_records();
    (void)scheduler_.tenancies().take_growth_requests();
    return plan;
  }

  void commit(const StepPlan& plan) {
    for (const PlannedRows& part : plan.parts)
      scheduler_.commit(part, std::vector<DrawnToken>(part.wants_token ? 1 : 0, {.sampled = {2}}));
    (void)scheduler_.take_events();
  }

  bool is_full() const { return scheduler_.running().size() == load_.running; }

 private:
  static TenantId tenant(std::uint32_t i) { return TenantId{fmt::format("tenant-{}", i)}; }
  static LeaseId lease(std::uint32_t i) { return {.slot = i + 1, .generation = 1}; }

  TickLoad load_;
  SeededRandom random_{1};
  Scheduler scheduler_;
  std::uint64_t next_ = 0;
};

}  // namespace

Samples measure_tick_us(const TickLoad& load) {
  LoadedScheduler scheduler(load);
  while (!scheduler.is_full()) {
    scheduler.commit(scheduler.schedule());
    scheduler.refill();
  }
  Samples samples;
  for (std::uint32_t i = 0; i < load.ticks; ++i) {
    const double begin_ns = thread_time_ns();
    const StepPlan plan = scheduler.schedule();
    const double planned_ns = thread_time_ns();
    scheduler.commit(plan);
    samples["commit"].push_back((thread_time_ns() - planned_ns) / 1e3);
    samples["schedule"].push_back((planned_ns - begin_ns) / 1e3);
    scheduler.refill();
  }
  return samples;
}

nlohmann::json measure_tick() {
  const TickLoad load;
  const Samples usual = measure_tick_us(load);
  const auto ratio_to_usual = [&usual](const TickLoad& other) {
    return figure_of(measure_tick_us(other), "schedule") / figure_of(usual, "schedule");
  };
  return {{"us", figures_of(usual, Statistic::Distribution)},
          {"idle_leases_ratio", ratio_to_usual({.idle_leases = 3000})},
          {"waiting_ratio", ratio_to_usual({.waiting = 8 * load.waiting})},
          {"schedule_over_commit", figure_of(usual, "schedule") / figure_of(usual, "commit")}};
}

}  // namespace leasehold::bench
