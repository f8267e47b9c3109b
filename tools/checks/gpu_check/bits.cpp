// The bits stage: every logit of an F32 model on the GPU, in plain launches, in graphs and in one
// step, has the bits that the CPU computes.
#include <fmt/format.h>

#include <filesystem>

#include "tools/checks/gpu_check/card_placement.hpp"
#include "tools/checks/gpu_check/oracle_file.hpp"
#include "tools/checks/gpu_check/stages.hpp"
#include "tools/checks/gpu_check/token_run.hpp"

namespace leasehold::gpu_check {
namespace {

/// Only F32 matrices are multiplied in the CPU's order on a GPU.
constexpr const char* kModel = "stories260K-f32";
/// More than one partition of attention (256 positions).
constexpr std::size_t kTokens = 300;
constexpr std::size_t kTokensOfTiny = 6;

struct CardRun {
  const char* name;
  const char* key;
  cuda::GraphUse graphs;
  RowsPerStep rows;
};

constexpr CardRun kCardRuns[] = {
    {"one step at a time", "single", cuda::GraphUse::None, RowsPerStep::One},
    {"gated graphs", "graphs", cuda::GraphUse::Gated, RowsPerStep::One},
    {"all rows in one step", "prompt", cuda::GraphUse::None, RowsPerStep::All},
};

/// The oracle's tokens, repeated up to `count`.
std::vector<TokenId> some_tokens(const std::vector<OracleCase>& cases, std::size_t count) {
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    const std::size_t before = tokens.size();
    for (const OracleCase& one : cases)
      for (const TokenId token : one.tokens())
        if (tokens.size() < count) tokens.push_back(token);
    if (tokens.size() == before) break;
  }
  return tokens;
}

/// Returns the number of logits whose bits differ from `cpu`.
Result<std::size_t> compare(Card& card, const std::string& model, std::span<const TokenId> tokens,
                            const CardRun& way, const std::vector<Logits>& cpu) {
  CardPlacement placement(card, {.graphs = way.graphs}, CardPlacement::WeightsSource::File);
  const TokenRun run = TRY(
      run_tokens(options_for(model, tokens.size(), &placement), tokens, tokens.size(), way.rows));
  if (way.graphs != cuda::GraphUse::None && run.units_of_last_step > kMaxUnitsOfGraph)
    return fail(Errc::DeviceUnsupported, "the driver did not build a graph of the step");
  return count_differing(cpu, run.logits);
}

}  // namespace

Result<void> check_bits(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const std::string model = settings.model_dir + "/" + kModel + ".gguf";
  const std::vector<TokenId> tokens =
      some_tokens(TRY(read_oracle(model)), settings.tiny ? kTokensOfTiny : kTokens);
  const TokenRun cpu = TRY(run_tokens(options_for(model, tokens.size(), nullptr), tokens,
                                      tokens.size(), RowsPerStep::All));
  const std::size_t n_logits = tokens.size() * cpu.logits.front().size();
  report.numbers()["bits"] = {{"model", kModel}, {"logits", n_logits}};
  for (const CardRun& way : kCardRuns) {
    const std::string what = fmt::format("{}, {}: the CPU's bits", kModel, way.name);
    const Result<std::size_t> differing = compare(*card, model, tokens, way, cpu.logits);
    if (!differing && differing.error().code == Errc::DeviceUnsupported) {
      report.unknown(what, differing.error().detail);
      continue;
    }
    const std::size_t count = TRY(differing);
    report.numbers()["bits"]["differing"][way.key] = count;
    report.require(what, count == 0, fmt::format("{} of {} logits differ", count, n_logits));
  }
  report.measured("quantised weights: the CPU's bits",
                  "not compared: a GPU multiplies halves, a CPU 8-bit integers or f32");
  return {};
}

}  // namespace leasehold::gpu_check
