#include <signal.h>

#include <catch2/catch.hpp>

#include "common/process.hpp"
#include "tests/fault/story.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kDisturbAfter = 12;

/// Without a broker nobody renews, so leases are over soon.
constexpr const char* kTtl_ms = "2000";
constexpr const char* kCalmTtl_ms = "60000";

class BrokerStory {
 public:
  explicit BrokerStory(const Fault& fault)
      : story_({.worker_arguments = {"--slow-motion-us", "30"},
                .broker_fault = text(fault),
                .start_worker = false}),
        victim_(system().broker(), fault.action),
        killed_(fault.action == Action::Kill) {}

  void play() {
    system().start_worker("w1");
    REQUIRE(eventually([&] { return system().worker_says_ready() || victim_.is_down(); }));
    if (!victim_.is_down()) disturb_streams();
    REQUIRE(victim_.goes_down());
    replace_broker();
    story_.serves_again("w1");
    for (const std::string& wrong : story_.judged()) FAIL_CHECK(wrong);
  }

 private:
  System& system() { return story_.system(); }

  void admit(const char* ttl_ms) {
    for (const char* tenant : {"ann", "cat"}) system().admit(tenant, {"--ttl-ms", ttl_ms});
  }

  /// Grants, then a revoke, a fence and a scrub; each asked for by somebody who may wait in vain.
  void disturb_streams() {
    admit(kTtl_ms);
    story_.look();
    Tenant& ann_streams = story_.start(ann());
    read(ann_streams, 1);
    Tenant& cat_streams = story_.start(cat());
    read(cat_streams, kDisturbAfter);
    if (victim_.is_down() || cat_streams.record().leases.empty()) return;
    asked_.emplace(
        system().start_brokerctl({"revoke", to_string(cat_streams.record().leases.back())}));
  }

  void read(Tenant& tenant, std::size_t tokens) {
    tenant.read_until([&](const demo::TenantRecord& record) {
      return record.tokens.size() >= tokens || victim_.is_down();
    });
  }

  /// Tenants that stream run to their deadlines, whether the broker is dead or stands. Who waits
  /// for its answer hears when it is dead.
  void replace_broker() {
    if (!killed_) {
      wait_for_streams();
      (void)system().broker().signal(SIGKILL);
    }
    CHECK(victim_.ends_by_sigkill());
    story_.note_new_broker();
    REQUIRE(system().start_broker());
    Child& worker = system().worker("w1");
    REQUIRE(eventually([&] { return has_exited(worker.pidfd()) || system().worker_is_ready(); }));
    if (has_exited(worker.pidfd())) system().start_worker("w1");
    REQUIRE(eventually([&] { return system().worker_is_ready(); }));
    admit(kCalmTtl_ms);
  }

  void wait_for_streams() {
    for (std::size_t i = 0; i < story_.tenants(); ++i) {
      Tenant& tenant = story_.tenant(i);
      if (!tenant.record().tokens.empty()) tenant.finish();
    }
  }

  Story story_;
  Victim victim_;
  bool killed_;
  std::optional<Child> asked_;
};

}  // namespace

void broker_fails(const Fault& fault) {
  BrokerStory(fault).play();
}

}  // namespace leasehold::testing
