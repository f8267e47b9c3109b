// The correctness stage compares small models with their oracles and with the CPU, checks that one
// step and single tokens give the same bits, and runs the test programs of the bundle.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/checks/gpu_check/card_placement.hpp"
#include "tests/checks/gpu_check/stages.hpp"
#include "tests/checks/gpu_check/token_run.hpp"

namespace leasehold::gpu_check {
namespace {

namespace fs = std::filesystem;

/// The CPU multiplies in f32, the GPU in f16 with 11 bits, so logits of about 10 differ by less
/// than 0.1.
constexpr double kMaxFromCpu = 0.1;
/// The oracle rounds activations to 8 bits, so its choice may differ on near ties.
constexpr double kDecided = 1.0;

double farthest(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t token = 0; token < a[i].size(); ++token) {
      const double difference = std::abs(double{a[i][token]} - b[i][token]);
      most = std::max(most, std::isnan(difference) ? HUGE_VAL : difference);
    }
  }
  return most;
}

/// Results over all answers of an oracle.
struct Found {
  double from_cpu = 0;
  int decided = 0;
  int wrong = 0;
  bool same = true;

  void compare(const OracleCase& one, const std::vector<Logits>& card,
               const std::vector<Logits>& cpu) {
    from_cpu = std::max(from_cpu, farthest(card, cpu));
    for (std::size_t i = 0; i < card.size(); ++i) {
      if (one.margins[i] <= kDecided) continue;
      ++decided;
      wrong += std::ranges::max_element(card[i]) - card[i].begin() != one.answers[i] ? 1 : 0;
    }
  }
};

/// Runs one case on the CPU, on the GPU in one step, and on the GPU token by token.
Result<void> check_case(Card& card, const std::string& model, const OracleCase& one, Found& found) {
  CardPlacement placement(card, {.graphs = cuda::GraphUse::Gated},
                          CardPlacement::WeightsSource::File);
  const std::vector<TokenId> tokens = one.tokens();
  const std::size_t n = one.answers.size();
  const LocalOptions on_card = options_for(model, tokens.size(), &placement);
  const TokenRun cpu =
      TRY(run_tokens(options_for(model, tokens.size(), nullptr), tokens, n, RowsPerStep::All));
  const TokenRun whole = TRY(run_tokens(on_card, tokens, n, RowsPerStep::All));
  const TokenRun single = TRY(run_tokens(on_card, tokens, n, RowsPerStep::One));
  found.compare(one, whole.logits, cpu.logits);
  found.same = found.same && count_differing(whole.logits, single.logits) == 0;
  return {};
}

Result<void> check_model(StageReport& report, Card& card, const std::string& model,
                         std::size_t most_cases, std::size_t most_answers) {
  std::vector<OracleCase> cases = TRY(read_oracle(model));
  if (cases.size() > most_cases) cases.resize(most_cases);
  Found found;
  for (OracleCase& one : cases) {
    if (one.answers.size() > most_answers) one.answers.resize(most_answers);
    TRY(check_case(card, model, one, found));
  }
  const std::string title = fs::path(model).stem();
  report.numbers()["models"].push_back({{"model", title},
                                        {"from_cpu", found.from_cpu},
                                        {"decided", found.decided},
                                        {"wrong", found.wrong},
                                        {"same_bits", found.same}});
  report.require(title + ": logits as the CPU's", found.from_cpu <= kMaxFromCpu,
                 fmt::format("at most {:.4f} apart", found.from_cpu));
  report.require(title + ": the oracle's tokens", found.wrong == 0,
                 fmt::format("{} wrong of {} decided", found.wrong, found.decided));
  report.require(title + ": one step, or a graph for each token: same bits", found.same);
  return {};
}

std::vector<std::string> models_in(const std::string& directory) {
  std::vector<std::string> models;
  std::error_code ignored;  // a missing directory has no models
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    fs::path oracle = entry.path();
    if (entry.path().extension() == ".gguf" && fs::exists(oracle.replace_extension(".json")))
      models.push_back(entry.path());
  }
  std::ranges::sort(models);
  return models;
}

struct TestProgram {
  const char* name;
  const char* short_run;  ///< Tests for a driver that computes on the CPU; empty: all.
};

constexpr TestProgram kTestPrograms[] = {{"backend_contract_test", "cuda backend: an F32 matmul*"},
                                         {"device_region_test", ""},
                                         {"registered_region_test", ""}};

/// The last line of the log, which is Catch's summary.
std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

/// Runs a test program of the bundle, which opens the GPU itself.
void run_tests(const Settings& settings, StageReport& report, const TestProgram& row) {
  const std::string program = row.name;
  const std::string path = settings.bin_dir + "/" + program;
  if (!fs::exists(path)) return report.unknown(program, "not in this bundle");
  const std::string log = settings.out_dir + "/" + program + ".log";
  std::vector<std::string> argv{path, "--reporter", "compact"};
  if (settings.tiny && *row.short_run != '\0') argv.emplace_back(row.short_run);
  const Result<int> status = run_to_end({.argv = std::move(argv), .log_path = log});
  if (!status) return report.failed(program, status.error());
  report.numbers()["test_programs"][program] = *status;
  report.require(program, *status == 0, fmt::format("{} (exit code {})", last_line(log), *status));
}

}  // namespace

Result<void> check_correctness(const Settings& settings, StageReport& report) {
  {
    const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
    std::vector<std::string> models = models_in(settings.model_dir);
    // The stories models are the smallest and come last.
    if (settings.tiny && !models.empty()) models.erase(models.begin(), models.end() - 1);
    if (models.empty()) report.unknown("models", "none with an oracle in " + settings.model_dir);
    for (const std::string& model : models) {
      const Result<void> checked =
          check_model(report, *card, model, settings.tiny ? 1 : 100, settings.tiny ? 3 : 100);
      if (!checked) report.failed(fs::path(model).stem(), checked.error());
      if (!checked && checked.error().code == Errc::DeviceFault) return checked;
    }
  }
  for (const TestProgram& program : kTestPrograms) run_tests(settings, report, program);
  return {};
}

Result<void> run_short(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const std::vector<std::string> models = models_in(settings.model_dir);
  if (models.empty())
    return fail(Errc::FileNotFound, "no model with an oracle in " + settings.model_dir);
  return check_model(report, *card, models.back(), 1, 4);
}

}  // namespace leasehold::gpu_check
