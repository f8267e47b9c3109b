#include "tests/checks/bench/report.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/cli/table.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kWithoutDelay = "without_run_queue_delay";

struct ClockText {
  double ClockTimes::* clock;
  const char* key;
  double target_us;  ///< Design target at p99; 0: none.
};
constexpr ClockText kClocks[] = {{&ClockTimes::refuse_us, "t_refuse_us", 25},
                                 {&ClockTimes::refuse_in_step_us, "t_refuse_in_step_us", 25},
                                 {&ClockTimes::handed_us, "t_handed_us", 0},
                                 {&ClockTimes::error_us, "t_error_us", 300},
                                 {&ClockTimes::quiet_us, "t_quiet_us", 40},
                                 {&ClockTimes::reuse_us, "t_reuse_us", 2000}};

Json four_clocks(const std::vector<const ClockRun*>& runs, bool with_run_queue_delay) {
  Json json = Json::object();
  for (const ClockText& text : kClocks) {
    std::vector<double> values;
    for (const ClockRun* run : runs) {
      const auto more = values_of(*run, text.clock, with_run_queue_delay);
      values.insert(values.end(), more.begin(), more.end());
    }
    json[text.key] = to_json(distribution_of(std::move(values)));
  }
  return json;
}

/// Share of the time in which threads were ready but had no core.
double waiting_share(const RunQueue& seen) {
  const double all = static_cast<double>(seen.ran_ns + seen.waited_ns);
  return all > 0 ? static_cast<double>(seen.waited_ns) / all : 0;
}

Json sites_json(const ClockRun& run) {
  std::map<std::string, std::vector<double>> by_site;
  for (const ClockSample& sample : run.samples) {
    if (sample.times.refuse_us >= 0) by_site[sample.site].push_back(sample.times.refuse_us);
  }
  Json json = Json::object();
  for (auto& [site, values] : by_site) json[site] = to_json(distribution_of(std::move(values)));
  return json;
}

Json run_json(const ClockRun& run) {
  Json json = four_clocks({&run}, true);
  json[kWithoutDelay] = four_clocks({&run}, false);
  json["model"] = run.setup.model;
  json["tenants"] = run.setup.tenants;
  json["threads"] = run.setup.threads;
  json["seed"] = run.setup.seed;
  json["seconds"] = run.seconds;
  json["load"] = run.load;
  json["worker_waiting_share"] = waiting_share(run.worker);
  json["broker_waiting_share"] = waiting_share(run.broker);
  json["t_refuse_us_by_site"] = sites_json(run);
  return json;
}

std::string cell(const Json& clock, const char* key) {
  return fmt::format("{:.1f}", clock.value(key, 0.0));
}

void add_clock_rows(cli::Table& table, const std::string& where, const Json& clocks) {
  for (const ClockText& text : kClocks) {
    const Json& clock = clocks.at(text.key);
    table.rows.push_back({where, text.key, std::to_string(clock.value("n", 0)), cell(clock, "p50"),
                          cell(clock, "p90"), cell(clock, "p99"), cell(clock, "p99_9"),
                          cell(clock, "max")});
  }
}

}  // namespace

Json clocks_json(const std::vector<ClockRun>& runs, std::uint32_t headline_threads) {
  std::vector<const ClockRun*> headline;
  Json each = Json::array();
  for (const ClockRun& run : runs) {
    if (run.setup.threads == headline_threads) headline.push_back(&run);
    each.push_back(run_json(run));
  }
  Json json = four_clocks(headline, true);
  json[kWithoutDelay] = four_clocks(headline, false);
  json["runs"] = std::move(each);
  return json;
}

std::string report_text(const Json& report) {
  std::string text;
  if (report.contains("runs")) {
    cli::Table table{.columns = {{"WHERE"},
                                 {"CLOCK"},
                                 {"N", true},
                                 {"P50", true},
                                 {"P90", true},
                                 {"P99", true},
                                 {"P99.9", true},
                                 {"MAX", true}}};
    for (const Json& run : report.at("runs")) {
      const std::string where = fmt::format("{}, {} tenants, {} threads", run.value("model", ""),
                                            run.value("tenants", 0), run.value("threads", 0));
      add_clock_rows(table, where, run);
    }
    add_clock_rows(table, "one core free", report);
    add_clock_rows(table, "… without run-queue delay", report.at(kWithoutDelay));
    text += cli::render(table) + "µs from the flip.\n\n";
  }
  Json rest = report;
  for (const char* shown : {"runs", kWithoutDelay}) rest.erase(shown);
  for (const ClockText& clock : kClocks) rest.erase(clock.key);
  return text + rest.dump(2) + "\n";
}

std::string limit_checks_text(const std::vector<LimitCheck>& checks) {
  cli::Table table{
      .columns = {
          {"LIMIT"}, {"MEASURED", true}, {"SAMPLES", true}, {"MIN", true}, {"MAX", true}, {""}}};
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  for (const LimitCheck& check : checks) {
    const std::string& per = check.limit.per;
    table.rows.push_back({check.limit.name + (per.empty() ? "" : " / " + per), number(check.value),
                          number(check.samples), number(check.limit.min), number(check.limit.max),
                          check.ok ? "ok" : "NOT OK"});
  }
  return cli::render(table);
}

std::vector<Panel> clock_panels(const std::vector<ClockRun>& runs) {
  std::map<std::uint32_t, Panel> by_threads;
  for (const ClockRun& run : runs) {
    Panel& panel = by_threads[run.setup.threads];
    panel.title = fmt::format("Flip to refusal, error, quiet, reuse: {} compute threads, all runs",
                              run.setup.threads);
    panel.curves.resize(std::size(kClocks));
    for (std::size_t i = 0; i < std::size(kClocks); ++i) {
      const auto more = values_of(run, kClocks[i].clock, true);
      auto& curve = panel.curves[i];
      curve.name = std::string(kClocks[i].key).substr(0, std::string(kClocks[i].key).size() - 3);
      curve.target_us = kClocks[i].target_us;
      curve.values_us.insert(curve.values_us.end(), more.begin(), more.end());
    }
  }
  std::vector<Panel> panels;
  for (auto& [threads, panel] : by_threads) panels.push_back(std::move(panel));
  return panels;
}

}  // namespace leasehold::bench
