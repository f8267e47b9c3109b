#include "broker/server/event_log.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("events: the log keeps the newest events, numbered from one") {
  EventLog log(3);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    log.append(events::BatchedDecodeStep{.step = step}, TimePoint{1});
  }
  CHECK(log.after(0, 10).size() == 3);
  CHECK(log.after(0, 10).front().sequence == 3);
  CHECK(log.after(4, 10).size() == 1);
  CHECK(log.after(3, 1).front().sequence == 4);
  CHECK(log.after(9, 10).empty());
  CHECK(log.newest() == 5);
  CHECK(EventLog(3).newest() == 0);
}

TEST_CASE("events: a busy tenant loses its own oldest events, and no others are lost") {
  EventLog log(6);
  const LeaseId of_ann{1, 1};
  const LeaseId of_bob{2, 1};
  log.append(events::LeaseStateChanged{.lease = of_ann, .tenant = "ann", .proof = {}}, {});
  log.append(events::WorkerUnresponsive{.worker = "w1", .waiting_for = "unmap"}, {});
  log.append(events::LeaseStateChanged{.lease = of_bob, .tenant = "bob", .proof = {}}, {});
  log.append(events::ForwardRevoked{.lease = of_ann}, {});  // names no tenant
  for (int i = 0; i < 20; ++i)
    log.append(events::RegionStateChanged{.kind = "extent", .state = {}, .lease = "2.1"}, {});

  std::vector<std::uint64_t> kept;
  for (const NumberedEvent& event : log.after(0, 10)) kept.push_back(event.sequence);
  CHECK(kept == std::vector<std::uint64_t>{1, 2, 4, 22, 23, 24});
  CHECK(log.newest() == 24);
}

TEST_CASE("events: many sampled steps cost the broker none of its own events") {
  EventLog log(4);
  log.append(events::WorkerUnresponsive{.worker = "w1", .waiting_for = "unmap"}, {});
  log.append(events::WorkerUnresponsive{.worker = "w2", .waiting_for = "unmap"}, {});
  for (std::uint64_t step = 1; step <= 9; ++step)
    log.append(events::BatchedDecodeStep{.step = step}, {});

  std::vector<std::uint64_t> kept;
  for (const NumberedEvent& event : log.after(0, 10)) kept.push_back(event.sequence);
  CHECK(kept == std::vector<std::uint64_t>{1, 2, 10, 11});
}

TEST_CASE("events: after many events the log holds the newest of each owner") {
  constexpr std::size_t kOwners = 9;
  EventLog log(kOwners * 4);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    log.append(events::LeaseDraining{.lease = {}, .tenant = std::to_string(i * i % kOwners)}, {});
  }
  for (std::uint64_t i = 0; i < kOwners * 4; ++i) {
    log.append(events::LeaseDraining{.lease = {}, .tenant = std::to_string(i % kOwners)}, {});
  }
  const auto kept = log.after(0, 1000);
  REQUIRE(kept.size() == kOwners * 4);
  CHECK(kept.front().sequence == 1001);
}
