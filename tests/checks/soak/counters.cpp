#include "tests/checks/soak/counters.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace leasehold::soak {
namespace {

bool is_disturbance(const runner::TenantEvent& reported) {
  if (reported.event == "rebound") return reported.why != "preemptive";
  return reported.event == "revoked" || reported.event == "retry";
}

}  // namespace

std::uint64_t disturbed_texts(const std::vector<runner::Text>& texts) {
  std::uint64_t count = 0;
  std::set<std::string> killed;
  for (const runner::Text& text : texts) {
    const bool is_resumable = !text.request_id.empty();
    const bool was_interrupted = std::ranges::any_of(text.record.reported, is_disturbance);
    const bool was_resumed = is_resumable && killed.contains(text.request_id);
    if (text.record.completed && (was_interrupted || was_resumed)) ++count;
    if (text.was_killed && is_resumable) killed.insert(text.request_id);
  }
  return count;
}

std::uint64_t text_ends(const std::vector<runner::Text>& texts) {
  std::uint64_t count = 0;
  for (const runner::Text& text : texts)
    count += static_cast<std::uint64_t>(
        std::ranges::count_if(text.record.reported, [](const runner::TenantEvent& reported) {
          return runner::is_end_of(FailureScope::Shared, reported);
        }));
  return count;
}

namespace {

void count_events(const runner::BrokerInstance& instance, Counters& counters) {
  std::map<std::uint64_t, std::string> states;
  using runner::for_each_event;
  for_each_event<events::Rebind>(instance.events, [&](const auto& rebind, TimePoint) {
    ++counters.rebinds;
    if (is_move(rebind.mode)) ++counters.moves;
  });
  for_each_event<events::LeaseStateChanged>(instance.events, [&](const auto& lease, TimePoint) {
    if (runner::is_reclaim(lease)) ++counters.reclaims;
  });
  for_each_event<events::RegionStateChanged>(instance.events, [&](const auto& memory, TimePoint) {
    if (memory.kind != "extent") return;
    const std::string before = std::exchange(states[memory.region], memory.state);
    if (before == "Retained" && memory.state == "Owned") ++counters.adoptions;
  });
}

}  // namespace

Counters count(const runner::Record& record) {
  Counters counters{.actions = record.actions,
                    .workers = record.workers.size(),
                    .tenants = record.texts.size(),
                    .extents_read = record.canaries->extents_read,
                    .swaps = record.swaps.value_or(0),
                    .published_texts = record.publications,
                    .published_blocks = record.used_blocks->published,
                    .text_ends = text_ends(record.texts),
                    .disturbed_texts = disturbed_texts(record.texts)};
  for (const runner::BrokerInstance& instance : record.brokers) {
    counters.brokers += 1 + instance.restarts.size();
    count_events(instance, counters);
  }
  for (const runner::Text& text : record.texts) {
    counters.tokens += text.record.tokens.size();
    counters.answered += text.record.completed ? 1 : 0;
    if (text.record.failed) ++counters.gave_up[text.record.reported.back().why];
    counters.leases += text.record.leases.size();
    counters.revoked_leases += text.record.revocations.size();
  }
  return counters;
}

std::vector<std::string> failures(const runner::Record& record) {
  std::vector<std::string> failures;
  for (const runner::Text& text : record.texts)
    if (text.record.failed) failures.push_back(text.tenant + ": " + *text.record.failed);
  return failures;
}

void Counters::add(const Counters& other) {
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] += other.actions[i];
  for (const Figure& figure : kFigures) this->*figure.value += other.*figure.value;
  for (const auto& [code, count] : other.gave_up) gave_up[code] += count;
}

}  // namespace leasehold::soak
