#include "tests/simulation/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/books/extents.hpp"
#include "broker/books/weights.hpp"
#include "broker/books/workers.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::simulation {
namespace {

template <class State>
void add_table(std::vector<Transition>& all, Kind kind, int state_count) {
  for (int from = 0; from < state_count; ++from) {
    for (int to = 0; to < state_count; ++to) {
      if (!may_become(static_cast<State>(from), static_cast<State>(to))) continue;
      all.push_back({kind, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to)});
    }
  }
}

std::vector<Transition> make_transitions() {
  std::vector<Transition> all;
  add_table<LeaseState>(all, Kind::Lease, kLeaseStateCount);
  add_table<ExtentState>(all, Kind::Extent, kExtentStateCount);
  add_table<ExtentState>(all, Kind::Swap, kExtentStateCount);
  add_table<WorkerState>(all, Kind::Worker, kWorkerStateCount);
  add_table<RegionState>(all, Kind::Region, kRegionStateCount);
  return all;
}

std::string state_name(Kind kind, std::uint8_t state) {
  constexpr std::string_view kWorkers[kWorkerStateCount] = {"Attached", "Ready", "Lost", "Gone"};
  switch (kind) {
    case Kind::Lease:
      return std::string(name(static_cast<LeaseState>(state)));
    case Kind::Extent:
    case Kind::Swap:
      return std::string(name(static_cast<ExtentState>(state)));
    case Kind::Worker:
      return std::string(kWorkers[state]);
    case Kind::Region:
      return std::string(name(static_cast<RegionState>(state)));
  }
  return {};
}

}  // namespace

const std::vector<Transition>& all_transitions() {
  static const std::vector<Transition> all = make_transitions();
  return all;
}

std::optional<std::size_t> index_of(const Transition& transition) {
  const auto& all = all_transitions();
  const auto found = std::ranges::find(all, transition);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::string name(const Transition& transition) {
  constexpr std::string_view kKinds[] = {"lease", "extent", "swap", "worker", "region"};
  return fmt::format("{} {} -> {}", kKinds[static_cast<unsigned>(transition.kind)],
                     state_name(transition.kind, transition.from),
                     state_name(transition.kind, transition.to));
}

std::string name(FaultColumn column) {
  return fmt::format("{}:{}", name(column.site),
                     column.action == FaultAction::Kill ? "kill" : "stop");
}

std::string_view name(CardEvent event) {
  constexpr std::string_view kNames[kCardEventCount] = {
      "settle waited for the card",
      "settled immediately",
      "settled by a gate inside a graph",
      "settled by the end of a launch",
      "a queued kernel worked for a revoked lease",
      "a queued kernel found no live sequence",
      "a launch waited for the mirror",
      "a card worked while its worker was stopped",
      "memory was lent again on its worker",
      "a worker reported an unmap that it had not done",
      "a lease ended while its memory was allocated",
      "a lease was revoked before its grant was sent",
      "held memory was released at an exit",
      "released memory was not free again",
      "an allocation failed",
      "clearing failed",
      "an agent ended",
      "an agent ended with pending calls",
      "an agent hung",
      "another agent was started",
  };
  return kNames[static_cast<std::size_t>(event)];
}

std::string_view name(TextEvent event) {
  constexpr std::string_view kNames[kTextEventCount] = {
      "a text continued after the death of its tenant",
      "a text continued after the death of a tenant that resumed it",
      "a text continued after the death of its worker",
      "a text continued after the death of the worker that adopted it",
      "a text continued after the death of a worker during its failover",
      "a text continued after the death of the broker",
      "a text continued after the death of the broker during its adoption",
      "a text continued after the deaths of broker and worker",
      "a text continued in memory of a dead worker",
      "a text continued in memory of a replaced worker",
      "adopted memory had positions that had not arrived",
      "a text was computed again",
      "a text continued from what its worker had kept",
      "a text moved to another lease",
      "another connection joined a text",
      "a text was not known where it was resumed",
      "a text was resumed after its grace",
      "a text continued from a record whose newer slot was torn",
      "a text was whole after deaths",
  };
  return kNames[static_cast<std::size_t>(event)];
}

std::string_view name(AdapterEvent event) {
  constexpr std::string_view kNames[kAdapterEventCount] = {
      "an adapter was registered",
      "an adapter got a new version",
      "an adapter was removed",
      "an adapter was loaded",
      "an adapter was loaded again",
      "an adapter left for lack of room",
      "an adapter left for a text without memory",
      "an adapter was unloaded",
      "a replaced version left",
      "a loaded adapter was revoked",
      "an adapter was revoked while it was filled",
      "a worker died while it filled an adapter",
      "an unfilled adapter ended with its broker",
      "a filled adapter was kept across a restart of the broker",
      "an adapter was refused for a quota",
      "an adapter was refused for lack of memory",
      "an adapter's file had another digest",
      "an adapter's file changed while it was read",
      "an adapter was unknown to a tenant",
      "a text was refused under another version",
      "a text was ended by its adapter's lease",
      "two tenants read a shared adapter together",
      "a text went on under a version that was replaced or removed",
      "a text under an adapter was whole",
      "a text was published under an adapter",
      "a text was published again under an adapter",
      "a text under an adapter read a published one",
      "a text read a published one after its adapter was loaded again",
      "a published text ended with the version of its adapter",
      "a published text was revoked with its adapter",
      "a text was not published under another version",
      "an adapter was revoked while a text was published under it",
  };
  return kNames[static_cast<std::size_t>(event)];
}

Coverage::Coverage() : met_(all_transitions().size()), happened_(all_transitions().size()) {}

void Coverage::met(const Transition& transition, FaultColumn column) {
  if (const auto row = index_of(transition)) ++met_[*row][index_of(column)];
}

void Coverage::happened(const Transition& transition) {
  if (const auto row = index_of(transition)) ++happened_[*row];
}

void Coverage::add(const Coverage& other) {
  for (std::size_t row = 0; row < met_.size(); ++row) {
    happened_[row] += other.happened_[row];
    for (std::size_t i = 0; i < kColumnCount; ++i) met_[row][i] += other.met_[row][i];
  }
  for (std::size_t i = 0; i < kColumnCount; ++i) triggered_[i] += other.triggered_[i];
  for (std::size_t i = 0; i < restarts_.size(); ++i) restarts_[i] += other.restarts_[i];
  for (std::size_t i = 0; i < kCardEventCount; ++i) on_card_[i] += other.on_card_[i];
  for (std::size_t i = 0; i < kTextEventCount; ++i) of_texts_[i] += other.of_texts_[i];
  for (std::size_t i = 0; i < kAdapterEventCount; ++i) of_adapters_[i] += other.of_adapters_[i];
}

std::vector<std::string> Coverage::shortfalls(std::uint64_t least) const {
  std::vector<std::string> found;
  if (std::min(restarts_[0], restarts_[1]) < least)
    found.emplace_back("too few brokers were restarted");
  const auto require = [&](std::string_view event, std::uint64_t times) {
    if (times >= least) return;
    found.push_back(fmt::format("{}: {} times; at least {} required", event, times, least));
  };
  for (std::size_t i = 0; i < kCardEventCount; ++i)
    require(name(static_cast<CardEvent>(i)), on_card_[i]);
  for (std::size_t i = 0; i < kTextEventCount; ++i)
    require(name(static_cast<TextEvent>(i)), of_texts_[i]);
  for (std::size_t i = 0; i < kAdapterEventCount; ++i)
    require(name(static_cast<AdapterEvent>(i)), of_adapters_[i]);
  for (std::size_t row = 0; row < met_.size(); ++row) {
    const Transition& transition = all_transitions()[row];
    if (counts_over_all_faults(transition)) {
      if (happened_[row] < least)
        found.push_back(fmt::format("{}: {} times; at least {} required", name(transition),
                                    happened_[row], least));
      continue;
    }
    for (std::size_t i = 0; i < kColumnCount; ++i) {
      if (met_[row][i] >= least || why_impossible(transition, column_at(i))) continue;
      found.push_back(fmt::format("{} met {} {} times; at least {} required", name(transition),
                                  name(column_at(i)), met_[row][i], least));
    }
  }
  return found;
}

std::vector<std::string> Coverage::wrongly_impossible() const {
  std::vector<std::string> found;
  for (std::size_t row = 0; row < met_.size(); ++row) {
    for (std::size_t i = 0; i < kColumnCount; ++i) {
      const auto why = why_impossible(all_transitions()[row], column_at(i));
      if (!why || met_[row][i] == 0) continue;
      found.push_back(fmt::format("{} met {} {} times, but is declared impossible: {}",
                                  name(all_transitions()[row]), name(column_at(i)), met_[row][i],
                                  *why));
    }
  }
  return found;
}

std::string Coverage::table() const {
  std::string text =
      fmt::format("brokers restarted: {} with kept descriptors, {} with the journal only\n",
                  restarts_[1], restarts_[0]);
  text += "faults triggered\n";
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    text += fmt::format("  {:>9}  {}\n", triggered_[i], name(column_at(i)));
  }
  text += "memory of a card\n";
  for (std::size_t i = 0; i < kCardEventCount; ++i) {
    text += fmt::format("  {:>9}  {}\n", on_card_[i], name(static_cast<CardEvent>(i)));
  }
  text += "texts\n";
  for (std::size_t i = 0; i < kTextEventCount; ++i) {
    text += fmt::format("  {:>9}  {}\n", of_texts_[i], name(static_cast<TextEvent>(i)));
  }
  text += "adapters\n";
  for (std::size_t i = 0; i < kAdapterEventCount; ++i) {
    text += fmt::format("  {:>9}  {}\n", of_adapters_[i], name(static_cast<AdapterEvent>(i)));
  }
  text += "transitions: how often, and fewest meetings with any fault that can meet it\n";
  for (std::size_t row = 0; row < met_.size(); ++row) {
    std::uint64_t fewest = ~std::uint64_t{0};
    std::string where = "no fault";
    for (std::size_t i = 0; i < kColumnCount; ++i) {
      if (met_[row][i] >= fewest || why_impossible(all_transitions()[row], column_at(i))) continue;
      fewest = met_[row][i];
      where = name(column_at(i));
    }
    text += fmt::format("  {:>9}  {:<36} {:>8}  {}\n", happened_[row], name(all_transitions()[row]),
                        where == "no fault" ? 0 : fewest, where);
  }
  return text;
}

}  // namespace leasehold::simulation
