// The judge of published texts and of memory that moves between tenants, on manipulated histories.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/checks/runner/spoiled_record.hpp"

namespace leasehold::runner::sharing_test {
namespace {

constexpr LeaseId kText{3, 1}, kOwn{5, 3}, kScavengers{6, 1}, kAdapter{8, 1};

/// By the published text, or with the scope "tenant" by the end of its own lease.
events::StampedEvent stream_ended(std::int64_t ns, const std::string& scope = "shared") {
  return {events::RequestCompletedEvent{.request = RequestId{"r"},
                                        .tenant = "ann",
                                        .lease = kOwn,
                                        .reason = "Revoked",
                                        .scope = scope},
          TimePoint{ns}};
}

events::StampedEvent extent(std::int64_t ns, const std::string& state, LeaseId id) {
  return extent_event(ns, id.slot, state, id);
}

TenantEvent reported(std::int64_t ns, const std::string& event, LeaseId id = kOwn,
                     const std::string& scope = "") {
  return reported_event(ns, event, id, scope);
}

/// ann read a text that was revoked, and read on; gus got the memory of sam.
Record good() {
  BrokerInstance broker;
  broker.events = {
      lease_event(10, LeaseState::Live, kText, ""),
      extent(10, "Owned", kText),
      lease_event(11, LeaseState::Live, kOwn, "ann"),
      lease_event(12, LeaseState::Live, kScavengers, "sam"),
      extent(12, "Owned", kScavengers),
      lease_event(20, LeaseState::Revoked, kText, "", RevokeReason::Operator),
      extent(20, "Draining", kText),
      stream_ended(21),
      lease_event(25, LeaseState::Fenced, kText, ""),
      lease_event(30, LeaseState::Revoked, kScavengers, "sam", RevokeReason::PreemptedByPriority),
      extent(30, "Draining", kScavengers),
      lease_event(31, LeaseState::Fenced, kScavengers, "sam"),
      lease_event(40, LeaseState::Revoked, kOwn, "ann", RevokeReason::Released),
      lease_event(41, LeaseState::Fenced, kOwn, "ann")};
  broker.samples = {{.capacity_bytes = 1, .free_bytes = 1}};
  const WorkerInstance worker{
      .broker = 0,
      .steps = {{events::BatchedDecodeStep{.step = 1, .per_seq_leases = {kOwn}}, TimePoint{15}}}};
  Text ann{.tenant = "ann", .undisturbed = {1}};
  ann.record.tokens = {1};
  ann.record.completed = "MaxTokensReached";
  ann.record.reported = {reported(13, "acquired"),
                         reported(14, "submitted"),
                         reported(22, "revoked", kText, "shared"),
                         reported(23, "retry", kOwn, "shared"),
                         reported(24, "submitted"),
                         reported(39, "completed")};
  Text gus{.tenant = "gus", .undisturbed = {}};
  gus.record.reported = {reported(38, "failed")};
  gus.record.failed = "BrokerLost: the broker is gone";
  return {.brokers = {broker},
          .workers = {worker},
          .texts = {ann, gus},
          .used_blocks = UsedBlocks{.published = 3},
          .tiers = MemoryTiers{.guaranteed = "gus", .scavenger = "sam"},
          .last = wire::StatusView{.capacity_bytes = 1, .free_bytes = 1}};
}

std::vector<events::StampedEvent>& events_of(Record& record) {
  return record.brokers.front().events;
}

std::vector<TenantEvent>& ann(Record& record) {
  return record.texts.front().record.reported;
}

}  // namespace

TEST_CASE("soak judge: a revoked text that its reader left, and a reclaim from a scavenger, pass") {
  CHECK(broken(good(), [](Record&) {}) == std::vector<std::string>{});
}

TEST_CASE("soak judge: finds a text end that was reported twice, or of no text, or of a live one") {
  const auto report = [](Record& record, std::int64_t ns, LeaseId lease) {
    ann(record).insert(ann(record).end() - 1, reported(ns, "revoked", lease, "shared"));
  };
  check_finds(good(), "no reader was notified twice",
              [&](Record& record) { report(record, 26, kText); });
  check_finds(good(), "no reader was notified twice",
              [&](Record& record) { report(record, 26, kScavengers); });
  check_finds(good(), "no reader was notified twice",
              [](Record& record) { ann(record)[2].at = TimePoint{19}; });
  CHECK(broken(good(), [](Record& record) {
          ann(record)[2].at = TimePoint{19};
          record.brokers.front().restarts = {TimePoint{18}};  // and the event was lost
        }).empty());
}

TEST_CASE("soak judge: only a report of shared scope may name another lease than the holder's") {
  check_finds(good(), "no holder got two reports", [](Record& record) {
    ann(record).push_back(reported(39, "completed"));
    ann(record)[5] = reported(38, "revoked", kScavengers, "tenant");
  });
}

TEST_CASE("soak judge: the end of an adapter ends a stream as that of a published text does") {
  const auto adapted = [](std::int64_t revoked_at) {
    Record record = good();
    record.has_adapters = true;
    auto& events = events_of(record);
    const auto at = events.begin() + 3;
    events.insert(
        at, {lease_event(12, LeaseState::Live, kAdapter, "ann"),
             {events::AdapterLoaded{.adapter = {"x"}, .lease = kAdapter}, TimePoint{12}},
             lease_event(revoked_at, LeaseState::Revoked, kAdapter, "ann", RevokeReason::Operator),
             stream_ended(34, "adapter"),
             lease_event(39, LeaseState::Fenced, kAdapter, "ann")});
    const auto end = ann(record).end() - 1;
    ann(record).insert(end, {reported(35, "revoked", kAdapter, "adapter"),
                             reported(36, "retry", kOwn, "adapter"), reported(37, "submitted")});
    return record;
  };
  CHECK(broken(adapted(33), [](Record&) {}) == std::vector<std::string>{});
  check_finds(adapted(33), "got the end of its lease twice",
              [](Record& record) { events_of(record).push_back(stream_ended(40, "adapter")); });
  check_finds(adapted(33), "no reader was notified twice", [](Record& record) {
    ann(record).insert(ann(record).end() - 1, reported(38, "revoked", kAdapter, "adapter"));
  });
  CHECK(broken(adapted(38), [](Record&) {}).size() == 2);  // before the revocation
}

TEST_CASE("soak judge: a stream that ends with a text, and later with its lease, ended once") {
  CHECK(broken(good(), [](Record& record) {
          events_of(record).push_back(stream_ended(40, "tenant"));
        }).empty());
  check_finds(good(), "got the end of its lease twice", [](Record& record) {
    events_of(record).push_back(stream_ended(40, "tenant"));
    events_of(record).push_back(stream_ended(41, "tenant"));
  });
  check_finds(good(), "got the end of its lease twice",
              [](Record& record) { events_of(record).push_back(stream_ended(40, "shared")); });
}

TEST_CASE("soak judge: finds a lease that expired twice, first before the broker revoked it") {
  const auto expire_at = [](Record& record, std::int64_t ns) {
    const auto revoked =
        std::ranges::find(events_of(record), TimePoint{40},
                          [](const events::StampedEvent& event) { return event.at; });
    std::get<events::LeaseStateChanged>(revoked->event).reason = RevokeReason::TtlExpired;
    events_of(record).push_back(stream_ended(ns, "tenant"));
  };
  CHECK(broken(good(), [&](Record& record) { expire_at(record, 39); }).empty());
  const std::int64_t again = GENERATE(39, 41);
  check_finds(good(), "got the end of its lease twice", [&](Record& record) {
    expire_at(record, 39);
    expire_at(record, again);
  });
  check_finds(good(), "got the end of its lease twice", [&](Record& record) {
    expire_at(record, 39);
    expire_at(record, again);
    // Weights have no extent, and end no stream in this way.
    for (const auto state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
      const auto reason = state == LeaseState::Live ? RevokeReason::None : RevokeReason::Operator;
      events_of(record).push_back(lease_event(38, state, {7, 1}, "", reason));
    }
  });
}

TEST_CASE("soak judge: a text excuses no end before its revocation, or after its fence") {
  check_finds(good(), "got the end of its lease twice", [](Record& record) {
    auto& events = events_of(record);
    events.insert(events.begin() + 5, {stream_ended(18), stream_ended(19)});
  });
  const auto end_twice = [](Record& record, std::int64_t granted_at) {
    constexpr LeaseId kLate{7, 1};
    for (const auto state : {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced}) {
      const auto reason = state == LeaseState::Live ? RevokeReason::None : RevokeReason::Released;
      events_of(record).push_back(lease_event(granted_at, state, kLate, "bob", reason));
    }
    for (const char* scope : {"tenant", "shared"}) {
      events_of(record).push_back(stream_ended(41, scope));
      auto& ended = std::get<events::RequestCompletedEvent>(events_of(record).back().event);
      ended.lease = kLate;
    }
  };
  CHECK(broken(good(), [&](Record& record) { end_twice(record, 25); }).empty());
  check_finds(good(), "got the end of its lease twice",
              [&](Record& record) { end_twice(record, 26); });
}

TEST_CASE("soak judge: a restart may hide that a text ended a stream") {
  const auto end_twice = [](Record& record) {
    auto& events = events_of(record);
    std::erase_if(events, [](const events::StampedEvent& stamped) {
      const auto* event = std::get_if<events::LeaseStateChanged>(&stamped.event);
      return event != nullptr && event->lease == kText && event->state == LeaseState::Revoked;
    });
    events.push_back(stream_ended(40, "tenant"));
    record.brokers.front().restarts = {TimePoint{21}};  // and the revocation was lost
  };
  CHECK(broken(good(), end_twice).empty());
  check_finds(good(), "got the end of its lease twice", [&](Record& record) {
    end_twice(record);
    events_of(record).push_back(stream_ended(41, "tenant"));
  });
}

TEST_CASE("soak judge: a round without a text's end, or without use of its blocks, fails") {
  check_finds(good(), "no reader was notified twice", [](Record& record) {
    ann(record).erase(ann(record).begin() + 2, ann(record).begin() + 5);
  });
  check_finds(good(), "blocks of the published text",
              [](Record& record) { record.used_blocks->published = 0; });
  check_finds(good(), "blocks of the published text",
              [](Record& record) { record.used_blocks->cross_tenant = 1; });
}

TEST_CASE("soak judge: a round without a reclaim, or with one from another tenant, fails") {
  const auto reclaim = [](Record& record) -> events::LeaseStateChanged& {
    return std::get<events::LeaseStateChanged>(events_of(record)[9].event);
  };
  check_finds(good(), "reclaimed",
              [&](Record& record) { reclaim(record).reason = RevokeReason::DrainDeadline; });
  check_finds(good(), "reclaimed", [](Record& record) { record.tiers->scavenger = "bob"; });
}

TEST_CASE("soak judge: finds a guaranteed tenant that got no memory, or none at all") {
  check_finds(good(), "guaranteed",
              [](Record& record) { record.texts[1].record.reported.back().why = "PoolExhausted"; });
  check_finds(good(), "guaranteed", [](Record& record) { record.texts.pop_back(); });
}

}  // namespace leasehold::runner::sharing_test
