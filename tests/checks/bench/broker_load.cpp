// Load on the broker alone: many leases revoked by one command, and leases per second.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "common/clock.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/checks/bench/holders.hpp"
#include "tests/checks/bench/light_worker.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tools/brokerctl/wait/lease_wait.hpp"

namespace leasehold::bench {
namespace {

constexpr const char* kTenant = "bench";
constexpr std::uint64_t kExtentBytes = 2 << 20;
constexpr std::uint32_t kMaxExtentsByDefault = 1024;
constexpr std::uint32_t kMassRounds = 3;
constexpr std::uint32_t kAcquiresInFlight = 64;
constexpr std::uint32_t kCyclesInFlight = 16;
constexpr Duration kFreeTimeout = std::chrono::seconds(120);

/// Polls the lease words on a separate thread, as a worker does.
class WordWatch {
 public:
  WordWatch(const TableReader& table, std::vector<LeaseId> leases)
      : table_(table), leases_(std::move(leases)), thread_([this] { watch(); }) {}

  /// Waits until the last lease is Fenced.
  void join() { thread_.join(); }
  TimePoint first_revoked, last_revoked, last_fenced;

 private:
  void await(LeaseId lease, LeaseState state) const {
    while (table_.word_of(lease).state() < state) {
    }
  }
  void watch() {
    await(leases_.front(), LeaseState::Revoked);  // one command stores words in slot order
    first_revoked = clock_.now();
    for (const LeaseId lease : leases_) await(lease, LeaseState::Revoked);
    last_revoked = clock_.now();
    for (const LeaseId lease : leases_) await(lease, LeaseState::Fenced);
    last_fenced = clock_.now();
  }

  const TableReader& table_;
  std::vector<LeaseId> leases_;
  SystemClock clock_;
  std::jthread thread_;
};

Result<void> await_all_free(System& system) {
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kFreeTimeout; clock.now() < deadline;) {
    const wire::StatusView status = TRY(system.broker().status());
    if (status.free_bytes == status.capacity_bytes) return {};
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return fail(Errc::TimedOut, "the memory is not free after 2 minutes");
}

/// Waits as brokerctl does, so that the wait does not slow the broker down.
Result<void> await_free(const std::string& broker_socket, const std::vector<LeaseId>& leases) {
  const SystemClock clock;
  control::Client client = TRY(control::Client::connect(broker_socket));
  const brokerctl::Dependencies dependencies{
      .call = [&](std::string_view method, const wire::Json& params) -> Result<wire::Json> {
        return TRY(client.call(std::string(method), {.body = params, .fds = {}})).body;
      }};
  brokerctl::LeaseWait wait(leases, {.worker = {}, .until_free = true});
  for (const TimePoint deadline = clock.now() + kFreeTimeout; clock.now() < deadline;)
    if (TRY(wait.wait(deadline - clock.now(), dependencies))) return {};
  return fail(Errc::TimedOut, "the memory is not free after 2 minutes");
}

SystemConfig broker_only(const std::string& bin_dir, std::uint32_t extents) {
  // More slots than extents, so that the extents are the limit.
  std::vector<std::string> options = {"--slots", std::to_string(extents + 64), "--log-level",
                                      "warn"};
  if (extents > kMaxExtentsByDefault) {
    options.insert(options.end(), {"--max-extents", std::to_string(extents)});
  }
  return {.bin_dir = bin_dir,
          .capacity = std::to_string(extents * kExtentBytes),
          .broker_options = std::move(options),
          .journal = true};
}

Result<void> revoke_all(System& system, const LightWorker& worker,
                        const std::vector<LeaseId>& leases, Samples& samples) {
  const SystemClock clock;
  WordWatch watch(worker.table(), leases);
  const TimePoint called = clock.now();
  TRY(system.broker().command(wire::LeaseRevoke{.tenant = TenantId{kTenant}}));
  const TimePoint answered = clock.now();
  watch.join();
  TRY(await_free(system.broker_socket(), leases));
  samples["first_to_last_flip_us"].push_back(1e3 * ms_of(watch.last_revoked - watch.first_revoked));
  samples["all_fenced_ms"].push_back(ms_of(watch.last_fenced - watch.first_revoked));
  samples["all_free_ms"].push_back(ms_of(clock.now() - watch.first_revoked));
  samples["answer_ms"].push_back(ms_of(answered - called));
  return {};
}

}  // namespace

Result<Samples> measure_mass_revocation(const std::string& bin_dir, std::uint32_t leases) {
  Samples samples;
  auto system = TRY(System::start(broker_only(bin_dir, leases)));
  TRY(system->admit(kTenant));
  const auto worker = TRY(LightWorker::attach(system->broker_socket()));
  const auto one_round = [&](const std::vector<LeaseId>& held) {
    return revoke_all(*system, *worker, held, samples);
  };
  for (std::uint32_t round = 0; round < kMassRounds; ++round) {
    TRY(hold_leases({.broker_socket = system->broker_socket(),
                     .tenant = kTenant,
                     .count = leases,
                     .in_flight = kAcquiresInFlight},
                    one_round));
  }
  return samples;
}

Result<nlohmann::json> measure_cycle_rate(const std::string& bin_dir, std::uint32_t cycles) {
  auto system = TRY(System::start(broker_only(bin_dir, 256)));
  TRY(system->admit(kTenant));
  const auto worker = TRY(LightWorker::attach(system->broker_socket()));
  HolderConfig holder{.broker_socket = system->broker_socket(),
                      .tenant = kTenant,
                      .count = cycles / 10 + 1,
                      .in_flight = kCyclesInFlight};
  TRY(cycle_leases(holder));  // warms up
  holder.count = cycles;
  const auto broker_ran_ns = [&system] {
    return sum_of(run_queues_of(system->broker_pid())).ran_ns;
  };
  const SystemClock clock;
  const TimePoint begin = clock.now();
  const std::uint64_t ran_before = broker_ran_ns();
  TRY(cycle_leases(holder));
  TRY(await_all_free(*system));
  return nlohmann::json{
      {"per_s", cycles / (ms_of(clock.now() - begin) / 1e3)},
      {"broker_cpu_us", static_cast<double>(broker_ran_ns() - ran_before) / 1e3 / cycles}};
}

}  // namespace leasehold::bench
