#include "tests/checks/soak/hostile/run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/machine/text_file.hpp"
#include "common/random.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/local_system/local_system.hpp"
#include "tests/checks/soak/hostile/attackers.hpp"
#include "tests/checks/soak/hostile/honest_tenants.hpp"
#include "tests/checks/soak/hostile/http_neighbour.hpp"
#include "tests/checks/soak/hostile/judge_hostile.hpp"
#include "tests/checks/soak/hostile/state_disk.hpp"

namespace leasehold::soak {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kStartTimeout = std::chrono::seconds(60);
constexpr Duration kTextTimeout = std::chrono::minutes(3);
/// Time for attackers to end after their window.
constexpr Duration kEndTimeout = std::chrono::seconds(30);
constexpr Duration kFreeTimeout = std::chrono::seconds(60);
constexpr Duration kWarmUp = std::chrono::seconds(2);
/// Pause between two windows, so that work left by the last one ends.
constexpr Duration kPause = std::chrono::milliseconds(500);
/// With this interval a minute of attack has about 200 revocations, enough for a 90th percentile.
constexpr Duration kRevokeInterval = std::chrono::milliseconds(250);
constexpr Duration kSizesInterval = std::chrono::milliseconds(200);
constexpr Duration kClocksTimeout = std::chrono::seconds(2);
constexpr std::size_t kMaxLogBytes = 64 << 20;
constexpr std::uint32_t kHostileConcurrent = 2;
constexpr std::uint32_t kHostileBlocks = 256;
/// Nice value of broker and worker, as in tools/systemd.
constexpr int kServerNice = -10;

/// Private resident memory of a process; 0 if it has ended. Source: proc(5), status.
std::uint64_t private_bytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

int nice_of(const Child& process) {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(process.pid()));
}

ServerThreads threads_between(const ServerThreads& early, const ServerThreads& late) {
  return {.broker = bench::run_queues_between(early.broker, late.broker),
          .worker = bench::run_queues_between(early.worker, late.worker)};
}

class HostileRun {
 public:
  HostileRun(const HostileSettings& settings, const demo::Poller& poller, LocalSystem& system,
             const StateDisk& state)
      : settings_(settings),
        poller_(poller),
        system_(system),
        state_(state),
        users_(Users::create(system.programs())),
        honest_(settings, system.programs(), users_),
        random_(settings.seed) {}

  Result<void> start();
  Result<void> undisturbed();
  Result<void> attack_in_windows();
  Result<void> finish();

  HostileRecord record;

 private:
  Result<void> poll();
  Result<void> poll_for(Duration duration);
  Result<void> window(WindowKind kind, Duration duration);
  Result<Attackers> start_attackers(WindowKind kind, Duration duration);
  Result<void> await_end(Attackers& attackers, AttackerCpu& cpu, Duration duration);
  Result<void> admit();
  Result<void> make_keys();
  Result<std::string> key_of(const std::string& tenant);
  void revoke_one(WindowKind kind);
  Result<void> read_clocks();
  void see_memory_and_disk();
  ServerThreads threads();

  const HostileSettings& settings_;
  const demo::Poller& poller_;
  LocalSystem& system_;
  const StateDisk& state_;
  Users users_;
  HonestTenants honest_;
  std::optional<HttpNeighbour> neighbour_;
  SeededRandom random_;
  SystemClock clock_;
  bool serves_ = true;  ///< Tenants whose text ended begin another one.
  bool attacked_ = false;
  TimePoint sizes_seen_;
  TimePoint revoked_at_;
  /// The revocation whose clocks have not ended.
  std::optional<HonestRevocation> open_revocation_;
  ServerThreads before_flip_;
};

Result<void> HostileRun::start() {
  const fs::path& directory = system_.programs().directory();
  fs::permissions(directory, fs::perms(0755));  // other users reach the sockets
  TRY(system_.start_broker({.arguments = {"--capacity", "512MiB", "--socket-mode", "0666",
                                          "--state-dir", state_.path(), "--audit-records", "1000"},
                            .nice = kServerNice},
                           kStartTimeout));
  TRY(system_.start_worker(
      kHostileWorker, settings_.model_path,
      {.arguments = {"--threads", "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us),
                     "--token-budget", "64", "--http", http_socket_of(system_.programs())},
       .nice = kServerNice}));
  TRY(system_.await_worker(kHostileWorker, kStartTimeout));
  record.state_disk.size_bytes = state_.size_bytes();
  record.broker_nice = nice_of(system_.broker());
  record.worker_nice = nice_of(system_.worker(kHostileWorker));
  record.has_other_users = users_.are_others();
  record.expected_attacks = expected_attacks(settings_, users_);
  TRY(admit());
  return make_keys();
}

/// Attackers read their API keys from files, because other users can read command lines.
Result<void> HostileRun::make_keys() {
  for (std::uint32_t i = 0; i < settings_.tenants; ++i) {
    std::ofstream file(api_key_file_of(system_.programs(), i));
    file << TRY(key_of(hostile_tenant_name(i)));
  }
  neighbour_.emplace(http_socket_of(system_.programs()), TRY(key_of(honest_.names().front())));
  return {};
}

Result<std::string> HostileRun::key_of(const std::string& tenant) {
  std::string key = mint_api_key();
  TRY(system_.view().command(wire::KeyCreate{.tenant = {tenant}, .hash = hash_of_api_key(key)}));
  return key;
}

Result<void> HostileRun::admit() {
  const auto names = honest_.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    TRY(system_.view().command(wire::TenantAdmit{.tenant = {names[i]},
                                                 .max_concurrent = 2,
                                                 .rebinds_per_minute = 6'000,
                                                 .uid = honest_.user(i)}));
  }
  for (std::uint32_t i = 0; i < settings_.tenants; ++i) {
    TRY(system_.view().command(wire::TenantAdmit{.tenant = {hostile_tenant_name(i)},
                                                 .max_concurrent = kHostileConcurrent,
                                                 .max_blocks = kHostileBlocks,
                                                 .uid = users_.tenant(i)}));
  }
  return {};
}

Result<void> HostileRun::undisturbed() {
  serves_ = false;
  TRY(honest_.start_missing());
  std::vector<TenantInstance> texts;
  const TimePoint deadline = clock_.now() + kTextTimeout;
  while (honest_.any_running()) {
    TRY(poller_.wait(honest_.outputs(), kPollInterval));
    TRY(honest_.read(texts));
    TRY(system_.check_alive());
    see_memory_and_disk();
    if (clock_.now() > deadline) return fail(Errc::TimedOut, "the undisturbed texts do not end");
  }
  for (const TenantInstance& text : texts) {
    if (text.record.failed)
      return fail(Errc::ConnectionLost, text.tenant + " without attackers: " + *text.record.failed);
  }
  honest_.keep_undisturbed(texts);
  serves_ = true;
  return {};
}

// ---------------------------------------------------------------------------------------- windows

Result<void> HostileRun::attack_in_windows() {
  TRY(poll_for(kPause));
  attacked_ = true;
  Attackers first = TRY(start_attackers(WindowKind::Hostile, kWarmUp));
  TRY(poll_for(kWarmUp));
  TRY(await_end(first, record.hostile, kWarmUp));
  for (std::uint32_t done = 0; done < settings_.seconds;) {
    const std::uint32_t seconds = std::min(settings_.window_seconds, settings_.seconds - done);
    const Duration attack = std::chrono::seconds(seconds);
    for (const WindowKind kind : {WindowKind::Calm, WindowKind::Control, WindowKind::Hostile})
      TRY(window(kind, attack));
    done += seconds;
    std::cerr << fmt::format("hostile: {} of {} s of attack\n", done, settings_.seconds);
  }
  return {};
}

Result<Attackers> HostileRun::start_attackers(WindowKind kind, Duration duration) {
  switch (kind) {
    case WindowKind::Calm:
      return Attackers();
    case WindowKind::Control:
      return Attackers::burn(settings_, system_.programs(),
                             record.hostile.cpu_s / record.hostile.window_s, duration);
    case WindowKind::Hostile:
      return Attackers::attack(settings_, system_.programs(), users_, duration);
  }
  return Attackers();
}

Result<void> HostileRun::window(WindowKind kind, Duration duration) {
  TRY(poll_for(kPause));
  Attackers attackers = TRY(start_attackers(kind, duration));
  const ServerThreads early = threads();
  const TimePoint from = clock_.now();
  while (clock_.now() < from + duration) {
    TRY(poll());
    revoke_one(kind);
    TRY(read_clocks());
  }
  record.windows.push_back({.kind = kind,
                            .from = from,
                            .to = clock_.now(),
                            .threads = threads_between(early, threads())});
  return await_end(attackers, kind == WindowKind::Hostile ? record.hostile : record.control,
                   duration);
}

Result<void> HostileRun::await_end(Attackers& attackers, AttackerCpu& cpu, Duration duration) {
  const TimePoint deadline = clock_.now() + kEndTimeout;
  while (!TRY(attackers.collect(record.attacks))) {
    TRY(poll());
    if (clock_.now() > deadline) return fail(Errc::TimedOut, "an attacker does not end");
  }
  if (attackers.cpu_s() == 0) return {};
  cpu.cpu_s += attackers.cpu_s();
  cpu.window_s += std::chrono::duration<double>(duration).count();
  return {};
}

Result<void> HostileRun::poll() {
  TRY(poller_.wait(honest_.outputs(), kPollInterval));
  TRY(honest_.read(record.honest));
  TRY(system_.check_alive());
  see_memory_and_disk();
  return serves_ ? honest_.start_missing() : Result<void>{};
}

Result<void> HostileRun::poll_for(Duration duration) {
  for (const TimePoint end = clock_.now() + duration; clock_.now() < end;) TRY(poll());
  return {};
}

void HostileRun::see_memory_and_disk() {
  if (clock_.now() - sizes_seen_ < kSizesInterval) return;
  sizes_seen_ = clock_.now();
  record.broker.see(private_bytes(system_.broker().pid()), attacked_);
  record.worker.see(private_bytes(system_.worker(kHostileWorker).pid()), attacked_);
  record.state_disk.peak_bytes = std::max(record.state_disk.peak_bytes, state_.used_bytes());
}

ServerThreads HostileRun::threads() {
  return {.broker = bench::run_queues_of(system_.broker().pid()),
          .worker = bench::run_queues_of(system_.worker(kHostileWorker).pid())};
}

// ------------------------------------------------------------------------------------ revocations

/// Revokes the lease of a random honest tenant. A lease that ended by itself meanwhile is not
/// counted.
void HostileRun::revoke_one(WindowKind kind) {
  if (open_revocation_ || clock_.now() - revoked_at_ < kRevokeInterval) return;
  const auto leases = honest_.leases_mid_text();
  if (leases.empty()) return;
  const LeaseId lease = leases[random_.below(leases.size())];
  before_flip_ = threads();
  if (!system_.view().command(wire::LeaseRevoke{.lease = lease})) return;
  revoked_at_ = clock_.now();
  open_revocation_ = {.lease = lease, .window = kind, .flipped = {}, .clocks = {}};
}

/// Reads the clocks of the open revocation. The broker lists a lease until its slot is used again.
Result<void> HostileRun::read_clocks() {
  if (!open_revocation_) return {};
  const auto leases = TRY(system_.view().leases());
  const auto found = std::ranges::find(leases, open_revocation_->lease, &wire::LeaseView::lease);
  if (found != leases.end()) {
    open_revocation_->flipped = {found->times.revoked_boottime_ns};
    open_revocation_->clocks = found->clocks;
    const auto& clocks = found->clocks;
    const bool is_complete = clocks.quiet_ns >= 0 && clocks.error_ns >= 0;
    if (!is_complete && clock_.now() - revoked_at_ < kClocksTimeout) return {};
  }
  open_revocation_->threads = threads_between(before_flip_, threads());
  record.revocations.push_back(*std::move(open_revocation_));
  open_revocation_.reset();
  return {};
}

// -------------------------------------------------------------------------------------------- end

Result<void> HostileRun::finish() {
  serves_ = false;
  record.http_requests = neighbour_->requests();
  neighbour_.reset();
  const TimePoint deadline = clock_.now() + kTextTimeout;
  while (honest_.any_running()) {
    TRY(poll());
    if (clock_.now() > deadline) return fail(Errc::TimedOut, "an honest text does not end");
  }
  const TimePoint free_deadline = clock_.now() + kFreeTimeout;
  while (!record.all_memory_free && clock_.now() < free_deadline) {
    const wire::StatusView status = TRY(system_.view().status());
    record.all_memory_free = status.free_bytes == status.capacity_bytes;
    TRY(poll_for(kPollInterval));
  }
  const auto& programs = system_.programs();
  const std::string log =
      TRY(read_text_file(programs.log_path(std::string("worker-") + kHostileWorker), kMaxLogBytes));
  record.worker_kept_link = log.find("broker disconnected") == std::string::npos;
  return {};
}

Result<void> run_calm(HostileRun& run) {
  TRY(run.start());
  return run.undisturbed();
}

Result<void> run_attacks(HostileRun& run) {
  TRY(run.attack_in_windows());
  return run.finish();
}

}  // namespace

Result<HostileRecord> run_hostile(const HostileSettings& settings, const demo::Poller& poller) {
  const auto pause = [&poller](Duration at_most) -> Result<void> {
    TRY(poller.wait({}, at_most));
    return {};
  };
  const StateDisk state = TRY(StateDisk::create());
  auto system =
      TRY(LocalSystem::create({.name = "hostile", .bin_dir = settings.bin_dir, .pause = pause}));
  HostileRun run(settings, poller, *system, state);
  const auto calm = run_calm(run);
  const auto attacked = calm ? run_attacks(run) : Result<void>{};
  if (poller.interrupted()) return fail(Errc::TimedOut, "interrupted");
  if (!attacked) run.record.failure = attacked.error().detail;
  const std::string logs = system->programs().directory();
  if (!calm || !demo::all_ok(judge_hostile(run.record))) {
    system->keep_directory();
    std::cerr << "Logs: " << logs << '\n';
  }
  if (!calm) return std::unexpected(calm.error());
  return std::move(run.record);
}

}  // namespace leasehold::soak
