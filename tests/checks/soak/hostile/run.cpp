#include "tests/checks/soak/hostile/run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "common/machine/text_file.hpp"
#include "common/random.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/system.hpp"
#include "tests/checks/soak/hostile/attackers.hpp"
#include "tests/checks/soak/hostile/host.hpp"
#include "tests/checks/soak/hostile/http_neighbour.hpp"

namespace leasehold::soak {
namespace {

namespace fs = std::filesystem;

constexpr Duration kStartTimeout = std::chrono::seconds(60);
constexpr Duration kTextTimeout = std::chrono::minutes(3);
/// Time for attackers to end after their window.
constexpr Duration kEndTimeout = std::chrono::seconds(30);
constexpr Duration kFreeTimeout = std::chrono::seconds(60);
constexpr Duration kWarmUp = std::chrono::seconds(2);
/// On a busy machine some attacks need longer than the run was to last. In seconds.
constexpr std::uint32_t kLongerSeconds = 40, kLongerStep = 4;
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
/// A lease is revoked only when its text has this many tokens and lacks this many, so that a
/// request is running.
constexpr std::size_t kTokensAround = 20;

/// Private resident memory of a process; 0 if it has ended. Source: proc(5), status.
std::uint64_t private_bytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

int nice_of(const runner::ProcessSlot& process) {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(process.pid()));
}

ServerThreads threads_between(const ServerThreads& early, const ServerThreads& late) {
  return {.broker = bench::run_queues_between(early.broker, late.broker),
          .worker = bench::run_queues_between(early.worker, late.worker)};
}

class HostileRun {
 public:
  HostileRun(const HostileSettings& settings, runner::System& system, const StateDisk& state)
      : settings_(settings),
        system_(system),
        state_(state),
        users_(Users::create(system.programs())),
        random_(settings.seed) {}

  Result<void> start();
  Result<void> undisturbed();
  Result<void> attack_in_windows();
  Result<void> finish();
  void see_memory_and_disk();

  HostileRecord record;

 private:
  Result<void> poll_for(Duration duration);
  Result<void> window(WindowKind kind, Duration duration);
  Result<Attackers> start_attackers(WindowKind kind, Duration duration);
  Result<void> await_end(Attackers& attackers, AttackerCpu& cpu, Duration duration);
  Result<void> admit();
  Result<void> make_keys();
  Result<std::string> key_of(const std::string& tenant);
  Result<void> await_texts(const char* missing);
  void revoke_one(WindowKind kind);
  Result<void> read_clocks();
  std::vector<LeaseId> leases_mid_text();
  ServerThreads threads();

  const HostileSettings& settings_;
  runner::System& system_;
  const StateDisk& state_;
  Users users_;
  std::optional<HttpNeighbour> neighbour_;
  SeededRandom random_;
  const SystemClock& clock_ = system_.clock();
  bool is_started_ = false;
  bool attacked_ = false;
  TimePoint sizes_seen_;
  TimePoint revoked_at_;
  /// The revocation whose clocks have not ended.
  std::optional<HonestRevocation> open_revocation_;
  ServerThreads before_flip_;
};

Result<void> HostileRun::start() {
  std::filesystem::permissions(system_.programs().directory(),
                               std::filesystem::perms(0755));  // other users reach the sockets
  system_.add_worker(
      kHostileWorker, settings_.model_path,
      {"--threads", "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us),
       "--token-budget", "64", "--http", http_socket_of(system_.programs())});
  for (std::uint32_t i = 0; i < settings_.honest; ++i)
    system_.add_tenant({.name = fmt::format("honest-{}", i),
                        .prompt = fmt::format("Once upon a time there were {} friends", i + 2),
                        .seed = settings_.seed + i,
                        .max_tokens = settings_.max_tokens,
                        .uid = users_.honest(i)});
  TRY(system_.await_ready(kStartTimeout));
  record.state_disk.size_bytes = state_.size_bytes();
  record.broker_nice = nice_of(system_.broker());
  record.worker_nice = nice_of(system_.workers().front().process);
  record.has_other_users = users_.are_others();
  record.expected_attacks = expected_attacks(settings_, users_);
  TRY(admit());
  is_started_ = true;
  return make_keys();
}

/// Attackers read their API keys from files, because other users can read command lines.
Result<void> HostileRun::make_keys() {
  for (std::uint32_t i = 0; i < settings_.attackers; ++i) {
    std::ofstream file(api_key_file_of(system_.programs(), i));
    file << TRY(key_of(hostile_tenant_name(i)));
  }
  neighbour_.emplace(http_socket_of(system_.programs()),
                     TRY(key_of(system_.tenants().front().spec.name)));
  return {};
}

Result<std::string> HostileRun::key_of(const std::string& tenant) {
  std::string key = mint_api_key();
  BrokerView* const broker = TRY(system_.connected());
  TRY(broker->command(wire::KeyCreate{.tenant = {tenant}, .hash = hash_of_api_key(key)}));
  return key;
}

Result<void> HostileRun::admit() {
  BrokerView& broker = *TRY(system_.connected());
  for (const runner::Tenant& tenant : system_.tenants()) {
    TRY(broker.command(wire::TenantAdmit{.tenant = {tenant.spec.name},
                                         .max_concurrent = 2,
                                         .rebinds_per_minute = 6'000,
                                         .uid = tenant.spec.uid}));
  }
  for (std::uint32_t i = 0; i < settings_.attackers; ++i) {
    TRY(broker.command(wire::TenantAdmit{.tenant = {hostile_tenant_name(i)},
                                         .max_concurrent = kHostileConcurrent,
                                         .max_blocks = kHostileBlocks,
                                         .uid = users_.tenant(i)}));
  }
  return {};
}

Result<void> HostileRun::undisturbed() {
  for (runner::Tenant& tenant : system_.tenants()) TRY(system_.start_tenant(tenant));
  TRY(await_texts("the undisturbed texts do not end"));
  auto& texts = system_.record().texts;
  for (const runner::Text& text : texts) {
    if (!text.record.completed) {
      return fail(Errc::ConnectionLost, fmt::format("{} without attackers: {}", text.tenant,
                                                    text.record.failed.value_or("no typed end")));
    }
  }
  system_.keep_undisturbed();
  texts.clear();
  return {};
}

Result<void> HostileRun::await_texts(const char* missing) {
  return system_.poll_until(
      [&] { return runner::missing_unless(!system_.any_tenant_running(), missing); }, kTextTimeout,
      runner::Starts::NoTenants);
}

// ---------------------------------------------------------------------------------------- windows

Result<void> HostileRun::attack_in_windows() {
  TRY(poll_for(kPause));
  attacked_ = true;
  Attackers first = TRY(start_attackers(WindowKind::Hostile, kWarmUp));
  TRY(poll_for(kWarmUp));
  TRY(await_end(first, record.hostile, kWarmUp));
  std::uint32_t wanted = settings_.seconds;
  for (std::uint32_t done = 0; done < wanted;) {
    const std::uint32_t seconds = std::min(settings_.window_seconds, wanted - done);
    const Duration attack = std::chrono::seconds(seconds);
    for (const WindowKind kind : {WindowKind::Calm, WindowKind::Control, WindowKind::Hostile})
      TRY(window(kind, attack));
    done += seconds;
    std::cerr << fmt::format("hostile: {} of {} s of attack\n", done, wanted);
    const bool may_last_longer = wanted < settings_.seconds + kLongerSeconds;
    if (done == wanted && may_last_longer && !record.was_every_attack_made()) wanted += kLongerStep;
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
    TRY(system_.poll(runner::Starts::Tenants));
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
    TRY(system_.poll(runner::Starts::Tenants));
    if (clock_.now() > deadline) return fail(Errc::TimedOut, "an attacker does not end");
  }
  if (attackers.cpu_s() == 0) return {};
  cpu.cpu_s += attackers.cpu_s();
  cpu.window_s += std::chrono::duration<double>(duration).count();
  return {};
}

Result<void> HostileRun::poll_for(Duration duration) {
  for (const TimePoint end = clock_.now() + duration; clock_.now() < end;)
    TRY(system_.poll(runner::Starts::Tenants));
  return {};
}

void HostileRun::see_memory_and_disk() {
  if (!is_started_ || clock_.now() - sizes_seen_ < kSizesInterval) return;
  sizes_seen_ = clock_.now();
  record.broker.see(private_bytes(system_.broker().pid()), attacked_);
  record.worker.see(private_bytes(system_.workers().front().process.pid()), attacked_);
  record.state_disk.peak_bytes = std::max(record.state_disk.peak_bytes, state_.used_bytes());
}

ServerThreads HostileRun::threads() {
  return {.broker = bench::run_queues_of(system_.broker().pid()),
          .worker = bench::run_queues_of(system_.workers().front().process.pid())};
}

// ------------------------------------------------------------------------------------ revocations

/// The leases of tenants that are in the middle of a text.
std::vector<LeaseId> HostileRun::leases_mid_text() {
  std::vector<LeaseId> leases;
  for (const runner::Tenant& tenant : system_.tenants()) {
    const runner::TenantRecord& text = tenant.record;
    const bool is_mid_text = tenant.process.has_process() && !text.leases.empty() &&
                             text.tokens.size() >= kTokensAround &&
                             text.tokens.size() + kTokensAround <= settings_.max_tokens &&
                             text.leases.size() == text.revocations.size() + 1 &&
                             !text.reported.empty() && text.reported.back().event == "submitted";
    if (is_mid_text) leases.push_back(text.leases.back());
  }
  return leases;
}

/// Revokes the lease of a random honest tenant. A lease that ended by itself meanwhile is not
/// counted.
void HostileRun::revoke_one(WindowKind kind) {
  if (open_revocation_ || clock_.now() - revoked_at_ < kRevokeInterval) return;
  const auto leases = leases_mid_text();
  if (leases.empty()) return;
  const LeaseId lease = leases[random_.below(leases.size())];
  before_flip_ = threads();
  BrokerView* const broker = system_.view();
  if (broker == nullptr || !broker->command(wire::LeaseRevoke{.lease = lease})) return;
  revoked_at_ = clock_.now();
  open_revocation_ = {.lease = lease, .window = kind, .flipped = {}, .clocks = {}};
}

/// Reads the clocks of the open revocation. The broker lists a lease until its slot is used again.
Result<void> HostileRun::read_clocks() {
  if (!open_revocation_) return {};
  BrokerView* const broker = TRY(system_.connected());
  const auto leases = TRY(broker->leases());
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
  record.http_requests = neighbour_->requests();
  neighbour_.reset();
  TRY(await_texts("an honest text does not end"));
  const TimePoint free_deadline = clock_.now() + kFreeTimeout;
  do {
    TRY(system_.poll(runner::Starts::NoTenants));
    BrokerView* const broker = TRY(system_.connected());
    system_.record().last = TRY(broker->status());
  } while (!runner::is_all_free(*system_.record().last) && clock_.now() < free_deadline);
  const std::string log = TRY(read_text_file(
      system_.programs().log_path(std::string("worker-") + kHostileWorker), kMaxLogBytes));
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

Result<HostileRecord> run_hostile(const HostileSettings& settings, const runner::Poller& poller,
                                  const std::filesystem::path& directory) {
  const StateDisk state = TRY(StateDisk::create());
  HostileRun* running = nullptr;
  runner::System system(
      {.bin_dir = settings.bin_dir,
       .directory = directory,
       .broker_arguments = {"--capacity", "512MiB", "--socket-mode", "0666", "--state-dir",
                            state.path(), "--audit-records", "1000"},
       .server_nice = kServerNice,
       .on_poll = [&running](runner::Starts) -> Result<void> {
         running->see_memory_and_disk();
         return {};
       }},
      poller);
  HostileRun run(settings, system, state);
  running = &run;
  TRY(run_calm(run));
  const auto attacked = run_attacks(run);
  if (poller.interrupted()) return fail(Errc::TimedOut, "interrupted");
  if (!attacked) run.record.failure = attacked.error().detail;
  static_cast<runner::Record&>(run.record) = std::move(system.record());
  for (runner::Text& text : run.record.texts)
    if (!text.record.completed && !text.record.failed) text.record.failed = "no typed end";
  return std::move(run.record);
}

}  // namespace leasehold::soak
