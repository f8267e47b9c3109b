// The stages bandwidth (best rates of the GPU, one matmul per format) and speed (models of real
// shapes).
#include <fmt/format.h>

#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

/// A small shape whose rows are whole super-blocks.
constexpr make_model::ModelShape kTiny{
    .layers = 2, .embd = 256, .heads = 4, .kv_heads = 2, .ffn = 512, .vocab = 320, .context = 512};

Result<BenchCase> make_case(const Settings& settings, std::string_view shape, Mix mix) {
  BenchCase one{.title = fmt::format("{} {}", settings.tiny ? "tiny" : shape, name(mix)),
                .mix = mix,
                .shape = kTiny,
                .batches = {1, 2},
                .context = 24,
                .is_quantised = mix != Mix::F16,
                .repeats = {.warm = 1, .count = 3}};
  if (!settings.tiny) {
    one.shape = TRY(make_model::named_shape(shape));
    one.batches = {1, 8, 32};
    one.context = 512;
    one.repeats = {};
    one.has_targets = shape == "7b";
  }
  one.file = TRY(write_shape(one.shape, mix, settings.out_dir + "/shape.gguf"));
  return one;
}

struct CaseName {
  const char* shape;
  Mix mix;
};

/// Shapes with targets come first, because the time may run out.
constexpr CaseName kCases[] = {
    {"7b", Mix::Q4KM}, {"7b", Mix::Q8}, {"7b", Mix::F16}, {"0.5b", Mix::Q8}, {"0.5b", Mix::F16}};
/// After this case the formats of a fit are measured.
constexpr CaseName kFitted = kCases[1];

/// Reports the fixed time per layer and the rate of steps of the shape with targets, from its two
/// formats, with early starts and without.
void report_fit(StageReport& report, const Int8Steps& steps, std::uint32_t layers) {
  for (const auto& [step, cost] : steps) {
    const auto& [mix, starts_early, batch] = step;
    const auto large = steps.find({Mix::Q8, starts_early, batch});
    if (mix != Mix::Q4KM || large == steps.end()) continue;
    const StepFit fit = fit_steps(cost, large->second);
    const double fixed_us = fit.fixed_seconds / layers * 1e6;
    report.add_row("fit",
                   {{"batch", batch},
                    {"early", starts_early},
                    {"fixed_us", fixed_us},
                    {"tb_per_s", fit.bytes_per_s / 1e12}},
                   judged(fmt::format("int8, batch {}{}: a step of two formats", batch,
                                      starts_early ? "" : ", not early"),
                          fmt::format("{:.1f} us fixed per layer, {:.2f} TB/s", fixed_us,
                                      fit.bytes_per_s / 1e12),
                          std::nullopt));
  }
}

/// A part that the report names.
struct Part {
  const char* name;
  Result<void> done;
};

/// The parts of one case. The second of the tiny shapes is for the fit only.
std::vector<Part> run_case(const Settings& settings, StageReport& report, Card& card,
                           const BenchCase& one, const Rates& rates, Int8Steps& int8_steps) {
  std::vector<Part> parts;
  const bool is_for_fit_only = settings.tiny && one.mix != kCases[0].mix;
  if (one.is_quantised)
    parts.push_back({"decode in int8", bench_decode_int8(report, card, one, rates, int8_steps)});
  if (is_for_fit_only) return parts;
  parts.push_back({"decode", bench_decode(report, card, one, rates)});
  parts.push_back({"prefill", bench_prefill(settings, report, card, one, rates)});
  return parts;
}

}  // namespace

Result<BenchCase> first_case(const Settings& settings) {
  return first_case(settings, kCases[0].mix);
}

Result<BenchCase> first_case(const Settings& settings, Mix mix) {
  return make_case(settings, kCases[0].shape, mix);
}

void report_failure(StageReport& report, const std::string& what, const Result<void>& done) {
  if (done) return;
  if (done.error().code == Errc::OutOfMemory) {
    report.unknown(what, done.error().detail);
  } else {
    report.failed(what, done.error());
  }
}

Result<void> check_bandwidth(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const Rates rates = TRY(measure_rates(settings, *card));
  report_rates(report, rates);
  record_card_state(settings, report, *card, "after the rates");
  return bench_matmul(settings, report, *card, rates);
}

Result<void> check_speed(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const Rates rates = TRY(measure_rates(settings, *card));
  Int8Steps int8_steps;
  for (const CaseName& wanted : kCases) {
    const BenchCase one = TRY(make_case(settings, wanted.shape, wanted.mix));
    for (const Part& part : run_case(settings, report, *card, one, rates, int8_steps))
      report_failure(report, fmt::format("{} {}", one.title, part.name), part.done);
    record_card_state(settings, report, *card, "after " + one.title);
    (void)std::remove(one.file.path.c_str());
    if (wanted.mix != kFitted.mix || std::string_view(wanted.shape) != kFitted.shape) continue;
    report_fit(report, int8_steps, one.shape.layers);
    if (settings.tiny) break;
  }
  return {};
}

Result<std::unique_ptr<BenchModel>> BenchModel::load(Card& card, cuda::CudaOptions options,
                                                     LocalOptions local) {
  auto placement =
      std::make_unique<CardPlacement>(card, options, CardPlacement::WeightsSource::Synthetic);
  local.placement = placement.get();
  std::unique_ptr<LocalModel> model = TRY(LocalModel::load(std::move(local)));
  return std::unique_ptr<BenchModel>(new BenchModel(std::move(placement), std::move(model)));
}

Result<void> BenchModel::decode(std::uint32_t batch, std::uint32_t context) {
  for (std::uint32_t s = 0; s < batch; ++s) model_->restart(s, context - 1);
  return model_->forward(text_rows(batch, 1));
}

Result<void> BenchModel::prefill(std::uint32_t from, std::uint32_t count) {
  model_->restart(0, from);
  return model_->forward(text_rows(1, count, from));
}

Result<void> BenchModel::prefill_beside(std::uint32_t count, std::uint32_t context) {
  model_->restart(0, context - 1);
  model_->restart(1, 0);
  std::vector<LocalRow> rows = text_rows(1, 1);
  for (LocalRow row : text_rows(1, count)) {
    row.sequence = 1;
    rows.push_back(row);
  }
  return model_->forward(rows);
}

Result<double> median_seconds(const Repeats& repeats, const std::function<Result<void>()>& once) {
  for (int i = 0; i < repeats.warm; ++i) TRY(once());
  std::vector<double> seconds;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats.count &&
                  (i < 3 || std::chrono::steady_clock::now() - begun < repeats.max_duration);
       ++i) {
    const auto from = std::chrono::steady_clock::now();
    TRY(once());
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  return bench::median_of(std::move(seconds));
}

}  // namespace leasehold::gpu_check
