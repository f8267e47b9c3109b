#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/soak/counters.hpp"
#include "tests/checks/soak/round.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::soak {

void Summary::add(const RoundResult& round) {
  counters_.add(round.counters);
  ++rounds_;
  for (const runner::Check& check : round.checks) {
    auto summary = std::ranges::find(summaries_, check.promise, &CheckSummary::promise);
    if (summary == summaries_.end()) {
      summary = summaries_.insert(summary, {.promise = check.promise});
    }
    const bool was_passing = summary->passed == summary->rounds;
    ++summary->rounds;
    if (check.ok) ++summary->passed;
    if (was_passing) summary->seen = check.seen;
  }
}

bool Summary::all_passed() const {
  const bool are_enough = counters_.disturbed_texts >= least_disturbed_texts_;
  return rounds_ > 0 && are_enough &&
         std::ranges::all_of(summaries_, [](const CheckSummary& summary) {
           return summary.passed == summary.rounds;
         });
}

std::string Summary::text() const {
  cli::Table table{.columns = {{"WHAT"}, {"COUNT", true}}};
  table.rows.push_back({"rounds", std::to_string(rounds_)});
  for (const auto& [action, count] : runner::named_counts(kChaos, counters_.actions))
    table.rows.push_back({action, std::to_string(count)});
  for (const Figure& figure : kFigures) {
    table.rows.push_back({std::string(figure.name), std::to_string(counters_.*figure.value)});
  }
  for (const auto& [code, count] : counters_.gave_up) {
    table.rows.push_back({"gave up with " + code, std::to_string(count)});
  }
  std::string text = cli::render(table) + "\n";
  for (const CheckSummary& summary : summaries_) {
    const bool ok = summary.passed == summary.rounds;
    text +=
        runner::check_line(ok, summary.promise,
                           fmt::format("{} of {} rounds; {}: {}", summary.passed, summary.rounds,
                                       ok ? "the last" : "the first failure", summary.seen));
  }
  if (counters_.disturbed_texts < least_disturbed_texts_) {
    text += fmt::format("FAILED  {} texts were disturbed and came whole, {} are required\n",
                        counters_.disturbed_texts, least_disturbed_texts_);
  }
  return text;
}

wire::Json Summary::json() const {
  wire::Json actions = wire::Json::object();
  for (const auto& [action, count] : runner::named_counts(kChaos, counters_.actions))
    actions[action] = count;
  wire::Json checks = wire::Json::array();
  for (const CheckSummary& summary : summaries_) {
    checks.push_back({{"promise", summary.promise},
                      {"rounds", summary.rounds},
                      {"passed", summary.passed},
                      {"seen", summary.seen}});
  }
  wire::Json json{{"ok", all_passed()},
                  {"seed", seed_},
                  {"rounds", rounds_},
                  {"kills", kills()},
                  {"actions", std::move(actions)},
                  {"checks", std::move(checks)},
                  {"tenants_gave_up", counters_.gave_up}};
  for (const Figure& figure : kFigures) json[std::string(figure.name)] = counters_.*figure.value;
  return json;
}

std::string round_text(std::uint64_t seed, const RoundResult& round) {
  std::string text = fmt::format("seed {}: {} kills, {} leases, {} tokens", seed,
                                 runner::kills(round.counters.actions), round.counters.leases,
                                 round.counters.tokens);
  for (const std::string& failure : round.failures) text += "\n  gave up  " + failure;
  for (const runner::Check& check : round.checks) {
    if (!check.ok) text += fmt::format("\n  FAILED  {}: {}", check.promise, check.seen);
  }
  return text;
}

}  // namespace leasehold::soak
