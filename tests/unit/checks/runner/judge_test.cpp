// The judge must find the violation in each manipulated record.
#include "tests/checks/runner/check.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/checks/runner/spoiled_record.hpp"

using namespace leasehold;
using namespace leasehold::runner;

namespace {

constexpr LeaseId kLease{5, 3};
constexpr LeaseId kNext{6, 1};

events::StampedEvent at(std::int64_t ns, events::Event event) {
  return {std::move(event), TimePoint{ns}};
}

events::StampedEvent lease(std::int64_t ns, LeaseState state, LeaseId id = kLease) {
  const auto ended = id == kNext ? RevokeReason::Released : RevokeReason::Operator;
  return lease_event(ns, state, id, "ann", state == LeaseState::Live ? RevokeReason::None : ended);
}

events::StampedEvent extent(std::int64_t ns, const std::string& state, LeaseId id = kLease) {
  return extent_event(ns, 1, state, id);
}

TenantEvent reported(std::int64_t ns, const std::string& event, LeaseId id = kLease) {
  return reported_event(ns, event, id);
}

/// ann's lease was revoked; she was notified, rebound and got a complete answer.
Record good() {
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
  Text ann{.tenant = "ann", .undisturbed = {1, 2, 3}};
  ann.record.tokens = {1, 2, 3};
  ann.record.completed = "MaxTokensReached";
  ann.record.reported = {reported(11, "acquired"),         reported(12, "submitted"),
                         reported(23, "revoked"),          reported(41, "acquired", kNext),
                         reported(42, "submitted", kNext), reported(49, "completed", kNext)};
  // bob's process was killed, and the next one got his whole text.
  Text killed{.tenant = "bob", .undisturbed = {7, 8}, .was_killed = true, .request_id = "bob-0"};
  killed.record.tokens = {7};
  Text bob{.tenant = "bob", .undisturbed = {7, 8}, .request_id = "bob-0"};
  bob.record.tokens = {7, 8};
  bob.record.completed = "MaxTokensReached";
  bob.record.reported = {reported(49, "completed")};
  return {
      .brokers = {broker},
      .workers = {worker},
      .texts = {ann, killed, bob},
      .swapped_texts = {{.record = {.tokens = {4, 5}, .completed = "MaxTokensReached"},
                         .undisturbed = {4, 5}},
                        {.record = {.tokens = {4}}, .undisturbed = {4, 5}}},
      .swaps = 1,
      .canaries = CanaryReport{.extents_read = 2, .own_found = 2},
      .last = wire::StatusView{
          .capacity_bytes = 8, .free_bytes = 8, .swap = {.capacity_bytes = 4, .free_bytes = 4}}};
}

std::vector<events::StampedEvent>& events_of(Record& record) {
  return record.brokers.front().events;
}

TenantRecord& ann(Record& record) {
  return record.texts.front().record;
}

/// The broker or worker refuses a call of ann, or her program fails.
TenantEvent refusal(const std::string& event, const std::string& words,
                    const std::string& code = "LeaseRevoked") {
  return {.event = event, .at = TimePoint{24}, .lease = {}, .why = code, .detail = words};
}

/// Inserts events; by default after the one that notifies ann of the end of her lease.
void add_events(Record& record, const std::vector<TenantEvent>& lines, std::ptrdiff_t after = 3) {
  auto& all = ann(record).reported;
  all.insert(all.begin() + after, lines.begin(), lines.end());
}

void remove_reported(Record& record, std::string_view event) {
  std::erase_if(ann(record).reported, [&](const TenantEvent& line) { return line.event == event; });
}

/// Ends ann's first lease for this reason, without a notification.
void end_silently(Record& record, RevokeReason reason) {
  remove_reported(record, "revoked");
  std::get<events::LeaseStateChanged>(events_of(record)[2].event).reason = reason;
}

void refuse_at(Record& record, std::int64_t ns) {
  events_of(record).push_back(at(ns, events::ForwardRevoked{.lease = kLease}));
}

/// ann gets the next lease at this time, and hears of the end of the first one later, or never.
void replace_at(Record& record, std::int64_t ns, bool is_reported) {
  remove_reported(record, "revoked");
  ann(record).reported[2].at = TimePoint{ns};
  if (is_reported) add_events(record, {reported(43, "revoked")});
}

/// A worker writes these ends of ann's leases to her socket.
void send_ends(Record& record, std::initializer_list<std::pair<LeaseId, const char*>> ends) {
  for (const auto& [id, reason] : ends)
    events_of(record).push_back(
        at(24, events::RequestCompletedEvent{
                   .request = RequestId{"r"}, .tenant = "ann", .lease = id, .reason = reason}));
}

void restart_at(Record& record, std::int64_t ns) {
  record.brokers.front().restarts = {TimePoint{ns}};
}

void repeat_grant(Record& record) {
  events_of(record).insert(events_of(record).begin() + 2, lease(16, LeaseState::Live));
}

void commit_row(Record& record, std::vector<LeaseId> leases) {
  record.workers.front().steps.push_back(
      at(31, events::BatchedDecodeStep{.step = 3, .per_seq_leases = std::move(leases)}));
}

void cut_off(Record& record) {
  ann(record).reported.resize(3);
  ann(record).completed.reset();
}

constexpr const char* kReports = "no holder got two reports";
constexpr const char* kRow = "under a lease that was fenced";
constexpr const char* kRefused = "no launch was refused";
constexpr const char* kSentTwice = "got the end of its lease twice";
constexpr const char* kRevokedWords =
    "lease 5.3 (tenant scope) was revoked (operator) after 3 tokens";

const Change kLeases[]{
    {"nothing", nullptr, [](Record&) {}},
    {"a row after the fence", kRow, [](Record& r) { commit_row(r, {kNext, kLease}); }},
    {"a row under an unknown lease", kRow, [](Record& r) { commit_row(r, {{9, 9}}); }},
    {"no steps", kRow, [](Record& r) { r.workers.clear(); }},
    {"a lease that becomes Live again", "never back",
     [](Record& r) { events_of(r).push_back(lease(70, LeaseState::Live, kNext)); }},
    {"a fence without proof", "never back",
     [](Record& r) {
       std::get<events::LeaseStateChanged>(events_of(r).back().event).proof = "poller";
     }},
    {"a fence before the revocation", "never back",
     [](Record& r) {
       for (const auto& [ns, state] :
            std::initializer_list<std::pair<int, LeaseState>>{{70, LeaseState::Live},
                                                              {80, LeaseState::Fenced},
                                                              {81, LeaseState::Revoked},
                                                              {82, LeaseState::Fenced}})
         events_of(r).push_back(lease(ns, state, {7, 1}));
     }},
    {"a lease without a fence", "fenced at the end", [](Record& r) { events_of(r).pop_back(); }},
    {"the same with a broker that was killed", nullptr,
     [](Record& r) {
       events_of(r).pop_back();
       r.brokers.front().ended_early = true;
       r.brokers.push_back(good().brokers.front());
     }},
    {"a refusal before the revocation", kRefused, [](Record& r) { refuse_at(r, 19); }},
    {"the same when the TTL expired", nullptr,
     [](Record& r) {
       std::get<events::LeaseStateChanged>(events_of(r)[2].event).reason = RevokeReason::TtlExpired;
       refuse_at(r, 19);
     }},
    {"a refusal at the end of the lifetime", nullptr,
     [](Record& r) {
       r.lifetimes["ann"] = Duration(8);  // from the grant at 10
       refuse_at(r, 18);
     }},
    {"a refusal before the end of the lifetime", kRefused,
     [](Record& r) {
       r.lifetimes["ann"] = Duration(8);
       refuse_at(r, 17);
     }},
    {"a broker death that repeats a grant", nullptr,
     [](Record& r) {
       restart_at(r, 15);
       repeat_grant(r);
     }},
    {"a repeated grant", "never back", repeat_grant},
    {"a broker death that loses a revocation and the refusal that it caused", nullptr,
     [](Record& r) {
       restart_at(r, 25);
       events_of(r).erase(events_of(r).begin() + 2);
       events_of(r).erase(events_of(r).begin() + 3);
     }},
    {"a broker death that reverses a transition", "never back",
     [](Record& r) {
       restart_at(r, 65);
       events_of(r).push_back(lease(70, LeaseState::Live, kNext));
     }},
};

const Change kHolders[]{
    {"a replaced worker's holder that hears of the end by its next lease", nullptr,
     [](Record& r) { end_silently(r, RevokeReason::WorkerReplaced); }},
    {"another end without a notification", kReports,
     [](Record& r) { end_silently(r, RevokeReason::DrainDeadline); }},
    {"no notification", kReports, [](Record& r) { remove_reported(r, "revoked"); }},
    {"a second notification", kReports,
     [](Record& r) { add_events(r, {reported(24, "revoked")}); }},
    {"a notification of another lease", kReports,
     [](Record& r) { add_events(r, {reported(43, "revoked")}, 5); }},
    {"a lease that was replaced in time", nullptr, [](Record& r) { replace_at(r, 19, false); }},
    {"the same with a late report", nullptr, [](Record& r) { replace_at(r, 19, true); }},
    {"a lease that was replaced after its end", kReports,
     [](Record& r) { replace_at(r, 21, false); }},
    {"the same with a report for another lease", kReports,
     [](Record& r) { replace_at(r, 21, true); }},
    {"a retry after the end of a stream", nullptr,
     [](Record& r) { add_events(r, {refusal("retry", kRevokedWords)}); }},
    {"a failure after the end of a stream", nullptr,
     [](Record& r) {
       cut_off(r);
       add_events(r, {refusal("failed", kRevokedWords)});
     }},
    {"refusals that name another lease or cause", nullptr,
     [](Record& r) {
       const TenantEvent other = refusal("retry", "lease 5.30 was revoked (operator)");
       const TenantEvent away = refusal("retry", "the broker is gone", "BrokerLost");
       add_events(r, {refusal("retry", "lease 5.3 was revoked"), other, away, other});
     }},
    {"refusals by a full queue, and one end for each lease", nullptr,
     [](Record& r) {
       send_ends(
           r,
           {{kLease, "QueueFull"}, {kLease, "QueueFull"}, {kLease, "Revoked"}, {kNext, "Revoked"}});
     }},
    {"a stream that ended twice", kSentTwice,
     [](Record& r) { send_ends(r, {{kLease, "Revoked"}, {kLease, "Revoked"}}); }},
    {"a stream that ended twice in other words", kSentTwice,
     [](Record& r) { send_ends(r, {{kLease, "Revoked"}, {kLease, "LeaseFenced"}}); }},
    {"a refusal instead of a notification", nullptr,
     [](Record& r) { ann(r).reported[2].event = "retry"; }},
    {"a killed tenant that heard nothing", nullptr,
     [](Record& r) {
       remove_reported(r, "revoked");
       remove_reported(r, "completed");
       r.texts.front().was_killed = true;
     }},
    {"no end", "ended once", [](Record& r) { remove_reported(r, "completed"); }},
    {"two ends", "ended once",
     [](Record& r) { ann(r).reported.push_back(reported(50, "failed", kNext)); }},
    {"output after the end", "ended once",
     [](Record& r) { ann(r).reported.push_back(reported(50, "retry", kNext)); }},
    {"a changed text", "undisturbed", [](Record& r) { ann(r).tokens[1] = 7; }},
    {"a short text", "undisturbed", [](Record& r) { ann(r).tokens.pop_back(); }},
    {"a text that was cut off", nullptr,
     [](Record& r) {
       ann(r).tokens.pop_back();
       ann(r).completed.reset();
     }},
    {"a round without swaps", "that was swapped", [](Record& r) { r.swaps = 0; }},
    {"a changed swapped text", "that was swapped",
     [](Record& r) { r.swapped_texts[1].record.tokens = {5}; }},
    {"a short swapped text", "that was swapped",
     [](Record& r) { r.swapped_texts[0].record.tokens = {4}; }},
    {"a worker that crashed", "crashed", [](Record& r) { r.ends = {{"w1", 139}}; }},
    {"an unhandled error", "crashed", [](Record& r) { r.ends = {{"broker", 1}}; }},
    {"a tenant that crashed", "crashed", [](Record& r) { r.texts[0].exit_status = 139; }},
    {"an error exit, and kills by the broker and by the script", nullptr,
     [](Record& r) {
       r.ends = {{"w1", 137}, {"w2", 35}};
       r.texts[1].exit_status = 137;
     }},
};

const Change kMemory[]{
    {"lost swap memory", "either pool",
     [](Record& r) { r.brokers.front().samples.front().swap.owned_bytes = 2; }},
    {"swap memory that is not free", "free at the end",
     [](Record& r) { r.last->swap.free_bytes = 3; }},
    {"an extent with two owners", "two owners",
     [](Record& r) {
       std::get<events::RegionStateChanged>(events_of(r)[3].event).lease = to_string(kNext);
     }},
    {"an extent that was not scrubbed", "two owners",
     [](Record& r) { events_of(r).erase(events_of(r).begin() + 6); }},
    {"an extent that is quarantined", "two owners",
     [](Record& r) {
       events_of(r).push_back(extent(70, "Owned"));
       events_of(r).push_back(extent(70, "Quarantined"));
     }},
    {"a broker death, and an extent with two owners", "two owners",
     [](Record& r) {
       restart_at(r, 65);
       events_of(r).push_back(extent(70, "Owned", kNext));
     }},
    {"a lost byte", "no byte", [](Record& r) { r.brokers.front().samples[0].free_bytes = 4; }},
    {"memory that is not free", "all memory is free", [](Record& r) { r.last->free_bytes = 7; }},
    {"no last status", "all memory is free", [](Record& r) { r.last.reset(); }},
    {"a foreign canary", "canary",
     [](Record& r) { r.canaries->foreign = {"the canary of bob is in the memory of ann"}; }},
    {"no canary at all", "canary", [](Record& r) { r.canaries->own_found = 0; }},
};

}  // namespace

TEST_CASE("soak judge: each flaw of a lease breaks one promise, and nothing else breaks any") {
  check_changes(good(), kLeases);
}

TEST_CASE("soak judge: each flaw of a holder breaks one promise, and nothing else breaks any") {
  check_changes(good(), kHolders);
}

TEST_CASE("soak judge: each flaw of memory breaks one promise") {
  check_changes(good(), kMemory);
}

TEST_CASE("soak judge: finds a second notification in every form") {
  const auto words = GENERATE(as<std::string>{}, "lease 5.3 was revoked (operator)",
                              "lease 5.3 is fenced; acquire a fresh one", "lease ? is over");
  const auto code = GENERATE(as<std::string>{}, "LeaseRevoked", "LeaseFenced", "StaleGeneration");
  CAPTURE(words, code);
  const TenantEvent said = refusal("retry", words, code);
  check_finds(good(), "no holder got two reports",
              [&](Record& record) { add_events(record, {said, said}); });
  check_finds(good(), "no holder got two reports",
              [&](Record& record) { add_events(record, {said}, 2); });
  check_finds(good(), "no holder got two reports", [&](Record& record) {
    remove_reported(record, "revoked");
    add_events(record, {said, said}, 2);
  });
  check_finds(good(), "no holder got two reports", [&](Record& record) {
    ann(record).reported.resize(3);
    ann(record).completed.reset();
    add_events(record, {said, refusal("failed", words, code)});
  });
}

TEST_CASE("soak judge: a lease id that is reused after a restart is another lease") {
  CHECK(broken(good(), [](Record& record) {
          Record again = good();
          for (auto& event : again.brokers.front().events) event.at.boottime_ns += 1000;
          for (auto& step : again.workers.front().steps) step.at.boottime_ns += 1000;
          for (auto& line : again.texts.front().record.reported) line.at.boottime_ns += 1000;
          again.workers.front().broker = 1;
          record.brokers.push_back(again.brokers.front());
          record.workers.push_back(again.workers.front());
          record.texts.push_back(again.texts.front());
        }).empty());
}

TEST_CASE("soak judge: a lease granted before the end of the one it follows excuses the notice") {
  const auto misses_a_notice = [](std::int64_t next_granted) {
    BrokerInstance broker;
    broker.events = {lease(10, LeaseState::Live), lease(20, LeaseState::Revoked),
                     lease(next_granted, LeaseState::Live, kNext)};
    std::ranges::sort(broker.events, {}, &events::StampedEvent::at);
    Text ann{.tenant = "ann"};
    ann.record.reported = {reported(11, "acquired"), reported(12, "submitted"),
                           reported(41, "acquired", kNext)};  // accepted late by a worker
    return finds({.brokers = {broker}, .texts = {ann}}, "no holder got two reports");
  };
  CHECK_FALSE(misses_a_notice(15));
  CHECK(misses_a_notice(25));
}
