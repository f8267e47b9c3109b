// A random walk: the broker's decisions and the workers' real schedulers, with messages that arrive
// late. No admission exceeds the limit that the workers could have heard of, and no request
// starves.
#include <catch2/catch.hpp>

#include <deque>
#include <optional>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/unit/broker/world.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {
namespace {

/// A quota, or a grant of this lease: on the wire both come on one connection, in order.
using ToWorker = std::variant<wire::TenantQuota, LeaseId>;

struct WalkWorker {
  AttachmentId id;
  ConnectionId connection;
  std::string name;
  std::unique_ptr<Scheduler> scheduler;
  std::deque<ToWorker> inbox{};
  std::deque<wire::TenantUsage> outbox{};
  bool resumed = true;
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    admit();
    for (int i = 0; i < 3; ++i) attach();
    for (int step = 0; step < 600; ++step) act();
    finish();
  }

  int most_running = 0;
  int rounds = 0;

 private:
  void act() {
    switch (random_.below(14)) {
      case 0:
        return admit();
      case 1:
        return random_.below(4) == 0 ? lose_worker() : attach();
      case 2:
        return acquire();
      case 3:
        return random_.below(3) == 0 ? revoke() : acquire();
      case 4:
        return random_.below(20) == 0 ? restart() : resume_one();
      case 5:
      case 6:
        return submit();
      case 7:
      case 8:
        return deliver_to(any_worker());
      case 9:
      case 10:
        return deliver_from(any_worker());
      default:
        return tick(any_worker());
    }
  }

  WalkWorker& any_worker() { return *workers_.at(random_.below(workers_.size())); }

  void admit() {
    limit_ = 1 + static_cast<std::uint32_t>(random_.below(4));
    heard_ = std::max(heard_, limit_);
    tokens_per_minute_ = 1 + static_cast<std::uint32_t>(random_.below(600));
    world_.call(kOperator, wire::TenantAdmit{.tenant = {"a"},
                                             .max_concurrent = limit_,
                                             .ttl_ms = 3'600'000,
                                             .rates = {.tokens_per_minute = tokens_per_minute_}});
    collect();
  }

  void attach() {
    if (workers_.size() >= 4) return;
    auto worker = std::make_unique<WalkWorker>();
    worker->name = "w" + std::to_string(++names_);
    worker->connection = ConnectionId{100 + names_};
    worker->id = world_.attach_worker(worker->name, worker->connection);
    worker->scheduler =
        std::make_unique<Scheduler>(SchedulerLimits{.max_context = 256, .record_blocks = 1});
    workers_.push_back(std::move(worker));
  }

  void lose_worker() {
    if (workers_.size() < 3) return;
    const auto which = static_cast<std::ptrdiff_t>(random_.below(workers_.size()));
    const std::unique_ptr<WalkWorker> lost = std::move(workers_[which]);
    workers_.erase(workers_.begin() + which);
    world_.post(ConnectionClosed{lost->connection});
    world_.post(WorkerExited{exit_of(lost->id)});
    collect();
  }

  void acquire() {
    WalkWorker& worker = any_worker();
    if (!worker.resumed || leases_on(worker).size() >= 2) return;
    const CallId call = world_.call(
        kHolder, wire::LeaseAcquire{.tenant = {"a"}, .blocks = 8, .worker = worker.name});
    const auto lease = world_.answer<wire::LeaseAcquired>(call).lease;
    collect();  // the quota precedes the grant
    worker.inbox.push_back(lease);
  }

  void revoke() {
    const auto leases = leases_on(any_worker());
    if (leases.empty()) return;
    world_.revoke(leases.front());
    collect();
  }

  /// All connections end. Workers still read what was sent to them; their reports are lost.
  void restart() {
    world_.restart(std::chrono::hours(1));
    for (const auto& worker : workers_) {
      while (!worker->inbox.empty()) deliver_to(*worker);
      worker->outbox.clear();
      worker->resumed = false;
    }
    world_.forget_effects();
  }

  void resume_one() {
    for (const auto& worker : workers_) {
      if (!worker->resumed) return resume(*worker);
    }
  }

  void resume(WalkWorker& worker) {
    worker.connection = ConnectionId{100 + ++names_};
    worker.resumed = true;
    world_.call(worker.connection, wire::WorkerAttach{.worker = worker.name, .resume = worker.id});
    for (const LeaseId lease : world_.state.leases.leases_on(worker.id)) {
      world_.call(worker.connection,
                  wire::LeaseRedeliver{.lease = lease, .extents = world_.record(lease).extents});
    }
    world_.call(worker.connection,
                wire::WorkerReady{.address = "/run/w", .kv_block_size_bytes = kTestBlockBytes});
    collect();
  }

  void submit() {
    WalkWorker& worker = any_worker();
    std::vector<LeaseId> leases = worker.scheduler->tenancies().ids();
    std::erase_if(leases, [this](LeaseId lease) { return !is_live(lease); });  // as the engine does
    if (leases.empty() || worker.scheduler->tenancies().waiting_count() > 6) return;
    PromptRequest request{.tenant = {"a"},
                          .lease = leases.at(random_.below(leases.size())),
                          .engine_request_id = RequestId{"r" + std::to_string(++requests_)},
                          .prompt = std::vector<TokenId>(4, 1),
                          .max_emitted_tokens = 1 + static_cast<std::uint32_t>(random_.below(5))};
    REQUIRE(worker.scheduler->submit(std::move(request)));
  }

  void deliver_to(WalkWorker& worker) {
    if (worker.inbox.empty()) return;
    const ToWorker message = std::move(worker.inbox.front());
    worker.inbox.pop_front();
    if (const auto* quota = std::get_if<wire::TenantQuota>(&message)) {
      worker.scheduler->set_quota(*quota);
    } else {
      add_lease(worker, std::get<LeaseId>(message));
    }
    forget_old_limits();
  }

  void deliver_from(WalkWorker& worker) {
    if (worker.outbox.empty()) return;
    world_.post(UsageReported{worker.connection, worker.outbox.front()});
    worker.outbox.pop_front();
    collect();
  }

  void tick(WalkWorker& worker) {
    for (const LeaseId lease : worker.scheduler->tenancies().ids()) {
      if (!is_live(lease)) worker.scheduler->end_lease(lease, {});
    }
    const std::uint32_t before = running_everywhere();
    worker.scheduler->admit(TimePoint{1});
    const StepPlan plan = worker.scheduler->plan();
    const std::uint32_t admitted = running_everywhere();
    REQUIRE(admitted <= std::max(before, heard_));
    most_running = std::max(most_running, static_cast<int>(admitted));
    for (const PlannedRows& part : plan.parts) {
      worker.scheduler->commit(part,
                               std::vector<DrawnToken>(part.wants_token ? 1 : 0, {.sampled = {2}}));
    }
    worker.scheduler->take_events();
    for (wire::TenantUsage& usage : worker.scheduler->tenancies().take_usage()) {
      if (worker.resumed) worker.outbox.push_back(std::move(usage));
    }
  }

  /// Every message arrives and every worker goes on: all requests end.
  void finish() {
    while (std::ranges::any_of(workers_, [](const auto& each) { return !each->resumed; }))
      resume_one();
    const auto has_work = [](const auto& each) { return each->scheduler->has_work(); };
    for (; std::ranges::any_of(workers_, has_work); ++rounds) {
      REQUIRE(rounds < 2000);
      for (const auto& worker : workers_) {
        while (!worker->inbox.empty()) deliver_to(*worker);
        tick(*worker);
        while (!worker->outbox.empty()) deliver_from(*worker);
      }
      const bool quiet = std::ranges::all_of(
          workers_, [](const auto& each) { return each->inbox.empty() && each->outbox.empty(); });
      if (quiet && running_everywhere() > limit_) ++over_limit_;
    }
    REQUIRE(over_limit_ <= 6);  // what ran when the limit was lowered has at most 5 tokens left
  }

  void add_lease(WalkWorker& worker, LeaseId lease) {
    if (!is_live(lease)) return;
    worker.scheduler->tenancies().add({.lease = lease, .tenant = {"a"}});
    worker.scheduler->blocks().add_extent(lease, ExtentId{lease.slot + 1ull}, 64);
  }

  /// Moves quotas that the broker sent into the workers' inboxes.
  void collect() {
    for (const auto& sent : world_.performed<effect::SendQuota>()) {
      for (const auto& worker : workers_) {
        if (worker->id == sent.worker) worker->inbox.push_back(sent.quota);
      }
    }
    world_.forget_effects();
    forget_old_limits();
    check_token_parts();
  }

  /// The parts add up to the limit, but for a part of 1 where there would be none.
  void check_token_parts() {
    std::uint64_t all = 0;
    std::uint64_t parts_of_one = 0;
    for (const auto& [worker, share] : world_.state.tenants.find({"a"})->shares) {
      if (!share.reachable) continue;
      REQUIRE(share.sent.rates.tokens_per_minute.value_or(0) > 0);
      all += *share.sent.rates.tokens_per_minute;
      parts_of_one += *share.sent.rates.tokens_per_minute == 1 ? 1 : 0;
    }
    REQUIRE(all <= tokens_per_minute_ + parts_of_one);
  }

  void forget_old_limits() {
    const bool all_heard = std::ranges::all_of(
        workers_, [](const auto& each) { return each->inbox.empty() && each->resumed; });
    if (all_heard) heard_ = limit_;
  }

  bool is_live(LeaseId lease) {
    const LeaseRecord* record = world_.state.leases.find_open(lease);
    return record != nullptr && record->is(LeaseState::Live);
  }
  std::vector<LeaseId> leases_on(const WalkWorker& worker) {
    std::vector<LeaseId> leases = world_.state.leases.leases_on(worker.id);
    std::erase_if(leases, [this](LeaseId lease) { return !is_live(lease); });
    return leases;
  }
  /// Nothing is committed under a lease that is not live.
  std::uint32_t running_everywhere() {
    std::uint32_t running = 0;
    for (const auto& worker : workers_) {
      for (const auto& sequence : worker->scheduler->running().all()) {
        running += is_live(sequence->request.lease) ? 1 : 0;
      }
    }
    return running;
  }

  SeededRandom random_;
  World world_;
  std::vector<std::unique_ptr<WalkWorker>> workers_;
  std::uint32_t limit_ = 0;
  std::uint32_t tokens_per_minute_ = 0;
  std::uint32_t heard_ = 0;  ///< The highest limit that a worker may still act on.
  std::uint64_t names_ = 0;
  std::uint64_t requests_ = 0;
  int over_limit_ = 0;
};

}  // namespace

TEST_CASE("policy: over random changes no worker admits above the limit, and no request starves") {
  const std::uint64_t first = testing::test_seed();
  int most_running = 0;
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    CAPTURE(seed);
    most_running = std::max(most_running, Walk(seed).most_running);
  }
  CHECK(most_running == 4);
}

}  // namespace leasehold
