// The bits stage compares every logit of quantised models in int8, with keys and values in f16 or
// q8_0, and of an F32 model with the bits that the CPU computes: in plain launches, in graphs and
// in one step; also under an adapter, whose lease it then revokes.
#include <fmt/format.h>

#include <filesystem>

#include "kernels/model/kv_type.hpp"
#include "tests/checks/gpu_check/card_placement.hpp"
#include "tests/checks/gpu_check/stages.hpp"
#include "tests/checks/gpu_check/token_run.hpp"

namespace leasehold::gpu_check {
namespace {

/// A model and how it is computed. Int8 comes first: it decides whether a text may move between a
/// card and a CPU.
struct Subject {
  const char* model;
  Arithmetic arithmetic;
  KvType kv_type = KvType::F16;
  bool has_adapter = false;
};
constexpr Subject kInt8Subjects[] = {{"stories260K-q8_0", Arithmetic::Int8},
                                     {"kq-llama-q4_k_m", Arithmetic::Int8},
                                     {"kq-llama-q2_k", Arithmetic::Int8},
                                     {"kq-llama-q6_k", Arithmetic::Int8}};
/// The heads of the stories models are too narrow for q8_0.
constexpr Subject kQ8Keys{"kq-llama-q4_k_m", Arithmetic::Int8, KvType::Q8_0};
constexpr Subject kAdapted{
    .model = "stories260K-q8_0", .arithmetic = Arithmetic::Int8, .has_adapter = true};
constexpr Subject kFloats{"stories260K-f32", Arithmetic::F32};
/// More than one partition of attention (256 positions).
constexpr std::size_t kTokens = 300;
constexpr std::size_t kTokensOfTiny = 6;

struct CardRun {
  const char* name;
  const char* key;
  cuda::GraphUse graphs;
  RowsPerStep rows;
  bool starts_early = true;
};

constexpr CardRun kCardRuns[] = {
    {"one step at a time", "single", cuda::GraphUse::None, RowsPerStep::One},
    {"gated graphs", "graphs", cuda::GraphUse::Gated, RowsPerStep::One},
    {"all rows in one step", "prompt", cuda::GraphUse::None, RowsPerStep::All},
    {"gated graphs without early starts", "graphs_not_early", cuda::GraphUse::Gated,
     RowsPerStep::One, false},
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

LocalOptions options_of(const Subject& subject, const std::string& path, std::size_t n_tokens,
                        LocalPlacement* placement) {
  LocalOptions options = options_for(path, n_tokens, placement);
  options.arithmetic = subject.arithmetic;
  options.kv_type = subject.kv_type;
  if (subject.has_adapter) options.adapters = {{.rank = 8, .seed = 1}};
  return options;
}

/// The CPU's results, with which a subject's logits are compared.
struct Expected {
  std::string path;
  std::vector<TokenId> tokens;
  std::vector<Logits> logits;  ///< Computed by the CPU.
};

Result<Expected> expected_of(const Settings& settings, const Subject& subject) {
  Expected expected{.path = settings.model_dir + "/" + subject.model + ".gguf"};
  expected.tokens =
      some_tokens(TRY(read_oracle(expected.path)), settings.tiny ? kTokensOfTiny : kTokens);
  const std::size_t n_tokens = expected.tokens.size();
  expected.logits = TRY(run_tokens(options_of(subject, expected.path, n_tokens, nullptr),
                                   expected.tokens, n_tokens, RowsPerStep::All))
                        .logits;
  return expected;
}

/// Returns the number of logits whose bits differ from the CPU's.
Result<std::size_t> compare(Card& card, const Subject& subject, const Expected& expected,
                            const CardRun& way) {
  CardPlacement placement(
      card,
      {.rows = cuda::RowArithmetic::Floats, .graphs = way.graphs, .starts_early = way.starts_early},
      CardPlacement::WeightsSource::File);
  const std::size_t n_tokens = expected.tokens.size();
  const TokenRun run = TRY(run_tokens(options_of(subject, expected.path, n_tokens, &placement),
                                      expected.tokens, n_tokens, way.rows));
  if (way.graphs != cuda::GraphUse::None && run.units_of_last_step > kMaxUnitsOfGraph)
    return fail(Errc::DeviceUnsupported, "the driver did not build a graph of the step");
  return count_differing(expected.logits, run.logits);
}

/// Returns the numbers of the subject: {"model", "logits", "differing": {way: count}}.
Result<Json> check_subject(const Settings& settings, StageReport& report, Card& card,
                           const Subject& subject) {
  const Expected expected = TRY(expected_of(settings, subject));
  const std::size_t n_logits = expected.tokens.size() * expected.logits.front().size();
  Json numbers = {{"model", subject.model}, {"logits", n_logits}};
  for (const CardRun& way : kCardRuns) {
    if (!way.starts_early && subject.arithmetic != Arithmetic::Int8) continue;  // no kernel does
    const std::string what = fmt::format("{} in {}{}, {}: the CPU's bits", subject.model,
                                         announced_arithmetic(subject.arithmetic, subject.kv_type),
                                         subject.has_adapter ? " under an adapter" : "", way.name);
    const Result<std::size_t> differing = compare(card, subject, expected, way);
    if (!differing && differing.error().code == Errc::DeviceUnsupported) {
      report.unknown(what, differing.error().detail);
      continue;
    }
    const std::size_t count = TRY(differing);
    numbers["differing"][way.key] = count;
    report.require(what, count == 0, fmt::format("{} of {} logits differ", count, n_logits));
  }
  return numbers;
}

/// The first of two sequences has an adapter, whose lease is revoked between two steps.
Result<void> check_revoked_adapter(const Settings& settings, StageReport& report, Card& card) {
  CardPlacement placement(card, {.graphs = cuda::GraphUse::Gated},
                          CardPlacement::WeightsSource::File);
  LocalOptions options = options_of(kAdapted, settings.model_dir + "/" + kAdapted.model + ".gguf",
                                    kTokensOfTiny, &placement);
  options.sequences = 2;
  const std::unique_ptr<LocalModel> model = TRY(LocalModel::load(options));
  model->use_adapter(0, 0);
  TRY(model->forward(text_rows(2, 1)));
  const bool both = model->live() == 0b11;
  model->revoke_adapter(0);
  TRY(model->forward(text_rows(2, 1, 1)));
  report.require("a revoked adapter ends the rows that use it, and no others",
                 both && model->live() == 0b10, fmt::format("live {:#b}", model->live()));
  return {};
}

}  // namespace

Result<void> check_bits(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  for (const Subject& subject : kInt8Subjects) {
    const Json numbers = TRY(check_subject(settings, report, *card, subject));
    report.numbers()["bits"]["int8"].push_back(numbers);
    if (settings.tiny) break;
  }
  const Json q8_keys = TRY(check_subject(settings, report, *card, kQ8Keys));
  report.numbers()["bits"]["q8_0_keys"] = q8_keys;
  const Json adapted = TRY(check_subject(settings, report, *card, kAdapted));
  report.numbers()["bits"]["adapted"] = adapted;
  TRY(check_revoked_adapter(settings, report, *card));
  const Json floats = TRY(check_subject(settings, report, *card, kFloats));
  report.numbers()["bits"].update(floats);
  report.measured("halves: the CPU's bits", "not compared: --arithmetic f16 has bits of its own");
  return {};
}

}  // namespace leasehold::gpu_check
