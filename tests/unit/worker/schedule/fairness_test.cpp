/// Fair shares of tenants: token counters in a running scheduler.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>

#include "common/random.hpp"
#include "tests/support/block_conservation.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr SchedulerLimits kLimits{
    .max_batch_size = 8, .token_budget = 32, .max_context = 96, .tokens_per_block = 4};

constexpr std::uint32_t kMaxConcurrent = 8;
constexpr std::uint32_t kMaxBlocks = 1000;

/// What requests of a tenant look like. It always has `queued` of them waiting.
struct Load {
  std::uint32_t weight = 1;
  std::uint32_t leases = 1;
  std::uint32_t queued = 8;
  std::uint32_t longest_prompt = 60;
  std::uint32_t longest_text = 30;
};

/// Tenants that always have work which may run, so that only turns limit them: as many requests
/// wait as a tick can admit.
class Backlog {
 public:
  Backlog(std::vector<Load> loads, std::uint64_t seed, SchedulerLimits limits = kLimits)
      : random_(seed), fixture_(limits), loads_(std::move(loads)), served_(loads_.size()) {
    for (std::size_t i = 0; i < loads_.size(); ++i) open(i);
  }

  void run(int ticks) {
    for (int tick = 0; tick < ticks; ++tick) {
      for (std::size_t i = 0; i < loads_.size(); ++i) refill(i);
      const std::vector<SchedulerEvent> events = fixture_.tick();
      if (!is_in_order(events)) FAIL("events of tick " << tick << " are out of order");
      count_rows();
      check_waits(events);
      check_quotas();
      widest_gap_ = std::max(widest_gap_, gap());
    }
    check_block_conservation(fixture_.scheduler);
  }

  /// Rows by weight.
  std::vector<double> served() const {
    std::vector<double> shares;
    for (std::size_t i = 0; i < loads_.size(); ++i)
      shares.push_back(static_cast<double>(served_[i]) / loads_[i].weight);
    return shares;
  }
  double widest_gap() const { return widest_gap_; }
  /// The bound that scheduler.hpp states.
  double bound() const {
    const auto lightest = std::ranges::min(loads_, {}, &Load::weight).weight;
    return static_cast<double>(kLimits.max_context * (kLimits.max_batch_size + 1)) / lightest;
  }

 private:
  void open(std::size_t i) {
    fixture_.scheduler.set_quota({.tenant = tenant(i),
                                  .max_concurrent = kMaxConcurrent,
                                  .max_blocks = kMaxBlocks,
                                  .weight = loads_[i].weight});
    std::vector<LeaseId>& leases = leases_.emplace_back();
    for (std::uint32_t k = 0; k < loads_[i].leases; ++k)
      leases.push_back(fixture_.lease_of(tenant(i), next_slot_++, 400));
  }
  static TenantId tenant(std::size_t i) { return TenantId{"tenant" + std::to_string(i)}; }

  void refill(std::size_t i) {
    std::size_t waiting = 0;
    for (const LeaseId lease : leases_[i]) waiting += fixture_.tenancies().at(lease).waiting.size();
    for (; waiting < loads_[i].queued; ++waiting) {
      const LeaseId lease = leases_[i][random_.below(leases_[i].size())];
      PromptRequest request =
          fixture_.request(lease, std::to_string(++ids_),
                           static_cast<std::uint32_t>(1 + random_.below(loads_[i].longest_prompt)),
                           static_cast<std::uint32_t>(1 + random_.below(loads_[i].longest_text)));
      request.tenant = tenant(i);
      const std::size_t before = fixture_.tenancies().at(lease).waiting.size();
      waits_[request.engine_request_id] = {
          .tenant = i,
          .served_until = served_[i] + kLimits.max_context * ((before + 1) * loads_[i].leases +
                                                              kLimits.max_batch_size)};
      fixture_.submit(std::move(request));
    }
  }

  /// No request waits longer than scheduler.hpp states.
  void check_waits(const std::vector<SchedulerEvent>& events) {
    for (const Completed& end : only<Completed>(events)) waits_.erase(end.engine_request_id);
    for (const auto& sequence : fixture_.running())
      waits_.erase(sequence->request.engine_request_id);
    for (const auto& [id, wait] : waits_) {
      if (served_[wait.tenant] > wait.served_until) FAIL("request " << id.value << " starves");
    }
  }

  void check_quotas() const {
    std::map<LeaseId, std::uint32_t> running;
    for (const auto& sequence : fixture_.running()) ++running[sequence->request.lease];
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      std::uint32_t sequences = 0, blocks = 0;
      for (const LeaseId lease : leases_[i]) {
        sequences += running[lease];
        blocks += fixture_.tenancies().at(lease).pool.held_blocks();
      }
      if (sequences > kMaxConcurrent || blocks > kMaxBlocks)
        FAIL("tenant " << i << " exceeds its quota");
    }
  }

  void count_rows() {
    for (std::size_t i = 0; i < loads_.size(); ++i) served_[i] += fixture_.rows_of(tenant(i));
  }

  double gap() const {
    const std::vector<double> shares = served();
    return std::ranges::max(shares) - std::ranges::min(shares);
  }

  SeededRandom random_;
  SchedulerFixture fixture_;
  std::vector<Load> loads_;
  std::vector<std::uint64_t> served_;
  struct Wait {
    std::size_t tenant = 0;
    std::uint64_t served_until = 0;  // rows of the tenant
  };
  std::map<RequestId, Wait> waits_;  // of requests that were not admitted
  std::vector<std::vector<LeaseId>> leases_;
  std::uint32_t next_slot_ = 1;
  std::uint64_t ids_ = 0;
  double widest_gap_ = 0;
};

/// Jain's index: 1 when all are equal, 1/n when one has everything.
double jain_index(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Load random_load(SeededRandom& random) {
  return {.weight = static_cast<std::uint32_t>(1 + random.below(4)),
          .leases = static_cast<std::uint32_t>(1 + random.below(4)),
          .queued = static_cast<std::uint32_t>(kLimits.max_batch_size + random.below(12)),
          .longest_prompt = static_cast<std::uint32_t>(1 + random.below(64)),
          .longest_text = static_cast<std::uint32_t>(1 + random.below(30))};
}

}  // namespace

TEST_CASE("fairness: tenants of equal weight get equal rows, whatever they send") {
  Backlog backlog({{.longest_prompt = 4, .longest_text = 30},
                   {.longest_prompt = 64, .longest_text = 1},
                   {.leases = 8, .queued = 40},
                   {.queued = 2}},
                  1);
  backlog.run(4000);
  CHECK(jain_index(backlog.served()) >= 0.99);
}

TEST_CASE("fairness: rows are in proportion to weights") {
  Backlog backlog({{.weight = 1}, {.weight = 2, .leases = 3}, {.weight = 5}}, 2);
  backlog.run(6000);
  const std::vector<double> served = backlog.served();
  CHECK(std::ranges::max(served) / std::ranges::min(served) <= 1.05);
}

// WORKLOADS=100000 SEED=0 runs as many, from this seed on.
TEST_CASE("fairness: in every workload turns obey the stated bounds, and shares are fair") {
  const std::uint64_t first = number_from("SEED", 0);
  const std::uint64_t end = first + number_from("WORKLOADS", 60);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    std::vector<Load> loads(2 + random.below(5));
    std::ranges::generate(loads, [&] { return random_load(random); });
    const bool has_equal_weights = random.below(2) == 0;
    for (Load& load : loads) load.weight = has_equal_weights ? loads[0].weight : load.weight;
    Backlog backlog(loads, seed);
    backlog.run(has_equal_weights ? 150 : 2000);
    REQUIRE(backlog.widest_gap() <= backlog.bound());
    const std::vector<double> served = backlog.served();
    if (has_equal_weights)
      REQUIRE(jain_index(served) >= 0.99);
    else
      REQUIRE(std::ranges::max(served) / std::ranges::min(served) <= 1.05);
  }
}

TEST_CASE("fairness: a changed weight holds from the next tick on") {
  SchedulerFixture fixture({.max_batch_size = 2, .token_budget = 32, .tokens_per_block = 4});
  const LeaseId ann = fixture.lease(1, 60);
  const LeaseId bob = fixture.lease(2, 60);
  fixture.submit(ann, "ann", 200, 4);
  fixture.submit(bob, "bob", 200, 4);
  fixture.tick();
  CHECK(fixture.rows_of({"t1"}) == 16);
  CHECK(fixture.rows_of({"t2"}) == 16);
  fixture.scheduler.set_quota(
      {.tenant = {"t1"}, .max_concurrent = 8, .max_blocks = 100, .weight = 3});
  fixture.tick();
  CHECK(fixture.rows_of({"t1"}) == 24);
  CHECK(fixture.rows_of({"t2"}) == 8);
}

TEST_CASE("fairness: a short prompt does not wait for another tenant's long one") {
  SchedulerFixture fixture({.token_budget = 32, .tokens_per_block = 4});
  const LeaseId ann = fixture.lease(1, 60);
  const LeaseId bob = fixture.lease(2, 60);
  fixture.submit(ann, "long", 220, 4);
  fixture.tick();
  fixture.submit(bob, "short", 16, 4);
  CHECK(only<Token>(fixture.tick()).size() == 1);
}

/// Counts the work that is computed between a submission and its first token.
struct LongContext {
  SchedulerFixture fixture{
      {.max_batch_size = 8, .token_budget = 256, .max_context = 200'000, .tokens_per_block = 16}};
  LeaseId ann = lease(1);
  LeaseId bob = lease(2);

  LeaseId lease(std::uint32_t slot) {
    const LeaseId id = fixture.lease(slot, 13'000);
    fixture.limit_blocks(13'000, {"t" + std::to_string(slot)});
    return id;
  }
  /// A tick of a machine on which a row without context takes 1 ms.
  std::vector<SchedulerEvent> tick() {
    std::uint64_t before = work_;
    fixture.scheduler.admit(kNow);
    const StepPlan plan = fixture.scheduler.plan();
    for (const PlannedRows& part : plan.parts) work_ += part.sequence->work_of(part.n_rows);
    for (const PlannedRows& part : plan.parts)
      fixture.scheduler.commit(part,
                               std::vector<DrawnToken>(part.wants_token ? 1 : 0, {.sampled = {2}}));
    fixture.scheduler.note_duration(std::chrono::milliseconds(work_ - before));
    return fixture.scheduler.take_events();
  }
  std::uint64_t work_until_token(const std::string& id) {
    const std::uint64_t before = work_;
    for (int ticks = 0; ticks < 10'000; ++ticks)
      for (const Token& token : only<Token>(tick()))
        if (token.engine_request_id.value == id) return work_ - before;
    return ~std::uint64_t{0};
  }

 private:
  std::uint64_t work_ = 0;
};

TEST_CASE("fairness: a first token waits for little work behind prompts of a long context") {
  LongContext world;
  world.fixture.submit(world.ann, "long", 100'000, 4);
  world.tick();
  const auto& running = world.fixture.running();
  while (running.at(0)->blocks.committed() < 20'000) world.tick();
  const std::uint32_t prompt = GENERATE(20u, 250u);
  world.fixture.submit(world.bob, "short", prompt, 4);
  CHECK(world.work_until_token("short") <= 600);
}

TEST_CASE("fairness: short prompts of one tenant do not hold up the long one of another for ever") {
  LongContext world;
  world.fixture.submit(world.ann, "long", 4'000, 1);
  int shorts = 0;
  std::uint64_t rows_of_long = 0;
  std::uint64_t work_of_short = 0;  // without context
  for (int ticks = 0; ticks < 30; ++ticks) {
    while (world.fixture.tenancies().waiting_count() < 4)
      world.fixture.submit(world.bob, "short" + std::to_string(++shorts), 60, 1);
    world.fixture.tick();
    rows_of_long += world.fixture.rows_of({"t1"});
    work_of_short += world.fixture.rows_of({"t2"});
  }
  // One step ahead, and what the admitted prompts of a step need.
  CHECK(work_of_first(rows_of_long) + 2 * 256 >= work_of_short);
}

TEST_CASE("fairness: a tenant that was idle gets no credit for that time") {
  SchedulerFixture fixture({.max_batch_size = 2, .token_budget = 8, .tokens_per_block = 4});
  const LeaseId ann = fixture.lease(1, 90);
  const LeaseId bob = fixture.lease(2, 90);
  fixture.submit(ann, "ann", 240, 4);
  for (int tick = 0; tick < 10; ++tick) fixture.tick();
  fixture.submit(bob, "bob", 240, 4);
  for (int tick = 0; tick < 4; ++tick) {
    fixture.tick();
    CHECK(fixture.rows_of({"t1"}) == 4);
    CHECK(fixture.rows_of({"t2"}) == 4);
  }
}

TEST_CASE("scheduler: a prompt beside running streams stays within the measured limit") {
  SchedulerFixture fixture({.token_budget = 64, .tokens_per_block = 4});
  const LeaseId ann = fixture.lease(1, 60);
  const LeaseId bob = fixture.lease(2, 60);
  fixture.submit(ann, "stream", 4, 200);
  const auto timed_tick = [&] {
    fixture.tick();
    const std::uint32_t prefill = fixture.row_count() - 1;
    fixture.scheduler.note_duration(std::chrono::microseconds(10'000 + 400 * prefill));
    return prefill;
  };
  fixture.tick();
  CHECK(timed_tick() == 0);
  fixture.submit(bob, "prompt", 200, 4);
  timed_tick();  // measures the cost of a row
  CHECK(timed_tick() == 10);
}

/// A machine whose step with streams takes 30 ms and whose prompt row takes 6 ms.
struct SlowMachine {
  SchedulerFixture fixture{{.max_batch_size = 16, .token_budget = 256, .tokens_per_block = 16}};

  std::uint32_t streams() const {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        fixture.running(), [](const auto& each) { return each->is_decoding(); }));
  }
  /// Returns the time of the step without its streams.
  std::chrono::milliseconds tick() {
    const std::uint32_t decoding = streams();
    fixture.tick();
    const auto prompts = std::chrono::milliseconds(6 * (fixture.row_count() - decoding));
    fixture.scheduler.note_duration(std::chrono::milliseconds(decoding > 0 ? 30 : 0) + prompts);
    return prompts;
  }
};

TEST_CASE("fairness: short prompts that arrive together run together before the first one ends") {
  SlowMachine machine;
  const LeaseId ann = machine.fixture.lease(1, 90);
  for (int i = 0; i < 8; ++i) machine.fixture.submit(ann, "prompt" + std::to_string(i), 64, 64);
  std::uint32_t most = 0;
  for (int ticks = 0; ticks < 200; ++ticks) {
    machine.tick();
    most = std::max(most, machine.streams());
  }
  CHECK(most == 8);
}

TEST_CASE("fairness: short prompts of another tenant delay a stream no more than a long one does") {
  SlowMachine machine;
  const LeaseId ann = machine.fixture.lease(1, 60);
  const LeaseId bob = machine.fixture.lease(2, 60);
  machine.fixture.submit(ann, "stream", 16, 200);
  while (machine.streams() == 0) machine.tick();
  machine.tick();
  for (int i = 0; i < 4; ++i) machine.fixture.submit(bob, "prompt" + std::to_string(i), 64, 2);
  machine.tick();  // measures the cost of a row
  for (int ticks = 0; ticks < 50; ++ticks)
    CHECK(machine.tick() <= std::chrono::milliseconds(12 + 6));  // 40 %, and what rounding left
}

}  // namespace leasehold::testing
