#include "tests/checks/soak/hostile/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::soak {
namespace {

using Json = nlohmann::json;

constexpr WindowKind kKinds[] = {WindowKind::Calm, WindowKind::Control, WindowKind::Hostile};
constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kMinValuesPerWindowKind = 100;

std::string_view name(WindowKind kind) {
  switch (kind) {
    case WindowKind::Calm:
      return "calm";
    case WindowKind::Control:
      return "control";
    case WindowKind::Hostile:
      return "hostile";
  }
  return "?";
}

std::vector<double> all_gaps_us(const HostileRecord& record, WindowKind kind) {
  std::vector<double> gaps;
  for (const Window& window : record.windows) {
    if (window.kind != kind) continue;
    for (const runner::Text& text : record.texts)
      std::ranges::copy(gaps_us(text.record, window), std::back_inserter(gaps));
  }
  return gaps;
}

std::vector<double> http_durations_us(const HostileRecord& record, WindowKind kind) {
  std::vector<double> durations;
  for (const HttpRequest& request : record.http_requests) {
    const bool is_inside = std::ranges::any_of(record.windows, [&](const Window& window) {
      return window.kind == kind && request.from >= window.from && request.to <= window.to;
    });
    if (is_inside)
      durations.push_back(static_cast<double>((request.to - request.from).count()) / 1e3);
  }
  return durations;
}

// ----------------------------------------------------------------------------------------- figures

using Clocks = std::map<std::string, std::vector<double>>;

/// The threads that run between the flip and the end of a clock.
constexpr const char* kEngineThreads[] = {"main"};
constexpr const char* kDeliveryThreads[] = {"main", "io", "tenants"};
constexpr const char* kBrokerThreads[] = {"main"};
constexpr const char* kClockNames[] = {"t_refuse_us", "t_handed_us", "t_error_us", "t_quiet_us"};

double waited_us(const bench::ThreadRunQueues& threads, std::span<const char* const> names) {
  std::uint64_t ns = 0;
  for (const char* name : names) {
    const auto found = threads.find(name);
    if (found != threads.end()) ns += found->second.waited_ns;
  }
  return static_cast<double>(ns) / 1e3;
}

/// Time from the flip until the holder read the typed end; nothing if the holder was between two
/// requests.
std::optional<double> error_us(const HostileRecord& record, const HonestRevocation& revocation) {
  for (const runner::Text& text : record.texts) {
    for (const runner::TenantEvent& event : text.record.reported) {
      const bool is_its_end = event.event == "revoked" && event.lease == revocation.lease;
      if (!is_its_end || revocation.flipped == TimePoint{}) continue;
      return static_cast<double>((event.at - revocation.flipped).count()) / 1e3;
    }
  }
  return std::nullopt;
}

/// Clocks as measured, and without the time in which their threads waited for a core.
struct ClockValues {
  Clocks measured, without_run_queue_delay;

  void add(const char* name, double us, double delay_us) {
    measured[name].push_back(us);
    without_run_queue_delay[name].push_back(std::max(us - delay_us, 0.0));
  }
};

ClockValues clocks_of(const HostileRecord& record, WindowKind kind) {
  ClockValues values;
  for (const HonestRevocation& revocation : record.revocations) {
    if (revocation.window != kind) continue;
    const auto& [broker, worker] = revocation.threads;
    const double engine = waited_us(worker, kEngineThreads);
    const double delivery = waited_us(worker, kDeliveryThreads);
    const auto add = [&](const char* name, std::int64_t ns, double delay_us) {
      if (ns >= 0) values.add(name, static_cast<double>(ns) / 1e3, delay_us);
    };
    add("t_refuse_us", revocation.clocks.refuse_ns, engine);
    add("t_handed_us", revocation.clocks.error_ns, delivery);
    add("t_quiet_us", revocation.clocks.quiet_ns, engine + waited_us(broker, kBrokerThreads));
    if (const auto us = error_us(record, revocation)) values.add("t_error_us", *us, delivery);
  }
  return values;
}

Json clocks_json(const HostileRecord& record, WindowKind kind) {
  ClockValues values = clocks_of(record, kind);
  Json json = Json::object();
  for (const char* name : kClockNames) {
    json[name] = bench::to_json(bench::distribution_of(std::move(values.measured[name])));
    json["without_run_queue_delay"][name] =
        bench::to_json(bench::distribution_of(std::move(values.without_run_queue_delay[name])));
  }
  return json;
}

double ratio(double value, double base) {
  return base > 0 ? value / base : 0;
}

/// Compares durations between the kinds of windows.
using ValuesOf = std::vector<double> (*)(const HostileRecord& record, WindowKind kind);
Json windows_json(const HostileRecord& record, ValuesOf values_us) {
  std::map<WindowKind, bench::Distribution> values;
  Json json = Json::object();
  for (const WindowKind kind : kKinds) {
    values[kind] = bench::distribution_of(values_us(record, kind));
    json[std::string(name(kind))] = bench::to_json(values[kind]);
  }
  const auto& hostile = values[WindowKind::Hostile];
  for (const WindowKind kind : {WindowKind::Calm, WindowKind::Control}) {
    // A ratio of too few values is meaningless; without it `--check` reports a missing figure.
    const auto& base = values[kind];
    if (static_cast<double>(std::min(base.count, hostile.count)) < kMinValuesPerWindowKind)
      continue;
    json[fmt::format("p50_ratio_to_{}", name(kind))] = ratio(hostile.p50, base.p50);
    json[fmt::format("p99_ratio_to_{}", name(kind))] = ratio(hostile.p99, base.p99);
  }
  return json;
}

Json threads_json(const bench::ThreadRunQueues& threads, double seconds) {
  Json json = Json::object();
  for (const auto& [name, thread] : threads) {
    json[name] = {{"ran", ratio(static_cast<double>(thread.ran_ns) / 1e6, seconds)},
                  {"waited", ratio(static_cast<double>(thread.waited_ns) / 1e6, seconds)}};
  }
  return json;
}

/// Times of the servers' threads in milliseconds per second of windows. A thread that runs while
/// the engine's thread waits for a core competes with it.
Json server_threads_json(const HostileRecord& record) {
  Json json = Json::object();
  for (const WindowKind kind : kKinds) {
    ServerThreads sum;
    double seconds = 0;
    for (const Window& window : record.windows) {
      if (window.kind != kind) continue;
      bench::add(sum.broker, window.threads.broker);
      bench::add(sum.worker, window.threads.worker);
      seconds += std::chrono::duration<double>(window.to - window.from).count();
    }
    json[std::string(name(kind))] = {{"broker", threads_json(sum.broker, seconds)},
                                     {"worker", threads_json(sum.worker, seconds)}};
  }
  return json;
}

Json attackers_json(const HostileRecord& record) {
  Json attacks = Json::object();
  for (const auto& [attack, outcome] : record.attacks) attacks[attack] = attack::to_json(outcome);
  const auto share = [](const AttackerCpu& cpu) { return ratio(cpu.cpu_s, cpu.window_s); };
  return {{"attacks", std::move(attacks)},
          {"cores_used", {{"control", share(record.control)}, {"hostile", share(record.hostile)}}},
          {"users", record.has_other_users ? "one for each attacker"
                                           : "all as the broker's user; needs root for others"}};
}

std::string attacks_text(const Json& attacks) {
  cli::Table table{
      .columns = {
          {"ATTACK"}, {"RUNS", true}, {"CONNECTIONS", true}, {"MIB SENT", true}, {"REPLIES"}}};
  for (const auto& [attack, outcome] : attacks.items()) {
    std::string replies;
    for (const auto& [kind, count] : outcome.at("replies").items())
      replies +=
          fmt::format("{}{} {}", replies.empty() ? "" : ", ", count.get<std::uint64_t>(), kind);
    table.rows.push_back({attack, std::to_string(outcome.at("runs").get<std::uint64_t>()),
                          std::to_string(outcome.at("connections").get<std::uint64_t>()),
                          fmt::format("{:.1f}", outcome.at("bytes_sent").get<double>() / kMiB),
                          replies});
  }
  return cli::render(table);
}

/// A table of "ran / waited", in ms per second of windows.
std::string threads_text(const Json& kinds) {
  cli::Table table{.columns = {{"THREAD, ms/s"}}};
  for (const WindowKind kind : kKinds)
    table.columns.push_back({fmt::format("{}: RAN / WAITED", name(kind)), true});
  for (const auto& [process, threads] : kinds.at("hostile").items()) {
    for (const auto& thread : threads.items()) {
      std::vector<std::string> row{process + " " + thread.key()};
      for (const WindowKind kind : kKinds) {
        const Json& of_kind = kinds.at(std::string(name(kind))).at(process);
        const Json seen = of_kind.value(thread.key(), Json{{"ran", 0.0}, {"waited", 0.0}});
        row.push_back(fmt::format("{:.1f} / {:.1f}", seen.at("ran").get<double>(),
                                  seen.at("waited").get<double>()));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return cli::render(table);
}

}  // namespace

std::vector<double> gaps_us(const runner::TenantRecord& record, const Window& window) {
  std::vector<double> gaps;
  const auto& times = record.token_times;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const TimePoint from = times[i - 1], to = times[i];
    if (from < window.from || to > window.to) continue;
    const bool is_plain = std::ranges::none_of(
        record.reported,
        [&](const runner::TenantEvent& event) { return from <= event.at && event.at <= to; });
    if (is_plain) gaps.push_back(static_cast<double>((to - from).count()) / 1e3);
  }
  return gaps;
}

Json hostile_json(const HostileRecord& record, double units_per_step) {
  const auto judged = judge_hostile(record);
  Json gaps = windows_json(record, all_gaps_us);
  const double step_us = gaps["calm"].value("p50", 0.0);
  Json clocks = Json::object();
  for (const WindowKind kind : kKinds) clocks[std::string(name(kind))] = clocks_json(record, kind);
  return {{"ok", runner::all_ok(judged)},
          {"inter_token_us", std::move(gaps)},
          {"http_request_us", windows_json(record, http_durations_us)},
          {"threads_ms_per_s", server_threads_json(record)},
          {"nice", {{"broker", record.broker_nice}, {"worker", record.worker_nice}}},
          {"unit_us", ratio(step_us, units_per_step)},
          {"clocks", std::move(clocks)},
          {"texts", record.texts.size()},
          {"revocations", record.revocations.size()},
          {"worker_growth_bytes", record.worker.growth_bytes()},
          {"broker_growth_bytes", record.broker.growth_bytes()},
          {"state_disk",
           {{"size_bytes", record.state_disk.size_bytes},
            {"peak_bytes", record.state_disk.peak_bytes}}},
          {"attackers", attackers_json(record)},
          {"checks", runner::checks_json(judged)}};
}

std::string hostile_text(const Json& report) {
  Json rest = report;
  rest.erase("checks");
  rest.erase("threads_ms_per_s");
  rest["attackers"].erase("attacks");
  std::string text = attacks_text(report.at("attackers").at("attacks")) + "\n" +
                     threads_text(report.at("threads_ms_per_s")) + "\n" + rest.dump(2) + "\n\n";
  for (const Json& check : report.at("checks"))
    text += runner::check_line(check.at("ok").get<bool>(), check.at("promise").get<std::string>(),
                               check.at("seen").get<std::string>());
  return text;
}

}  // namespace leasehold::soak
