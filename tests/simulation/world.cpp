#include "tests/simulation/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/server/pulse.hpp"
#include "tests/simulation/agent_client.hpp"

namespace leasehold::simulation {
namespace {

constexpr int kSteps = 130;
constexpr int kIdleRounds = 150;               // a serving worker never becomes idle
constexpr int kSettleRounds = 40;              // worker segments are read while other workers unmap
constexpr int kStepsAfterFault = 280;          // consequences take many steps
constexpr std::uint32_t kMovesMemory = 6;      // one schedule in 6 begins with moving memory
constexpr std::uint32_t kJoinsCell = 3;        // one schedule in 3 has an agent of a cell
constexpr std::uint32_t kHasAdapters = 2;      // one schedule in 2 without a card
constexpr std::uint32_t kReplacesAdapter = 4;  // one in 4 of these
constexpr std::uint32_t kFinishesTexts = 8;    // one schedule in 8 goes on until all texts end
constexpr std::string_view kWorkerNames[] = {"w0", "w1"};

/// Labels reached only by a worker whose broker was restarted.
bool is_on_reconnect_path(FaultSite site) {
  return site == FaultSite::WorkerResumed || site == FaultSite::WorkerRedelivered;
}

}  // namespace

World::World(std::uint64_t seed, PlantedBugs planted_bugs, Coverage& coverage, MemoryKind memory)
    : machine_(seed),
      judge_(machine_, coverage, kExtents, kSwapExtents),
      adapter_judge_(persistent_.disk, coverage),
      deps_{machine_, judge_, coverage, planted_bugs, persistent_, &adapter_judge_} {
  persistent_.store = !machine_.one_in(3);
  if (memory == MemoryKind::Card || (memory == MemoryKind::Either && seed % 3 == 0)) {
    begin_card();
  }
  persistent_.has_adapters = !card_ && machine_.one_in(kHasAdapters);
  persistent_.broker = &machine_.spawn<Broker>(deps_);
  running_schedule.seed = seed;
  running_schedule.machine = &machine_;
  ++running_schedule.schedule;
}

Worker& World::spawn_worker(std::size_t index) {
  Worker& worker = machine_.spawn<Worker>(deps_, std::string(kWorkerNames[index]));
  workers_[index] = &worker;
  return worker;
}

Tenant& World::spawn_tenant(std::size_t index) {
  Tenant& tenant = machine_.spawn<Tenant>(
      deps_, std::string(kTenantNames[index]), [this](const std::string& name) {
        Worker* worker = workers_[name == kWorkerNames[0] ? 0 : 1];
        return worker->worker_name() == name ? worker : nullptr;
      });
  tenants_[index] = &tenant;
  return tenant;
}

Fault World::choose_fault() {
  const FaultColumn column = column_at(machine_.pick(kColumnCount));
  return {.site = column.site,
          .action = column.action,
          .arrivals_left = static_cast<int>(1 + machine_.pick(2))};
}

/// Some schedules begin with every process starting up, most with a running service.
void World::begin() {
  if (machine_.one_in(kJoinsCell)) cell_agent_.join();
  for (std::size_t index = 0; index < kTenants; ++index) {
    if (!cell_agent_.is_of_cell(kTenantNames[index]))
      broker().call(wire::TenantAdmit{
          .tenant = {std::string(kTenantNames[index])},
          .max_blocks = 16 + machine_.pick(32),
          .tier = index == kScavenger ? wire::Tier::Scavenger : wire::Tier::Standard,
          .ttl_ms = 3000});
    spawn_tenant(index);
  }
  if (persistent_.has_adapters) adapter_operator_.begin();
  const Fault fault = choose_fault();
  const bool while_loading = fault.site == FaultSite::WorkerWeightsFilled;
  const bool at_work = machine_.pick(8) < 5 && !while_loading;
  if (!at_work) machine_.fault = fault;
  for (std::size_t index = 0; index < kWorkers; ++index) spawn_worker(index);
  if (!at_work) return;
  run_until_idle(kIdleRounds);
  for (Worker* worker : workers_) worker->poll_timers();
  run_until_idle(kIdleRounds);
  change_policy(kGuaranteed);  // a reserve needs a worker
  if (!card_ && machine_.one_in(kMovesMemory)) move_memory();
  machine_.fault = fault;
  for (Tenant* tenant : tenants_) {
    if (tenant->is_running()) tenant->act();
  }
  run_until_idle(static_cast<int>(machine_.pick(90)));  // sometimes stops in the middle of decoding
  if (persistent_.has_adapters && machine_.one_in(kReplacesAdapter))
    adapter_operator_.replace_while_published();
  const bool at_unmap = machine_.fault->site == FaultSite::WorkerExtentsUnmapped ||
                        (card_ && machine_.fault->site == FaultSite::BrokerScrubbed);
  // A worker with a card must settle first.
  for (int round = card_ ? 3 : 1; at_unmap && round > 0; --round) revoke_some_leases();
  if (machine_.one_in(6) || is_on_reconnect_path(machine_.fault->site)) restart_under_load();
}

/// Kills or replaces a worker that generates texts, so that their memory moves when the fault
/// comes.
void World::move_memory() {
  for (const std::uint32_t rounds : {std::uint32_t{kIdleRounds}, machine_.pick(60)}) {
    for (Tenant* tenant : tenants_) tenant->act();
    run_until_idle(static_cast<int>(rounds));
  }
  const std::size_t old = machine_.pick(kWorkers);
  const bool is_replaced = machine_.one_in(2);
  is_replaced ? replace_worker(old) : kill_worker(old);
  for (int round = 0; round < 3; ++round) {
    run_until_idle(static_cast<int>(machine_.pick(is_replaced ? 40 : kIdleRounds)));
    if (!broker().is_busy()) broker().poll_timers();  // its gates are quiet by now
    if (round == 0 && !is_replaced) spawn_worker(old);
    workers_[old]->poll_timers();
  }
}

void World::kill_worker(std::size_t index) {
  machine_.kill(*workers_[index]);
  exits_.push_back(workers_[index]);
}

/// A serving worker unmaps only memory of revoked leases.
void World::revoke_some_leases() {
  for (int i = 0; i < 2; ++i) broker().call(wire::LeaseRevoke{.lease = any_lease()});
  run_until_idle(static_cast<int>(machine_.pick(40)));
  if (!broker().is_running() || broker().is_busy()) return;
  broker().poll_timers();  // its gates are quiet by now
  run_until_idle(static_cast<int>(machine_.pick(40)));
}

/// Restarts the broker while requests run.
void World::restart_under_load() {
  const bool on_reconnect_path = is_on_reconnect_path(machine_.fault->site);
  if (broker().is_running()) machine_.kill(broker());
  if (broker().is_dead()) restart_broker();
  for (int round = on_reconnect_path ? 3 : 1; round > 0; --round) {
    run_until_idle(static_cast<int>(machine_.pick(40)));
    machine_.clock.advance(std::chrono::milliseconds(200));  // they retry periodically
    for (Worker* worker : workers_) {
      if (worker->is_running()) worker->poll_timers();
    }
  }
}

void World::run() {
  begin();
  const bool already_triggered = machine_.fault->triggered != nullptr;
  const bool more =
      already_triggered && (card_ || machine_.one_in(2));  // many recover by themselves
  for (int left = more ? kStepsAfterFault : kSteps; left > 0; --left) {
    const bool triggered = machine_.fault->triggered != nullptr;
    take_step();
    if (!triggered && machine_.fault->triggered != nullptr) left = kStepsAfterFault;
    if (triggered && left == kStepsAfterFault / 2) recover();
  }
  settle();
  release_all_quarantined();
  judge_.at_rest();
  if (!card_ && machine_.one_in(kFinishesTexts)) finish_texts();
  const Fault& fault = *machine_.fault;
  if (fault.triggered != nullptr) deps_.coverage.triggered({fault.site, fault.action});
}

void World::take_step() {
  ++machine_.step;
  if (card_ && machine_.one_in(2)) run_card();
  // Few disturbances until the fault has triggered, so that labels late in a request are reached;
  // many afterwards.
  const std::uint32_t all = machine_.fault->triggered == nullptr ? 96 : 100;
  for (int tries = 0; tries < 4; ++tries) {
    const std::uint32_t what = machine_.pick(all);
    const bool done = what < 29   ? run_thread()
                      : what < 48 ? machine_.deliver()
                      : what < 67 ? run_broker()
                      : what < 77 ? run_tenant()
                      : what < 80 ? run_operator()
                      : what < 83 ? advance_clock()
                      : what < 86 ? drain_stores()
                      : what < 89 ? notice_exit()
                      : what < 92 ? poll_timers()
                      : what < 95 ? deliver_signals()
                                  : disturb_random_process();
    if (done) return;
  }
}

bool World::run_thread() {
  Worker& worker = *workers_[machine_.pick(kWorkers)];
  if (!worker.is_running()) return false;
  const std::uint32_t first = machine_.pick(Worker::kThreads);
  return worker.run(first) || worker.run((first + 1) % Worker::kThreads);
}

bool World::run_broker() {
  if (!broker().is_running()) return false;
  if (card_ && !broker().is_busy() && broker().agent_client()->run_posted()) return true;
  if ((!broker().is_busy() || machine_.one_in(4)) && broker().scrub()) return true;
  if (!broker().is_busy()) return false;
  broker().run();
  return true;
}

bool World::run_tenant() {
  Tenant& tenant = *tenants_[machine_.pick(kTenants)];
  if (!tenant.is_running()) return false;
  tenant.act();
  return true;
}

bool World::advance_clock() {
  const auto due = broker().is_dead() ? std::nullopt : broker().next_due();
  if (due && machine_.one_in(3)) {
    const Duration left = *due - machine_.clock.now();
    if (left > Duration{0}) machine_.clock.advance(left);
    return true;
  }
  machine_.clock.advance(std::chrono::milliseconds(machine_.pick(400)));
  return true;
}

bool World::drain_stores() {
  Worker& worker = *workers_[machine_.pick(kWorkers)];
  return worker.drain(0) || worker.drain(1);
}

void World::resume(Process& process) {
  process.life = Life::Running;
  const Duration gap = machine_.clock.now() - process.stopped_at;
  if (&process == &broker() && gap > Pulse::kStallThreshold) broker().stalled(gap);
  while (!process.unfinished.empty() && process.is_running()) {
    const Message rest = std::move(process.unfinished.front());
    process.unfinished.pop_front();
    rest();
  }
}

/// Delivers SIGKILL or SIGCONT.
bool World::deliver_signals() {
  bool signalled = false;
  for (const auto& process : machine_.processes()) {
    if (process->kill_pending) {
      machine_.kill(*process);
      if (process->role() == Role::Worker || process->role() == Role::Tenant)
        exits_.push_back(process.get());
      if (machine_.one_in(2)) notice_exit();  // before its closed sockets are seen
      signalled = true;
    } else if (process->life == Life::Stopped && machine_.one_in(2)) {
      resume(*process);
      signalled = true;
    }
  }
  return signalled;
}

bool World::notice_exit() {
  if (exits_.empty() || !broker().is_running() || broker().is_busy()) return false;
  const Process* exited = exits_.front();
  exits_.pop_front();
  broker().process_exited(*exited);
  return true;
}

/// Restarts dead processes, continues stopped ones, and gets the service working again.
void World::recover() {
  restart_dead_processes();
  deliver_signals();
  for (int round = 0; round < 4; ++round) {
    for (Worker* worker : workers_) {
      if (worker->is_running()) worker->poll_timers();
    }
    for (Tenant* tenant : tenants_) {
      if (tenant->is_running()) tenant->act();
    }
    run_until_idle(30);
  }
  if (card_) lend_again();
}

/// As the service manager does when the broker dies.
void World::restart_broker() {
  Broker& before = broker();
  persistent_.broker = &machine_.spawn<Broker>(deps_, before);
}

bool World::is_any_worker_reconnecting() const {
  return std::ranges::any_of(workers_, [](const Worker* worker) {
    return worker->is_running() && worker->is_reconnecting();
  });
}

/// Restarts one dead process; now and then breaks a worker's socket or kills a process outside any
/// fault point.
bool World::disturb_random_process() {
  if (broker().is_dead()) {
    restart_broker();
    return true;
  }
  const std::size_t index = machine_.pick(kWorkers);
  const std::size_t tenant = machine_.pick(kTenants);
  if (workers_[index]->is_dead()) return spawn_worker(index).is_running();
  if (tenants_[tenant]->is_dead()) return spawn_tenant(tenant).is_running();
  switch (machine_.pick(7)) {
    case 0:
      workers_[index]->lose_socket();
      return true;
    case 1:
      workers_[index]->kill_pending = true;
      return true;
    case 2:
      tenants_[tenant]->kill_pending = true;
      return true;
    case 3:
      broker().kill_pending = true;
      return true;
    default:
      return false;
  }
}

bool World::poll_timers() {
  if (broker().is_running() && !broker().is_busy() && machine_.one_in(2)) {
    broker().poll_timers();
    return true;
  }
  Worker& worker = *workers_[machine_.pick(kWorkers)];
  if (!worker.is_running()) return false;
  worker.poll_timers();
  return true;
}

void World::run_until_idle(int most) {
  for (int i = 0, idle = 0; i < most && idle < 2; ++i) {
    ++machine_.step;
    bool moved = machine_.deliver();
    while (run_broker()) moved = true;
    moved = notice_exit() || moved;
    for (Worker* worker : workers_) {
      if (!worker->is_running()) continue;
      for (std::uint32_t thread = 0; thread < Worker::kThreads; ++thread) {
        moved = worker->run(thread) || moved;
        while (worker->drain(thread)) moved = true;
      }
    }
    if (card_) moved = run_card_until_idle() || moved;
    idle = moved ? 0 : idle + 1;
  }
}

/// Starts nothing new; stopped processes are continued, or the ladder kills them.
void World::settle() {
  if (machine_.fault->triggered == nullptr) machine_.fault->arrivals_left = INT32_MAX;
  // A driver is polled many times, and the load of an adapter waits for memory for a minute.
  const int rounds = card_ || persistent_.has_adapters ? 4 * kSettleRounds : kSettleRounds;
  for (int round = 0; round < rounds; ++round) {
    if (broker().is_dead()) restart_broker();
    run_until_idle(kIdleRounds);
    broker().poll_timers();
    for (Worker* worker : workers_) {
      if (worker->is_running()) worker->poll_timers();
    }
    deliver_signals();
    if (broker().is_dead()) continue;
    if (broker().life == Life::Stopped) resume(broker());
    run_until_idle(kIdleRounds);
    if (!broker().has_pending_work() && broker().is_running() && !is_any_worker_reconnecting())
      return;
    const auto due = broker().next_due();
    const Duration left = due ? *due - machine_.clock.now() : std::chrono::seconds(10);
    machine_.clock.advance(std::max(left, Duration{1}));
  }
  violated("the machine did not become idle; the broker waits for" + broker().pending_work());
}

}  // namespace leasehold::simulation
