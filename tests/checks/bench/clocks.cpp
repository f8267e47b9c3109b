#include "tests/checks/bench/clocks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "common/clock.hpp"
#include "common/random.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kPoolTimeout = std::chrono::seconds(120);
constexpr Duration kEndTimeout = std::chrono::seconds(30);
constexpr Duration kAdapterEndTimeout = std::chrono::seconds(2);
constexpr Duration kFenceTimeout = std::chrono::seconds(10);
constexpr std::uint32_t kTokensOfOneRequest = 200;
/// Longest pause before a flip. Steps are not a multiple of it, so the phases are random.
constexpr std::uint64_t kMaxPauseUs = 3000;

double us(std::integral auto ns) {
  return std::cmp_less(ns, 0) ? -1 : static_cast<double>(ns) / 1e3;
}

/// Enough running tenants for a batch of about the nominal size while revoked tenants acquire
/// again.
std::size_t min_running(std::uint32_t tenants) {
  return std::max<std::size_t>(1, tenants * 3 / 4);
}

/// The threads that run between the flip and the end of a clock. For t_reuse the engine thread is
/// left out, because the engine's part ends with t_quiet.
constexpr const char* kEngineThreads[] = {"main", "compute"};
constexpr const char* kDeliveryThreads[] = {"main", "compute", "tenants"};
constexpr const char* kUnmapThreads[] = {"io", "unmapper"};
constexpr const char* kBrokerThreads[] = {"main"};
constexpr const char* kScrubThreads[] = {"main", "scrubber"};
constexpr const char* kHolderThreads[] = {TenantPool::kThreadName};

struct Snapshot {
  ThreadRunQueues worker, broker, bench;
};

Snapshot take_snapshot(const System& system) {
  return {.worker = run_queues_of(system.worker_pid()),
          .broker = run_queues_of(system.broker_pid()),
          .bench = run_queues_of(::getpid())};
}

/// The delays of all clocks except t_reuse, which ends later.
ClockTimes delays_until_error(const Snapshot& early, const Snapshot& late) {
  const auto engine = waited_ns(early.worker, late.worker, kEngineThreads);
  const auto delivery = waited_ns(early.worker, late.worker, kDeliveryThreads);
  return {.refuse_us = us(engine),
          .refuse_in_step_us = us(engine),
          .handed_us = us(delivery),
          .error_us = us(delivery + waited_ns(early.bench, late.bench, kHolderThreads)),
          .quiet_us = us(engine + waited_ns(early.broker, late.broker, kBrokerThreads))};
}

double delay_until_reuse(const Snapshot& early, const Snapshot& late) {
  return us(waited_ns(early.worker, late.worker, kUnmapThreads) +
            waited_ns(early.broker, late.broker, kScrubThreads));
}

/// The lease to revoke: that of a random tenant or of its adapter.
Result<LeaseId> choose_lease(System& system, const TenantPool& tenant_pool, SeededRandom& random,
                             bool is_adapter) {
  const auto running = tenant_pool.running();
  if (running.empty()) return fail(Errc::TimedOut, "no tenant is running");
  const auto& [client, lease] = running[random.below(running.size())];
  if (!is_adapter) return lease;
  const auto loaded = TRY(system.broker().live_adapter_lease(adapter_name(client)));
  if (!loaded) return fail(Errc::TimedOut, "a running tenant's adapter has no lease");
  return *loaded;
}

/// Revokes a random lease, waits for its holder's typed end, and pauses for a random time, so that
/// the next flip has a random phase. Nothing: no text used the adapter any more.
Result<std::optional<ClockSample>> flip_one(System& system, const TenantPool& tenant_pool,
                                            SeededRandom& random, bool is_adapter) {
  const LeaseId lease = TRY(choose_lease(system, tenant_pool, random, is_adapter));
  const Snapshot before = take_snapshot(system);
  TRY(system.revoke(lease));
  const auto end = tenant_pool.await_end(lease, is_adapter ? kAdapterEndTimeout : kEndTimeout);
  if (!end && is_adapter) return std::nullopt;
  if (!end)
    return fail(Errc::TimedOut, "the holder of lease " + to_string(lease) + " got no typed end");
  ClockSample sample{.lease = lease,
                     .run_queue_delay = delays_until_error(before, take_snapshot(system))};
  // Between two requests no stream can end; the next call is refused instead.
  if (end->reason == "Revoked") sample.ended = end->at;
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(kMaxPauseUs)));
  sample.run_queue_delay.reuse_us = delay_until_reuse(before, take_snapshot(system));
  return sample;
}

using BySample = std::map<LeaseId, ClockSample*>;

/// Reads t_refuse, which the worker thread that refused has stamped.
void read_events(const std::vector<events::StampedEvent>& seen, const BySample& samples) {
  for (const auto& [event, at] : seen) {
    const auto* refused = std::get_if<events::ForwardRevoked>(&event);
    if (refused == nullptr) continue;
    const auto found = samples.find(refused->lease);
    if (found == samples.end() || found->second->times.refuse_us >= 0) continue;
    found->second->times.refuse_us = us(refused->since_flip_ns);
    found->second->site = std::string(name(refused->kernel_site));
    if (refused->kernel_site == LaunchSite::Commit) continue;
    found->second->times.refuse_in_step_us = found->second->times.refuse_us;
  }
}

/// Reads the broker's clocks, and the holder's clock relative to the broker's flip.
void read_lease(const wire::LeaseView& view, ClockSample& sample) {
  sample.times.handed_us = us(view.clocks.error_ns);
  sample.times.quiet_us = us(view.clocks.quiet_ns);
  sample.times.reuse_us = us(view.clocks.reuse_ns);
  if (sample.ended == TimePoint{}) return;
  sample.times.error_us = us(sample.ended.boottime_ns - view.times.revoked_boottime_ns);
}

/// Waits until every flipped lease is fenced and its memory is free, then reads the clocks.
Result<void> read_leases(System& system, const BySample& samples) {
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kFenceTimeout;
  while (true) {
    std::size_t open = samples.size();
    for (const wire::LeaseView& view : TRY(system.broker().leases())) {
      const auto found = samples.find(view.lease);
      if (found == samples.end()) continue;
      read_lease(view, *found->second);
      if (found->second->times.reuse_us >= 0) --open;
    }
    if (open == 0) return {};
    if (clock.now() > deadline) {
      return fail(Errc::TimedOut,
                  fmt::format("the memory of {} leases is not free after 10 s", open));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

RunQueue operator-(const RunQueue& late, const RunQueue& early) {
  return {late.ran_ns - early.ran_ns, late.waited_ns - early.waited_ns};
}

}  // namespace

Result<ClockRun> measure_clocks(const ClockSetup& setup) {
  std::vector<std::string> worker_options = setup.worker_options;
  if (setup.adapters != nullptr)
    worker_options.insert(worker_options.end(), {"--adapters", setup.adapters->directory()});
  auto system = TRY(System::start({.bin_dir = setup.bin_dir,
                                   .model_path = setup.model_path,
                                   .threads = setup.threads,
                                   .capacity = setup.capacity,
                                   .broker_options = setup.broker_options,
                                   .worker_options = std::move(worker_options)}));
  TRY(system->admit_pool(setup.tenants));
  TenantPoolConfig pool{.broker_socket = system->broker_socket(),
                        .clients = setup.tenants,
                        .max_tokens = kTokensOfOneRequest};
  if (setup.adapters != nullptr) {
    for (std::uint32_t i = 0; i < setup.tenants; ++i) TRY(register_adapter(*system, i, i));
    pool.adapter = [](std::uint32_t client, std::uint64_t) { return adapter_name(client); };
  }
  TenantPool tenant_pool(std::move(pool));
  TRY(tenant_pool.await_running(setup.tenants, kPoolTimeout));
  ClockRun run{.setup = setup};
  SeededRandom random(setup.seed);
  const RunQueue worker = sum_of(run_queues_of(system->worker_pid()));
  const RunQueue broker = sum_of(run_queues_of(system->broker_pid()));
  const SystemClock clock;
  const TimePoint begin = clock.now();
  run.samples.reserve(setup.samples);
  std::uint32_t unused = 0;
  while (run.samples.size() < setup.samples) {
    TRY(tenant_pool.await_running(min_running(setup.tenants), kPoolTimeout));
    const auto sample = TRY(flip_one(*system, tenant_pool, random, setup.adapters != nullptr));
    if (sample) {
      run.samples.push_back(*sample);
    } else if (++unused > setup.samples) {
      return fail(Errc::TimedOut, "most revocations of adapters ended no text");
    }
  }
  run.seconds = ms_of(clock.now() - begin) / 1e3;
  run.worker = sum_of(run_queues_of(system->worker_pid())) - worker;
  run.broker = sum_of(run_queues_of(system->broker_pid())) - broker;
  run.load = load_average();
  BySample by_lease;
  for (ClockSample& sample : run.samples) by_lease[sample.lease] = &sample;
  TRY(read_leases(*system, by_lease));
  read_events(TRY(system->broker().events()), by_lease);
  return run;
}

std::vector<double> values_of(const ClockRun& run, double ClockTimes::* clock,
                              bool with_run_queue_delay) {
  std::vector<double> values;
  for (const ClockSample& sample : run.samples) {
    const double value = sample.times.*clock;
    if (value < 0) continue;
    const double delay = with_run_queue_delay ? 0 : sample.run_queue_delay.*clock;
    values.push_back(std::max(0.0, value - std::max(0.0, delay)));
  }
  return values;
}

}  // namespace leasehold::bench
