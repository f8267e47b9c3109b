#include <algorithm>
#include <catch2/catch.hpp>

#include "common/process.hpp"
#include "tests/fault/story.hpp"

namespace leasehold::testing {
namespace {

/// Long enough for a loaded machine, short enough to wait for: unmaps get five times as much.
constexpr const char* kPatience_ms = "1500";
constexpr std::size_t kDisturbAfter = 12;

SystemSpec spec() {
  return {.broker_arguments = {"--fence-timeout-ms", kPatience_ms},
          .worker_arguments = {"--slow-motion-us", "30", "--threads", "1"},
          .start_worker = false};
}

TenantSpec on(TenantSpec spec, const std::string& worker) {
  spec.more = {"--worker", worker};
  return spec;
}

class WorkerStory {
 public:
  explicit WorkerStory(const Fault& fault) : fault_(fault), story_(spec()) {
    for (const char* tenant : {"ann", "bob", "cat"}) system().admit(tenant);
    system().start_worker("w1", text(fault));
    victim_.emplace(system().worker("w1"), fault.action);
  }

  void play() {
    REQUIRE(eventually([&] { return system().worker_says_ready() || victim_->is_down(); }));
    if (!victim_->is_down()) disturb_streams();
    REQUIRE(victim_->goes_down());
    resolve();
    judge();
  }

 private:
  System& system() { return story_.system(); }

  void start_other(const std::string& name) {
    system().start_worker(name);
    REQUIRE(eventually([&] { return system().worker_is_ready(name); }));
  }

  void disturb_streams() {
    start_other("w2");
    story_.start(on(ann(), "w2"));
    Tenant& held = story_.start(on(cat(), "w1"));
    story_.start(bob());
    const auto down_or = [&](std::size_t tokens) {
      return held.read_until([&](const demo::TenantRecord& record) {
        return record.tokens.size() >= tokens || victim_->is_down();
      });
    };
    if (!down_or(1) || held.record().leases.empty()) return;
    story_.keep_memory(held.record().leases.back());
    if (!down_or(kDisturbAfter) || victim_->is_down()) return;
    story_.look();
    system().brokerctl({"revoke", to_string(held.record().leases.back())});
    story_.start(on(ann(), "w1"));  // whose lease is given back when she was answered
  }

  /// Nobody waits for a dead worker. One that stands is killed by the ladder as soon as something
  /// is wanted back from it; one that holds nothing harms nobody and may go on.
  void resolve() {
    if (fault_.action == Action::Kill) {
      CHECK(victim_->ends_by_sigkill());
    } else if (owes_something()) {
      CHECK(victim_->ends_by_sigkill());
    } else {
      victim_->go_on();
      CHECK(eventually([&] { return system().worker_is_ready("w1"); }));
    }
  }

  bool owes_something() {
    const bool had_leases = story_.revoke_all_on("w1") > 0;
    return had_leases || fault_.site != FaultSite::WorkerAttached;
  }

  void judge() {
    if (has_exited(system().worker("w1").pidfd())) {
      CHECK(eventually([&] { return is_forgotten() && no_lease_left_on_the_dead(); }));
      CHECK(story_.kept_memory_is_zero_and_free());
      start_other("w1");
    }
    story_.serves_again("w1");
    for (const std::string& wrong : story_.judged()) FAIL_CHECK(wrong);
  }

  /// Its name may be taken again.
  bool is_forgotten() {
    const auto workers = system().view().workers();
    return workers && std::ranges::none_of(*workers, [](const wire::WorkerView& worker) {
             return worker.worker == "w1" && worker.state != "gone";
           });
  }

  /// `w1` stands only for the dead one now, for nobody has started another yet.
  bool no_lease_left_on_the_dead() {
    const auto leases = system().view().leases();
    return leases && std::ranges::none_of(*leases, [](const wire::LeaseView& lease) {
             return lease.worker == "w1" && lease.state != LeaseState::Fenced;
           });
  }

  Fault fault_;
  Story story_;
  std::optional<Victim> victim_;
};

}  // namespace

void worker_fails(const Fault& fault) {
  WorkerStory(fault).play();
}

}  // namespace leasehold::testing
