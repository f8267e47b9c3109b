#include "tools/checks/bench/tick_cost.hpp"

#include <fmt/format.h>

#include "common/expects.hpp"
#include "tools/checks/bench/thread_time.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kContext = 512;
constexpr std::uint32_t kPromptTokens = 32;
constexpr std::uint32_t kTextTokens = 64;
constexpr TimePoint kNow{1};

class LoadedScheduler {
 public:
  explicit LoadedScheduler(const TickLoad& load)
      : load_(load),
        scheduler_({.max_batch_size = load.running,
                    .token_budget = 4 * load.running,
                    .max_context = kContext,
                    .record_blocks = 1,
                    .max_waiting_per_lease = load.waiting,
                    .max_waiting = 4 * load.waiting}) {
    for (std::uint32_t i = 0; i < load.tenants; ++i) {
      scheduler_.set_quota(
          {.tenant = tenant(i), .max_concurrent = load.running, .max_blocks = 1u << 20});
      scheduler_.add_lease({.lease = lease(i), .tenant = tenant(i)});
      scheduler_.add_extent(lease(i), ExtentId{i + 1}, kContext);
    }
    refill();
  }

  /// Keeps the number of waiting requests.
  void refill() {
    while (scheduler_.waiting_count() < load_.waiting) {
      const std::uint32_t i = static_cast<std::uint32_t>(next_++ % load_.tenants);
      const auto submitted =
          scheduler_.submit({.tenant = tenant(i),
                             .lease = lease(i),
                             .engine_request_id = RequestId{fmt::format("req-{}", next_)},
                             .prompt = std::vector<TokenId>(kPromptTokens, 1),
                             .max_emitted_tokens = kTextTokens});
      expects(submitted.has_value(), "the queue holds the waiting requests");
    }
  }

  void tick() {
    scheduler_.admit(kNow);
    const StepPlan plan = scheduler_.plan();
    for (const PlannedRows& part : plan.parts)
      scheduler_.commit(
          part, part.wants_token ? std::optional(DrawnToken{.sampled = {2}}) : std::nullopt);
    (void)scheduler_.take_events();
  }

  bool is_full() const { return scheduler_.running_count() == load_.running; }

 private:
  static TenantId tenant(std::uint32_t i) { return TenantId{fmt::format("tenant-{}", i)}; }
  static LeaseId lease(std::uint32_t i) { return {.slot = i + 1, .generation = 1}; }

  TickLoad load_;
  Scheduler scheduler_;
  std::uint64_t next_ = 0;
};

}  // namespace

Distribution measure_tick_us(const TickLoad& load) {
  LoadedScheduler scheduler(load);
  while (!scheduler.is_full()) {
    scheduler.tick();
    scheduler.refill();
  }
  std::vector<double> ticks_us;
  for (std::uint32_t i = 0; i < load.ticks; ++i) {
    const double begin_ns = thread_time_ns();
    scheduler.tick();
    ticks_us.push_back((thread_time_ns() - begin_ns) / 1e3);
    scheduler.refill();
  }
  return distribution_of(std::move(ticks_us));
}

}  // namespace leasehold::bench
