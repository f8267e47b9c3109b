#include "tools/checks/soak/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/cli/table.hpp"

namespace leasehold::soak {
namespace {

struct Figure {
  std::string_view name;
  std::uint64_t Tally::* value;
};

constexpr Figure kFigures[] = {
    {"brokers_started", &Tally::brokers}, {"workers_started", &Tally::workers},
    {"tenants_started", &Tally::tenants}, {"tenants_answered", &Tally::answered},
    {"leases_held", &Tally::leases},      {"revocations_told", &Tally::revoked_leases},
    {"tokens_told", &Tally::tokens},      {"extents_read", &Tally::extents_read}};

}  // namespace

void Summary::add(const RoundResult& round) {
  tally_.add(round.tally);
  ++rounds_;
  for (const demo::Check& check : round.checks) {
    auto verdict = std::ranges::find(verdicts_, check.promise, &Verdict::promise);
    if (verdict == verdicts_.end()) {
      verdict = verdicts_.insert(verdict, {.promise = check.promise});
    }
    const bool was_kept = verdict->kept == verdict->rounds;
    ++verdict->rounds;
    if (check.ok) ++verdict->kept;
    if (was_kept) verdict->seen = check.seen;
  }
}

bool Summary::all_kept() const {
  return rounds_ > 0 && std::ranges::all_of(verdicts_, [](const Verdict& verdict) {
           return verdict.kept == verdict.rounds;
         });
}

std::string Summary::text() const {
  cli::Table table{.columns = {{"WHAT"}, {"COUNT", true}}};
  table.rows.push_back({"rounds", std::to_string(rounds_)});
  for (int i = 0; i < kDeedKindCount; ++i) {
    table.rows.push_back({std::string(name(static_cast<DeedKind>(i))),
                          std::to_string(tally_.deeds[static_cast<std::size_t>(i)])});
  }
  for (const Figure& figure : kFigures) {
    table.rows.push_back({std::string(figure.name), std::to_string(tally_.*figure.value)});
  }
  for (const auto& [code, count] : tally_.gave_up) {
    table.rows.push_back({"gave up with " + code, std::to_string(count)});
  }
  std::string text = cli::render(table) + "\n";
  for (const Verdict& verdict : verdicts_) {
    const bool ok = verdict.kept == verdict.rounds;
    text += fmt::format("{}  {} ({} of {} rounds; {}: {})\n", ok ? "ok    " : "FAILED",
                        verdict.promise, verdict.kept, verdict.rounds,
                        ok ? "the last" : "the first that broke it", verdict.seen);
  }
  return text;
}

wire::Json Summary::json() const {
  wire::Json deeds = wire::Json::object();
  for (int i = 0; i < kDeedKindCount; ++i) {
    deeds[std::string(name(static_cast<DeedKind>(i)))] = tally_.deeds[static_cast<std::size_t>(i)];
  }
  wire::Json checks = wire::Json::array();
  for (const Verdict& verdict : verdicts_) {
    checks.push_back({{"promise", verdict.promise},
                      {"rounds", verdict.rounds},
                      {"kept", verdict.kept},
                      {"seen", verdict.seen}});
  }
  wire::Json json{{"ok", all_kept()},
                  {"seed", settings_.seed},
                  {"rounds", rounds_},
                  {"kills", kills()},
                  {"deeds", std::move(deeds)},
                  {"checks", std::move(checks)},
                  {"tenants_gave_up", tally_.gave_up}};
  for (const Figure& figure : kFigures) json[std::string(figure.name)] = tally_.*figure.value;
  return json;
}

std::string round_text(std::uint64_t seed, const RoundResult& round) {
  std::string text = fmt::format("seed {}: {} kills, {} leases, {} tokens", seed,
                                 round.tally.kills(), round.tally.leases, round.tally.tokens);
  for (const demo::Check& check : round.checks) {
    if (!check.ok) text += fmt::format("\n  FAILED  {}: {}", check.promise, check.seen);
  }
  return text;
}

}  // namespace leasehold::soak
