/// leasehold-confine-bench: measures how long the faults of one request delay other requests of the
/// same engine. It makes the faults of confinement_test.cpp, and in turns the same load without the
/// fault. The report has the CPU time between two tokens of a bystander, and medians over the
/// rounds of its quantiles' ratios.
///
/// Exit codes: 0 done (and within the limits), 1 a limit is exceeded or a check of a fault failed,
/// 2 wrong usage, otherwise the code of the error (common/errc.hpp).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/run_report.hpp"
#include "tests/property/damaged_model.hpp"
#include "tests/property/misfortunes.hpp"

namespace leasehold::testing {
namespace {

using nlohmann::json;

/// Of all rounds.
struct Gaps {
  std::vector<double> without_us, with_us;
  std::vector<double> p50_ratios, p99_ratios;  ///< [rounds]
};

constexpr std::uint32_t kMeasuredTokens = 400;  // of a bystander; blocks run out before its end

std::uint32_t confine_rounds = 0;
json confine_report;  // of the test case below

json json_of(const Gaps& gaps) {
  return {{"without_us", bench::to_json(bench::distribution_of(gaps.without_us))},
          {"with_us", bench::to_json(bench::distribution_of(gaps.with_us))},
          {"p50_ratio", bench::median_of(gaps.p50_ratios)},
          {"p99_ratio", bench::median_of(gaps.p99_ratios)}};
}

std::vector<double> gaps_us(const std::string& model, const Misfortune& misfortune,
                            bool is_faulty) {
  ConfinementScene scene(
      model, {.is_faulty = is_faulty, .reference = false, .bystander_tokens = kMeasuredTokens});
  return run_bystanders(scene, misfortune).gaps_us;
}

/// The two runs follow one another, so that other load of the machine disturbs both.
void add_round(const std::string& model, const Misfortune& misfortune, Gaps& gaps) {
  const std::vector<double> without_us = gaps_us(model, misfortune, false);
  const std::vector<double> with_us = gaps_us(model, misfortune, true);
  const bench::Distribution without = bench::distribution_of(without_us);
  const bench::Distribution with = bench::distribution_of(with_us);
  gaps.p50_ratios.push_back(with.p50 / without.p50);
  gaps.p99_ratios.push_back(with.p99 / without.p99);
  gaps.without_us.insert(gaps.without_us.end(), without_us.begin(), without_us.end());
  gaps.with_us.insert(gaps.with_us.end(), with_us.begin(), with_us.end());
}

Result<bench::Report> measure_confinement() {
  if (Catch::Session().run() != 0)
    return fail(Errc::SystemError, "a fault did not end as it should; see the output above");
  return bench::Report{.json = confine_report, .text = confine_report.dump(2) + "\n"};
}

}  // namespace

TEST_CASE("the gaps between tokens of others, with and without each fault") {
  const std::string model = model_with_nan_embedding(kPoisonedToken);
  std::map<std::string, Gaps> by_fault;
  for (std::uint32_t round = 0; round < confine_rounds; ++round) {
    for (const Misfortune& misfortune : misfortunes())
      add_round(model, misfortune, by_fault[misfortune.name]);
  }
  std::filesystem::remove(model);
  json faults;
  double worst = 0;
  for (const auto& [name, gaps] : by_fault) {
    faults[name] = json_of(gaps);
    worst = std::max(worst, faults[name]["p99_ratio"].get<double>());
  }
  confine_report = {{"confine", {{"faults", faults}, {"worst_p99_ratio", worst}}}};
}

}  // namespace leasehold::testing

int main(int argc, char** argv) {
  using namespace leasehold;
  bench::ReportOptions options{.name = "confine"};
  testing::confine_rounds = 10;
  CLI::App app{"Measure how long the faults of one request delay others",
               "leasehold-confine-bench"};
  app.set_version_flag("--version", "leasehold-confine-bench " + std::string(version()));
  app.add_option("--rounds", testing::confine_rounds, "Rounds, each with all faults")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  bench::describe_report(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<int> done = bench::run_report(options, testing::measure_confinement);
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
