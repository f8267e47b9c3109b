// The judge must find the violation in each manipulated history.
#include "tests/checks/soak/judge.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/checks/soak/spoiled_history.hpp"

using namespace leasehold;
using namespace leasehold::soak;

namespace {

constexpr LeaseId kLease{5, 3};
constexpr LeaseId kNext{6, 1};

events::StampedEvent at(std::int64_t ns, events::Event event) {
  return {std::move(event), TimePoint{ns}};
}

events::StampedEvent lease(std::int64_t ns, LeaseState state, LeaseId id = kLease) {
  const bool live = state == LeaseState::Live;
  const auto taken_by = id == kNext ? RevokeReason::Released : RevokeReason::Operator;
  return at(ns,
            events::LeaseStateChanged{.lease = id,
                                      .state = state,
                                      .reason = live ? RevokeReason::None : taken_by,
                                      .tenant = "ann",
                                      .proof = state == LeaseState::Fenced ? "LaunchQuiet" : ""});
}

events::StampedEvent extent(std::int64_t ns, const std::string& state, LeaseId id = kLease) {
  const std::string owner = state == "Free" ? "" : to_string(id);
  return at(ns, events::RegionStateChanged{
                    .region = 1, .kind = "extent", .state = state, .lease = owner});
}

demo::TenantEvent reported(std::int64_t ns, const std::string& event, LeaseId id = kLease) {
  return {.event = event, .at = TimePoint{ns}, .lease = id, .why = "operator"};
}

/// ann's lease was revoked; she was notified, rebound and got a complete answer.
History good() {
  BrokerInstance broker;
  broker.events = {lease(10, LeaseState::Live),
                   extent(10, "Owned"),
                   lease(20, LeaseState::Revoked),
                   extent(20, "Draining"),
                   at(22, events::ForwardRevoked{.lease = kLease}),
                   lease(30, LeaseState::Fenced),
                   extent(30, "Scrubbing"),
                   extent(31, "Free"),
                   lease(40, LeaseState::Live, kNext),
                   lease(50, LeaseState::Revoked, kNext),
                   lease(60, LeaseState::Fenced, kNext)};
  broker.samples = {{.capacity_bytes = 8,
                     .free_bytes = 5,
                     .owned_bytes = 3,
                     .swap = {.capacity_bytes = 4, .free_bytes = 3, .owned_bytes = 1}}};
  WorkerInstance worker{.broker = 0};
  worker.steps = {at(15, events::BatchedDecodeStep{.step = 1, .per_seq_leases = {kLease}}),
                  at(45, events::BatchedDecodeStep{.step = 2, .per_seq_leases = {kNext}})};
  TenantInstance ann{.tenant = "ann", .undisturbed = {1, 2, 3}};
  ann.record.tokens = {1, 2, 3};
  ann.record.completed = "MaxTokensReached";
  ann.record.reported = {reported(11, "acquired"),         reported(12, "submitted"),
                         reported(23, "revoked"),          reported(41, "acquired", kNext),
                         reported(42, "submitted", kNext), reported(49, "completed", kNext)};
  // bob's process was killed, and the next one got his whole text.
  TenantInstance killed{
      .tenant = "bob", .undisturbed = {7, 8}, .was_killed = true, .request_id = "bob-0"};
  killed.record.tokens = {7};
  TenantInstance bob{.tenant = "bob", .undisturbed = {7, 8}, .request_id = "bob-0"};
  bob.record.tokens = {7, 8};
  bob.record.completed = "MaxTokensReached";
  bob.record.reported = {reported(49, "completed")};
  return {
      .brokers = {broker},
      .workers = {worker},
      .tenants = {ann, killed, bob},
      .tight_texts = {{.tokens = {4, 5}, .undisturbed = {4, 5}, .is_complete = true},
                      {.tokens = {4}, .undisturbed = {4, 5}}},
      .swaps = 1,
      .canaries = CanaryReport{.extents_read = 2, .own_found = 2},
      .last = wire::StatusView{
          .capacity_bytes = 8, .free_bytes = 8, .swap = {.capacity_bytes = 4, .free_bytes = 4}}};
}

std::vector<events::StampedEvent>& events_of(History& history) {
  return history.brokers.front().events;
}

demo::TenantRecord& ann(History& history) {
  return history.tenants.front().record;
}

/// The broker or worker refuses a call of ann, or her program fails.
demo::TenantEvent refusal(const std::string& event, const std::string& words,
                          const std::string& code = "LeaseRevoked") {
  return {.event = event, .at = TimePoint{24}, .lease = {}, .why = code, .detail = words};
}

/// Inserts events; by default after the one that notifies ann of the end of her lease.
void add_events(History& history, const std::vector<demo::TenantEvent>& lines,
                std::ptrdiff_t after = 3) {
  auto& all = ann(history).reported;
  all.insert(all.begin() + after, lines.begin(), lines.end());
}

void remove_reported(History& history, std::string_view event) {
  std::erase_if(ann(history).reported,
                [&](const demo::TenantEvent& line) { return line.event == event; });
}

}  // namespace

TEST_CASE("soak judge: a correct history passes every check") {
  CHECK(broken(good(), [](History&) {}).empty());
}

TEST_CASE("soak judge: finds lost swap memory, wrong swapped texts, and a round without swaps") {
  check_finds(good(), "either pool", [](History& history) {
    history.brokers.front().samples.front().swap.owned_bytes = 2;
  });
  check_finds(good(), "free at the end",
              [](History& history) { history.last->swap.free_bytes = 3; });
  check_finds(good(), "that was swapped", [](History& history) { history.swaps = 0; });
  check_finds(good(), "that was swapped",
              [](History& history) { history.tight_texts[1].tokens = {5}; });
  check_finds(good(), "that was swapped",
              [](History& history) { history.tight_texts[0].tokens = {4}; });
}

TEST_CASE("soak judge: finds a row committed after the fence") {
  check_finds(good(), "under a lease that was fenced", [](History& history) {
    history.workers.front().steps.push_back(
        at(31, events::BatchedDecodeStep{.step = 3, .per_seq_leases = {kNext, kLease}}));
  });
  check_finds(good(), "under a lease that was fenced", [](History& history) {
    history.workers.front().steps.push_back(
        at(31, events::BatchedDecodeStep{.step = 3, .per_seq_leases = {{9, 9}}}));
  });
}

TEST_CASE("soak judge: a holder whose worker was replaced hears of the end by its next lease") {
  const auto end_as = [](History& history, RevokeReason reason) {
    remove_reported(history, "revoked");
    std::get<events::LeaseStateChanged>(events_of(history)[2].event).reason = reason;
  };
  CHECK(broken(good(), [&](History& history) {
          end_as(history, RevokeReason::WorkerReplaced);
        }).empty());
  check_finds(good(), "no holder got two reports",
              [&](History& history) { end_as(history, RevokeReason::DrainDeadline); });
}

TEST_CASE("soak judge: a history without steps fails") {
  check_finds(good(), "under a lease that was fenced",
              [](History& history) { history.workers.clear(); });
}

TEST_CASE(
    "soak judge: finds a lease that becomes Live again, or is fenced without proof or revocation") {
  check_finds(good(), "never back", [](History& history) {
    events_of(history).push_back(lease(70, LeaseState::Live, kNext));
  });
  check_finds(good(), "never back", [](History& history) {
    std::get<events::LeaseStateChanged>(events_of(history).back().event).proof = "poller";
  });
  check_finds(good(), "never back", [](History& history) {
    events_of(history).push_back(lease(70, LeaseState::Live, {7, 1}));
    events_of(history).push_back(lease(80, LeaseState::Fenced, {7, 1}));
    events_of(history).push_back(lease(81, LeaseState::Revoked, {7, 1}));
    events_of(history).push_back(lease(82, LeaseState::Fenced, {7, 1}));
  });
}

TEST_CASE("soak judge: finds a lease that is never fenced, unless its broker was killed") {
  const auto leave_open = [](History& history) { events_of(history).pop_back(); };
  check_finds(good(), "fenced at the end", leave_open);
  CHECK(broken(good(), [&](History& history) {
          leave_open(history);
          history.brokers.front().ended_early = true;
          history.brokers.push_back(good().brokers.front());
        }).empty());
}

TEST_CASE("soak judge: finds a refusal before the revocation, unless the TTL expired") {
  CHECK(broken(good(), [](History& history) {
          std::get<events::LeaseStateChanged>(events_of(history)[2].event).reason =
              RevokeReason::TtlExpired;
          events_of(history).push_back(at(19, events::ForwardRevoked{.lease = kLease}));
        }).empty());
  check_finds(good(), "no launch was refused", [](History& history) {
    events_of(history).push_back(at(19, events::ForwardRevoked{.lease = kLease}));
  });
}

TEST_CASE("soak judge: finds a refusal before the end of a lease's lifetime, not at it") {
  const auto refused_at = [](History& history, std::int64_t ns) {
    history.lifetimes["ann"] = Duration(8);  // from the grant at 10
    events_of(history).push_back(at(ns, events::ForwardRevoked{.lease = kLease}));
  };
  CHECK(broken(good(), [&](History& history) { refused_at(history, 18); }).empty());
  check_finds(good(), "no launch was refused", [&](History& history) { refused_at(history, 17); });
}

TEST_CASE("soak judge: finds a holder notified never, twice, or of another lease") {
  check_finds(good(), "no holder got two reports",
              [](History& history) { remove_reported(history, "revoked"); });
  check_finds(good(), "no holder got two reports",
              [](History& history) { add_events(history, {reported(24, "revoked")}); });
  check_finds(good(), "no holder got two reports",
              [](History& history) { add_events(history, {reported(43, "revoked")}, 5); });
}

TEST_CASE("soak judge: the end of a lease that was replaced in time is reported later, or never") {
  const bool is_reported = GENERATE(true, false);
  const auto next_acquired_at = [&](History& history, std::int64_t ns) {
    remove_reported(history, "revoked");
    ann(history).reported[2].at = TimePoint{ns};
    if (is_reported) add_events(history, {reported(43, "revoked")}, 3);
  };
  CHECK(broken(good(), [&](History& history) { next_acquired_at(history, 19); }).empty());
  check_finds(good(), "no holder got two reports",
              [&](History& history) { next_acquired_at(history, 21); });
}

TEST_CASE("soak judge: finds a second notification in every form") {
  const auto words = GENERATE(as<std::string>{}, "lease 5.3 was revoked (operator)",
                              "lease 5.3 is fenced; acquire a fresh one", "lease ? is over");
  const auto code = GENERATE(as<std::string>{}, "LeaseRevoked", "LeaseFenced", "StaleGeneration");
  CAPTURE(words, code);
  const demo::TenantEvent said = refusal("retry", words, code);
  check_finds(good(), "no holder got two reports",
              [&](History& history) { add_events(history, {said, said}); });
  check_finds(good(), "no holder got two reports",
              [&](History& history) { add_events(history, {said}, 2); });
  check_finds(good(), "no holder got two reports", [&](History& history) {
    remove_reported(history, "revoked");
    add_events(history, {said, said}, 2);
  });
  check_finds(good(), "no holder got two reports", [&](History& history) {
    ann(history).reported.resize(3);
    ann(history).completed.reset();
    add_events(history, {said, refusal("failed", words, code)});
  });
}

TEST_CASE("soak judge: the line after the end of a stream is not a second notification") {
  const std::string words = "lease 5.3 (tenant scope) was revoked (operator) after 3 tokens";
  CHECK(broken(good(), [&](History& history) {
          add_events(history, {refusal("retry", words)});
        }).empty());
  CHECK(broken(good(), [&](History& history) {
          ann(history).reported.resize(3);
          ann(history).completed.reset();
          add_events(history, {refusal("failed", words)});
        }).empty());
}

TEST_CASE("soak judge: a refusal that names another lease or cause is not a notification") {
  CHECK(broken(good(), [](History& history) {
          const demo::TenantEvent other = refusal("retry", "lease 5.30 was revoked (operator)");
          const demo::TenantEvent away = refusal("retry", "the broker is gone", "BrokerLost");
          add_events(history, {refusal("retry", "lease 5.3 was revoked"), other, away, other});
        }).empty());
}

TEST_CASE("soak judge: finds a stream that got the end of its lease twice") {
  const auto send = [](History& history, LeaseId id, const std::string& reason) {
    events_of(history).push_back(
        at(24, events::RequestCompletedEvent{
                   .request = RequestId{"r"}, .tenant = "ann", .lease = id, .reason = reason}));
  };
  CHECK(broken(good(), [&](History& history) {
          send(history, kLease, "QueueFull");
          send(history, kLease, "QueueFull");
          send(history, kLease, "Revoked");
          send(history, kNext, "Revoked");
        }).empty());
  for (const std::string again : {"Revoked", "LeaseFenced"}) {
    check_finds(good(), "got the end of its lease twice", [&](History& history) {
      send(history, kLease, "Revoked");
      send(history, kLease, again);
    });
  }
}

TEST_CASE(
    "soak judge: a refusal or failure counts as a notification, and a killed tenant needs none") {
  CHECK(broken(good(), [](History& history) { ann(history).reported[2].event = "retry"; }).empty());
  CHECK(broken(good(), [](History& history) {
          remove_reported(history, "revoked");
          remove_reported(history, "completed");
          history.tenants.front().was_killed = true;
        }).empty());
}

TEST_CASE("soak judge: finds a tenant with no end, two ends, or output after its end") {
  check_finds(good(), "ended once",
              [](History& history) { remove_reported(history, "completed"); });
  check_finds(good(), "ended once", [](History& history) {
    ann(history).reported.push_back(reported(50, "failed", kNext));
  });
  check_finds(good(), "ended once", [](History& history) {
    ann(history).reported.push_back(reported(50, "retry", kNext));
  });
}

TEST_CASE("soak judge: finds a changed or short text; a prefix is enough when it was cut off") {
  check_finds(good(), "undisturbed", [](History& history) { ann(history).tokens[1] = 7; });
  check_finds(good(), "undisturbed", [](History& history) { ann(history).tokens.pop_back(); });
  CHECK(broken(good(), [](History& history) {
          ann(history).tokens.pop_back();
          ann(history).completed.reset();
        }).empty());
}

TEST_CASE("soak judge: finds an extent with two owners, or free without a scrub") {
  check_finds(good(), "two owners", [](History& history) {
    std::get<events::RegionStateChanged>(events_of(history)[3].event).lease = to_string(kNext);
  });
  check_finds(good(), "two owners",
              [](History& history) { events_of(history).erase(events_of(history).begin() + 6); });
  check_finds(good(), "two owners", [](History& history) {
    events_of(history).push_back(extent(70, "Owned"));
    events_of(history).push_back(extent(70, "Quarantined"));
  });
}

TEST_CASE("soak judge: finds a lost byte, and memory that is not free at the end") {
  check_finds(good(), "no byte",
              [](History& history) { history.brokers.front().samples[0].free_bytes = 4; });
  check_finds(good(), "all memory is free", [](History& history) { history.last->free_bytes = 7; });
  check_finds(good(), "all memory is free", [](History& history) { history.last.reset(); });
}

TEST_CASE("soak judge: finds a foreign canary, and fails without the owner's canary") {
  check_finds(good(), "canary", [](History& history) {
    history.canaries->foreign = {"the canary of bob is in the memory of ann"};
  });
  check_finds(good(), "canary", [](History& history) { history.canaries->own_found = 0; });
}

TEST_CASE("soak judge: a broker death may lose or repeat a transition, but not reverse one") {
  const auto restart_at = [](History& history, std::int64_t ns) {
    history.brokers.front().restarts = {TimePoint{ns}};
  };
  const auto swallow = [](History& history) {
    events_of(history).erase(events_of(history).begin() + 2);
  };
  const auto repeat = [](History& history) {
    events_of(history).insert(events_of(history).begin() + 2, lease(16, LeaseState::Live));
  };
  check_finds(good(), "never back", repeat);
  CHECK(broken(good(), [&](History& history) {
          restart_at(history, 15);
          repeat(history);
        }).empty());
  CHECK(broken(good(), [&](History& history) {
          restart_at(history, 25);
          swallow(history);
          events_of(history).erase(events_of(history).begin() + 3);  // the refusal it caused
        }).empty());
  check_finds(good(), "never back", [&](History& history) {
    restart_at(history, 65);
    events_of(history).push_back(lease(70, LeaseState::Live, kNext));
  });
  check_finds(good(), "two owners", [&](History& history) {
    restart_at(history, 65);
    events_of(history).push_back(extent(70, "Owned", kNext));
  });
}

TEST_CASE("soak judge: finds a crash; an error exit and a kill by the broker are not crashes") {
  check_finds(good(), "crashed", [](History& history) { history.ends = {{"w1", 139}}; });
  check_finds(good(), "crashed", [](History& history) { history.ends = {{"broker", 1}}; });
  CHECK(broken(good(), [](History& history) { history.ends = {{"w1", 137}, {"w2", 35}}; }).empty());
}

TEST_CASE("soak judge: a lease id that is reused after a restart is another lease") {
  CHECK(broken(good(), [](History& history) {
          History again = good();
          for (auto& event : again.brokers.front().events) event.at.boottime_ns += 1000;
          for (auto& step : again.workers.front().steps) step.at.boottime_ns += 1000;
          for (auto& line : again.tenants.front().record.reported) line.at.boottime_ns += 1000;
          again.workers.front().broker = 1;
          history.brokers.push_back(again.brokers.front());
          history.workers.push_back(again.workers.front());
          history.tenants.push_back(again.tenants.front());
        }).empty());
}
