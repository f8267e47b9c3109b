// Measures the time from a flip to the refusal and to quiet: another thread flips words at random
// times while this thread decodes or prefills. A third thread may map, clear and unmap memory
// meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "common/random.hpp"
#include "ipc/cuda/memory_cleaner.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/gpu_check/bench_cases.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kMaxRefuse_us = 50;
constexpr double kMaxQuietSlack_us = 20;
constexpr std::uint32_t kSegmentLayers = 4;
constexpr std::chrono::microseconds kPollInterval{20};

std::int64_t now_ns() {
  return SteadyClock::now().time_since_epoch().count();
}

/// The time of an event, stored once; 0 before the event.
using Moment = std::atomic<std::int64_t>;

void note(Moment& moment) {
  std::int64_t none = 0;
  moment.compare_exchange_strong(none, now_ns());
}

struct FlipResult {
  std::vector<double> refuse_us;
  std::vector<double> quiet_us;
  int dips = 0;  ///< Steps in which a sequence other than the victim did not stay live.
  int steps = 0;
  double step_us = 0;
  int remapped = 0;  ///< Pieces of memory that were mapped, cleared and unmapped meanwhile.
};

/// State that both threads share. The engine thread stores `victim_refused` and `quiet`, and in the
/// result `dips` and `steps`; the flipping thread stores its times.
struct Flips final : RefusalListener {
  void refused(const GateRefusal& refusal) noexcept override {
    if (refusal.sequence == 0) note(victim_refused);
  }
  void refusing_unit_ended() noexcept override {}

  Moment victim_refused{0};
  Moment quiet{0};
  std::atomic<bool> wants_new_lease{false};
  std::atomic<bool> is_over{false};  ///< No more flips, or no more steps.
  FlipResult result;
};

struct FlipPlan {
  int count = 200;
  std::chrono::milliseconds max_duration{15'000};
  std::uint32_t batch = 8;
  bool is_remapping = false;       ///< Memory is mapped, cleared and unmapped meanwhile.
  std::uint32_t prefill_rows = 0;  ///< Rows of the second sequence; 0: all sequences decode.
};

/// Flips one word and waits for refusal and quiet. Returns false if the steps ended before.
bool flip_once(Flips& flips, LocalModel& model) {
  flips.victim_refused = 0;
  flips.quiet = 0;
  const std::int64_t flipped = now_ns();
  model.revoke(0);
  model.when_settled([&flips] { note(flips.quiet); });
  while (flips.victim_refused == 0 || flips.quiet == 0) {
    if (flips.is_over) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  flips.result.refuse_us.push_back(static_cast<double>(flips.victim_refused - flipped) / 1e3);
  flips.result.quiet_us.push_back(static_cast<double>(flips.quiet - flipped) / 1e3);
  flips.wants_new_lease = true;
  while (flips.wants_new_lease && !flips.is_over) std::this_thread::sleep_for(kPollInterval);
  return true;
}

void flip_at_random(Flips& flips, LocalModel& model, const FlipPlan& plan, double step_seconds) {
  SeededRandom random(1);
  const auto begun = SteadyClock::now();
  const auto most_ns = static_cast<std::uint64_t>(step_seconds * 2e9) + 1;
  for (int i = 0; i < plan.count && SteadyClock::now() - begun < plan.max_duration; ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(random.below(most_ns)));
    if (!flip_once(flips, model)) break;
  }
  flips.is_over = true;
}

/// Maps, clears and unmaps memory of the card, as the worker's mapper and unmapper and the device
/// agent do. Returns how often it did.
Result<int> keep_remapping(const Card& card, const std::atomic<bool>& is_over) {
  constexpr std::size_t kExtent = std::size_t{2} << 20;
  const cuda::MemoryCleaner cleaner = TRY(cuda::MemoryCleaner::create(card.context()));
  int count = 0;
  do {
    const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), kExtent));
    TRY(cleaner.clear(memory));  // maps and unmaps it
    ++count;
  } while (!is_over);
  return count;
}

Result<void> run_step(BenchModel& model, const BenchCase& one, const FlipPlan& plan) {
  return plan.prefill_rows == 0 ? model.decode(plan.batch, one.context)
                                : model.prefill_beside(plan.prefill_rows, one.context);
}

/// Decodes or prefills until there are no more flips.
Result<void> decode_through(Flips& flips, BenchModel& model, const BenchCase& one,
                            const FlipPlan& plan) {
  const SequenceMask others = ((SequenceMask{1} << plan.batch) - 1) & ~SequenceMask{1};
  while (!flips.is_over) {
    TRY(run_step(model, one, plan));
    ++flips.result.steps;
    if ((model.model().live() & others) != others) ++flips.result.dips;
    if (!flips.wants_new_lease) continue;
    model.model().regrant(0);
    flips.wants_new_lease = false;
  }
  return {};
}

Result<FlipResult> measure_flips(Card& card, const BenchCase& one, const FlipPlan& plan,
                                 cuda::CudaOptions options) {
  Flips flips;  // outlives the model, which notifies it
  LocalOptions local = one.options(plan.batch);
  local.listener = &flips;
  if (plan.prefill_rows > 0) {
    local.max_rows = plan.prefill_rows + 1;
    local.positions = std::max(local.positions, plan.prefill_rows);
  }
  const auto model = TRY(BenchModel::load(card, options, std::move(local)));
  const double step_seconds =
      TRY(median_seconds({.count = 10}, [&] { return run_step(*model, one, plan); }));
  flips.result.step_us = step_seconds * 1e6;
  Result<int> remapped = 0;
  std::thread remapper([&] {
    if (plan.is_remapping) remapped = keep_remapping(card, flips.is_over);
  });
  std::thread flipper([&] { flip_at_random(flips, model->model(), plan, step_seconds); });
  const Result<void> decoded = decode_through(flips, *model, one, plan);
  flips.is_over = true;
  flipper.join();
  remapper.join();
  TRY(decoded);
  flips.result.remapped = TRY(remapped);
  return std::move(flips.result);
}

/// Stamps units as they pass the gate. With one launch at a time in the stream, the time between
/// two stamps is that of launching and running the first unit.
class UnitStamps final : public GateProbe {
 public:
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t layer, SequenceMask) override {
    if (at_.size() < at_.capacity()) at_.push_back({now_ns(), layer});
  }
  void begin() {
    at_.clear();
    at_.reserve(1 << 14);
  }
  /// Ends a step and keeps the minimum duration of each unit over all steps.
  void end() {
    at_.push_back({now_ns(), 0});
    std::vector<Unit> units;
    for (std::size_t i = 0; i + 1 < at_.size(); ++i)
      units.push_back({at_[i + 1].ns - at_[i].ns, at_[i].layer});
    if (shortest_.size() != units.size()) {
      shortest_ = std::move(units);
      return;
    }
    for (std::size_t i = 0; i < units.size(); ++i)
      shortest_[i].ns = std::min(shortest_[i].ns, units[i].ns);
  }

  double longest_us() const {
    std::int64_t longest_ns = 0;
    for (const Unit& unit : shortest_) longest_ns = std::max(longest_ns, unit.ns);
    return static_cast<double>(longest_ns) / 1e3;
  }
  /// Share of the total time in the longest segment.
  double longest_segment_share() const {
    std::map<std::uint32_t, std::int64_t> segments;
    std::int64_t all = 0;
    for (const Unit& unit : shortest_) {
      segments[unit.layer / kSegmentLayers] += unit.ns;
      all += unit.ns;
    }
    std::int64_t longest = 0;
    for (const auto& [segment, ns] : segments) longest = std::max(longest, ns);
    return all == 0 ? 0 : static_cast<double>(longest) / static_cast<double>(all);
  }
  std::size_t count() const { return shortest_.size(); }

 private:
  struct Unit {
    std::int64_t ns;
    std::uint16_t layer;
  };
  std::vector<Unit> at_;        ///< Times at which units passed the gate.
  std::vector<Unit> shortest_;  ///< Durations.
};

Result<void> stamp_units(Card& card, const BenchCase& one, const FlipPlan& plan,
                         UnitStamps& stamps) {
  LocalOptions local = one.options(plan.batch);
  local.probe = &stamps;
  const auto model = TRY(BenchModel::load(
      card, {.graphs = cuda::GraphUse::None, .max_in_flight = 1}, std::move(local)));
  for (int i = 0; i < 5; ++i) {
    stamps.begin();
    TRY(model->decode(plan.batch, one.context));
    stamps.end();
  }
  return {};
}

void report_clock(StageReport& report, const std::string& what, const std::vector<double>& times_us,
                  double most_us, bool has_target) {
  const bench::Distribution times = bench::distribution_of(times_us);
  std::optional<Target> target;
  if (has_target)
    target = {.limit = {.max = most_us}, .value = times.p99, .unit = "us", .statistic = "p99 "};
  ReportEntry row = judged(
      what, fmt::format("p50 {:.1f} us, p99 {:.1f} us of {}", times.p50, times.p99, times.count),
      target);
  row.as_threads = true;
  report.add(std::move(row));
}

/// A `max_quiet_us` of 0 means that there is no target.
void report_flips(StageReport& report, const BenchCase& one, const std::string& mode,
                  const FlipResult& result, double max_quiet_us) {
  report.numbers()["revoke"].push_back({{"model", one.title},
                                        {"mode", mode},
                                        {"step_us", result.step_us},
                                        {"steps", result.steps},
                                        {"dips", result.dips},
                                        {"remapped", result.remapped},
                                        {"max_quiet_us", max_quiet_us},
                                        {"t_refuse_us", result.refuse_us},
                                        {"t_quiet_us", result.quiet_us}});
  const bool has_target = one.has_targets && !result.refuse_us.empty();
  report_clock(report, fmt::format("t_refuse, {}", mode), result.refuse_us, kMaxRefuse_us,
               has_target);
  report_clock(report, fmt::format("t_quiet, {}", mode), result.quiet_us, max_quiet_us,
               has_target && max_quiet_us > 0);
  report.require(fmt::format("survivors' dip, {}", mode), result.dips == 0,
                 fmt::format("{} of {} steps", result.dips, result.steps));
}

/// Measures flips while the driver maps and clears memory, and during long prefills.
Result<void> bench_busy_flips(const Settings& settings, StageReport& report, Card& card,
                              const BenchCase& one) {
  FlipPlan remapping{.is_remapping = true};
  FlipPlan prefill{.batch = 2, .prefill_rows = 2048};
  if (settings.tiny) {
    remapping.count = prefill.count = 3;
    remapping.batch = 2;
    prefill.prefill_rows = 16;
  }
  report_flips(report, one, "gated graph during map, clear and unmap",
               TRY(measure_flips(card, one, remapping, {.segment_layers = kSegmentLayers})), 0);
  report_flips(report, one, fmt::format("prefill of {} rows", prefill.prefill_rows),
               TRY(measure_flips(card, one, prefill, {})), 0);
  return {};
}

}  // namespace

Result<void> bench_revoke(const Settings& settings, StageReport& report, Card& card,
                          const BenchCase& one) {
  FlipPlan plan;
  if (settings.tiny) plan = {.count = 3, .batch = 2};
  UnitStamps stamps;
  TRY(stamp_units(card, one, plan, stamps));
  report.measured(fmt::format("{} batch {}: longest kernel of {} launches", one.title, plan.batch,
                              stamps.count()),
                  fmt::format("{:.0f} us with its launch", stamps.longest_us()));
  const FlipResult plain = TRY(measure_flips(card, one, plan, {.graphs = cuda::GraphUse::None}));
  report_flips(report, one, std::string(name(cuda::GraphUse::None)), plain,
               stamps.longest_us() + kMaxQuietSlack_us);
  const FlipResult gated = TRY(measure_flips(
      card, one, plan, {.graphs = cuda::GraphUse::Gated, .segment_layers = kSegmentLayers}));
  report_flips(report, one, std::string(name(cuda::GraphUse::Gated)), gated,
               stamps.longest_segment_share() * gated.step_us);
  return bench_busy_flips(settings, report, card, one);
}

}  // namespace leasehold::gpu_check
