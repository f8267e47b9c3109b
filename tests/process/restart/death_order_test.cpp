/// Several processes die in one recovery, in each order, during or after a rebind of each mode.
/// Every text is the undisturbed one; a tenant's record takes the next position only, so each
/// arrived once. At every look all bytes of the pool have one state each.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <span>

#include "common/clock.hpp"
#include "common/machine/process.hpp"
#include "tests/checks/runner/check.hpp"
#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing::deaths {
namespace {

constexpr std::size_t kReadBefore = 30;
constexpr std::uint32_t kText = 150;
constexpr std::uint32_t kLongText = 450;  // for a rebind and a restart on a machine that stalls

/// The rebind before the deaths. Adopt: its worker is killed and a successor started.
enum class Mode { Reprefill, Checkpoint, Preemptive, Adopt, Failover };

std::string name(Mode mode) {
  constexpr const char* kNames[] = {"reprefill", "checkpoint", "preemptive", "adopt", "failover"};
  return kNames[static_cast<int>(mode)];
}

Mode any_mode() {
  return GENERATE(Mode::Reprefill, Mode::Checkpoint, Mode::Preemptive, Mode::Adopt, Mode::Failover);
}

/// True if the worker that has the text maps memory for the rebind.
bool is_in_place(Mode mode) {
  return mode != Mode::Adopt && mode != Mode::Failover;
}

/// True if the lease ends only once another one is granted.
bool precedes_end(Mode mode) {
  return mode == Mode::Checkpoint || mode == Mode::Preemptive;
}

TenantSpec resumable(std::uint32_t max_tokens = kText) {
  TenantSpec spec = kEndless;
  spec.max_tokens = max_tokens;
  spec.rebind = true;
  spec.more = {"--resumable", "--request-id", "story"};
  return spec;
}

/// The first tokens of the undisturbed text.
std::span<const std::int32_t> undisturbed(std::uint32_t max_tokens) {
  static const std::vector<std::int32_t> text = System::alone(resumable(kLongText));
  return std::span(text).first(max_tokens);
}

/// One text and the rebind before the deaths. The deaths come while a worker is stopped in the
/// middle of mapping the new lease's memory, or after the rebind.
class Story {
 public:
  enum class When { WhileMapping, Afterwards };

  Story(Mode mode, When when, std::uint32_t max_tokens = kText)
      : fixture({}, {}, when == When::WhileMapping && is_in_place(mode) ? stop_at(2) : ""),
        mode_(mode),
        max_tokens_(max_tokens) {
    CAPTURE(name(mode));
    (void)undisturbed(max_tokens_);
    start_text();
    begin_rebind(when == When::WhileMapping ? stop_at(1) : "");
    if (when == When::WhileMapping) {
      REQUIRE(eventually([&] { return is_stopped(system().worker(mapper).pid()); }));
    } else {
      await_rebind();
    }
    look();
    adopted_before_ = adoptions();
  }

  System& system() { return fixture.system; }

  void kill(const std::string& worker) {
    REQUIRE(system().worker(worker).signal(SIGKILL));
    REQUIRE(eventually([&] { return has_exited(system().worker(worker).pidfd()); }));
  }
  void kill_mapper() { kill(mapper); }
  /// In a failover two workers run.
  void kill_all_workers() {
    kill(mapper);
    if (mapper != "w1") kill("w1");
  }
  void start_successor(const std::string& fault = {}) {
    system().remove_worker(mapper);
    system().start_worker(mapper, fault);
  }

  /// Waits until the tenant holds its lease at the next broker, which keeps memory only for a
  /// holder. The text makes no progress meanwhile.
  void restart_broker_and_hold() {
    const auto restart = [this] {
      std::int64_t killed_ns = 0;
      fixture.restart_broker([&] { killed_ns = SystemClock().now().boottime_ns; });
      const std::int64_t renewed_ns = killed_ns + std::chrono::nanoseconds(kTtl).count();
      // Only its holder renews a lease.
      REQUIRE(eventually([&] {
        const auto lease = system().lease(tenant->record().leases.back());
        return lease.deadline_boottime_ns >= renewed_ns;
      }));
    };
    system().while_worker_stopped(restart, mapper);
    REQUIRE(eventually([&] { return system().worker_is_ready(mapper); }));
  }

  void look() { CHECK(runner::not_conserved(system().status()) == ""); }

  /// Reads the text to its end.
  void check_text(Tenant& reader) {
    REQUIRE(reader.read_until([this](const runner::TenantRecord& record) {
      look();
      return record.completed || record.failed;
    }));
    const int code = reader.finish();
    INFO(reader.record().failed.value_or("it did not fail"));
    CHECK(code == 0);
    CHECK(std::ranges::equal(reader.record().tokens, undisturbed(max_tokens_)));
    CHECK(system().pool_is_fully_free());
    look();
  }
  void check_text() { check_text(*tenant); }

  /// How often a worker adopted memory since the deaths.
  std::size_t adoptions_since() const { return adoptions() - adopted_before_; }

  /// True if the lifetime of the first lease ended before the deaths. No memory is kept then.
  bool is_late() {
    return system().lease(tenant->record().leases.front()).reason == RevokeReason::TtlExpired;
  }

  Restartable fixture;
  std::unique_ptr<Tenant> tenant;
  std::string mapper = "w1";  ///< The worker that maps memory for the rebind.

 private:
  static std::string stop_at(int grant) {
    return "worker.extents.mapped:stop:" + std::to_string(grant);
  }

  void limit_lifetime(const std::string& at_most_ms) {
    system().admit("cat",
                   {"--ttl-ms", std::to_string(kTtl.count()), "--max-lifetime-ms", at_most_ms});
  }

  /// A preemptive move begins by itself, after the text does, with any number of tokens.
  void start_text() {
    if (mode_ != Mode::Preemptive) {
      tenant = system().start_streaming(resumable(max_tokens_), kReadBefore);
      return;
    }
    limit_lifetime("2000");
    tenant = system().start_tenant(resumable(max_tokens_));
    REQUIRE(tenant->read_until([](const auto& record) { return !record.leases.empty(); }));
    limit_lifetime("3600000");  // of the leases after the first
  }

  void begin_rebind(const std::string& fault_of_other_worker) {
    const LeaseId lease = tenant->record().leases.back();
    if (mode_ == Mode::Reprefill) REQUIRE(system().brokerctl({"revoke", to_string(lease)}) == 0);
    if (mode_ == Mode::Checkpoint)
      REQUIRE(system().brokerctl({"drain", to_string(lease), "--grace-ms", "60000"}) == 0);
    if (mode_ == Mode::Adopt) {
      kill_mapper();
      start_successor(fault_of_other_worker);
    }
    if (mode_ == Mode::Failover) {
      mapper = "w2";
      // The text makes no progress meanwhile.
      system().while_worker_stopped(
          [&] { system().start_ready_worker(mapper, fault_of_other_worker); });
      replacing_.emplace(system().start_brokerctl({"worker", "replace", "w1", "w2"}));
    }
  }

  /// A machine that stalls lets the lifetime end before the move.
  void await_rebind() {
    std::string how;
    REQUIRE(tenant->read_until([&](const runner::TenantRecord& record) {
      const auto found = std::ranges::find(record.reported, "rebound", &runner::TenantEvent::event);
      if (found != record.reported.end()) how = found->why;
      return !how.empty();
    }));
    const bool is_reprefill = how != name(mode_) && is_late();
    CHECK(how == name(is_reprefill ? Mode::Reprefill : mode_));
    // A thread of the worker writes its log.
    CHECK(eventually([&] { return adoptions() == (is_in_place(mode_) ? 0u : 1u); }));
    if (mode_ != Mode::Failover) return;
    REQUIRE(exit_status_of(*replacing_) == 0);
    kill("w1");
  }

  std::size_t adoptions() const {
    return count_of(fixture.system.worker_log("w1"), "memory adopted") +
           count_of(fixture.system.worker_log("w2"), "memory adopted");
  }

  Mode mode_;
  std::uint32_t max_tokens_;
  std::size_t adopted_before_ = 0;
  std::optional<Child> replacing_;
};

using enum Story::When;

/// Live memory ends with its worker and its broker.
void kill_together(Mode mode, bool has_store) {
  Story story(mode, WhileMapping);

  story.fixture.restart_broker([&] {
    story.kill_all_workers();
    if (!has_store) story.fixture.store.drop_all();
  });
  story.start_successor();

  story.check_text();
  CHECK(story.adoptions_since() == 0);
}

}  // namespace

TEST_CASE("deaths: broker and worker killed together cost no text a token") {
  kill_together(any_mode(), /*has_store=*/true);
}

TEST_CASE("deaths: broker and worker killed together without a store cost no text a token") {
  kill_together(Mode::Checkpoint, /*has_store=*/false);
}

TEST_CASE("deaths: a broker killed between a worker's death and its successor costs no token") {
  Story story(any_mode(), Afterwards);

  story.kill_mapper();
  REQUIRE(eventually([&] { return story.system().status().retained_bytes > 0; }));
  story.look();
  story.fixture.restart_broker();
  story.start_successor();

  story.check_text();
  CHECK(story.adoptions_since() == 0);  // kept memory ends with its broker
}

TEST_CASE("deaths: memory that a worker gave back to the next broker is adopted after its death") {
  Story story(any_mode(), Afterwards, kLongText);

  story.restart_broker_and_hold();
  REQUIRE(story.tenant->read_tokens(story.tenant->record().tokens.size() + 10));
  story.look();
  story.kill_mapper();
  story.start_successor();

  story.check_text();
  CHECK(story.adoptions_since() == 1);
}

TEST_CASE("deaths: a broker killed while a worker adopts memory costs no token") {
  const Mode mode = any_mode();
  Story story(mode, WhileMapping);

  story.fixture.restart_broker();
  REQUIRE(story.system().worker(story.mapper).signal(SIGCONT));

  story.check_text();
  CHECK(story.adoptions_since() == (mode == Mode::Adopt ? 1 : 0));
}

TEST_CASE("deaths: a worker killed while it maps memory of a rebind costs no token") {
  const Mode mode = any_mode();
  Story story(mode, WhileMapping);

  story.kill_mapper();
  story.start_successor();

  story.check_text();
  CHECK(story.adoptions_since() == (precedes_end(mode) && !story.is_late() ? 1 : 0));
}

TEST_CASE("deaths: broker and adopting worker killed together cost no token") {
  Story story(any_mode(), WhileMapping);

  story.kill_mapper();
  story.fixture.restart_broker();
  story.start_successor();

  story.check_text();
  CHECK(story.adoptions_since() == 0);
}

TEST_CASE("deaths: a tenant killed while it resumes leaves the text to the next one") {
  Story story(any_mode(), Afterwards);
  REQUIRE(story.tenant->child().signal(SIGKILL));
  TenantSpec dying = resumable();
  dying.fault = "tenant.request.submitted:kill";

  const auto second = story.system().start_tenant(dying);
  CHECK(second->finish() == 128 + SIGKILL);
  CHECK(second->record().tokens.empty());
  const auto third = story.system().start_tenant(resumable());

  story.check_text(*third);
  CHECK(story.adoptions_since() == 0);
}

TEST_CASE("deaths: a tenant and its worker killed together leave the text to the next tenant") {
  Story story(any_mode(), Afterwards);
  REQUIRE(story.tenant->child().signal(SIGKILL));
  story.kill_mapper();
  story.start_successor();

  const auto second = story.system().start_tenant(resumable());

  story.check_text(*second);
  CHECK(story.adoptions_since() == 0);  // memory is kept for a holder that lives
}

}  // namespace leasehold::testing::deaths
