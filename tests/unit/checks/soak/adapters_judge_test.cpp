// The effects of the soak with adapters are counted by their cause, and one that is missing fails.
#include "tests/checks/soak/adapters/adapters_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace leasehold::soak {
namespace {

constexpr const char* kCounted = "every kind of effect was seen";

events::StampedEvent loaded() {
  return {events::AdapterLoaded{.adapter = {"c7"}, .version = 1}, TimePoint{1}};
}

events::StampedEvent ended(RevokeReason reason) {
  return {events::AdapterEvicted{.adapter = {"c7"}, .version = 1, .reason = reason}, TimePoint{1}};
}

events::StampedEvent ordered(const std::string& object) {
  return {events::OperatorAction{.action = "adapter_unload", .object = object}, TimePoint{1}};
}

runner::Text text(const runner::TenantEvent& reported) {
  runner::Text text{.tenant = "c7"};
  text.record.reported = {reported};
  return text;
}

/// Each effect once, but four loads after the first.
runner::Record every_effect() {
  runner::Text refused = text({.event = "failed", .why = "UnknownAdapter"});
  refused.record.failed = "UnknownAdapter: gone";
  runner::Record record{.brokers = {{}},
                        .texts = {text({.event = "revoked", .scope = "adapter"}), refused}};
  record.brokers[0].events = {loaded(),
                              ended(RevokeReason::ModelUnloaded),
                              loaded(),
                              ordered("adapter:c7@w0"),
                              ended(RevokeReason::ModelUnloaded),
                              loaded(),
                              ended(RevokeReason::Operator),
                              loaded(),
                              ended(RevokeReason::WorkerGone)};
  return record;
}

std::map<std::string, std::uint64_t> counts(const runner::Record& record) {
  const runner::NamedCounts all = adapter_effects(record);
  return {all.begin(), all.end()};
}

bool all_counted(const runner::Record& record) {
  const auto checks = judge_adapters(record);
  return std::ranges::find(checks, kCounted, &runner::Check::promise)->ok;
}

}  // namespace

TEST_CASE("adapters soak: an adapter that was asked to leave was not evicted for memory") {
  CHECK(counts(every_effect()) ==
        std::map<std::string, std::uint64_t>{{"adapter loaded again", 3},
                                             {"adapter evicted for memory", 1},
                                             {"adapter closed on order", 1},
                                             {"adapter's lease revoked", 1},
                                             {"adapter ended with its worker", 1},
                                             {"text interrupted by its adapter's end", 1},
                                             {"text ended, its adapter removed", 1}});
  runner::Record other = every_effect();
  other.brokers[0].events[3] = ordered("adapter:c8@w0");
  CHECK(counts(other).at("adapter evicted for memory") == 2);
}

TEST_CASE("adapters soak: a run without one kind of effect or disturbance fails") {
  CHECK(all_counted(every_effect()));
  for (const std::size_t event : {std::size_t{1}, std::size_t{3}, std::size_t{6}, std::size_t{8}}) {
    runner::Record record = every_effect();
    auto& events = record.brokers[0].events;
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(event));
    CHECK_FALSE(all_counted(record));
  }
  for (std::size_t kept : {0, 1}) {
    runner::Record record = every_effect();
    record.texts = {record.texts[kept]};
    CHECK_FALSE(all_counted(record));
  }
}

}  // namespace leasehold::soak
