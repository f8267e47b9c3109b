// The stage launches: how many launches a layer has, and how long each takes within a graph. A
// launch takes as long as a step that runs it twice, less a step that runs it once: both run the
// other launches at the same distance, which a profiler does not.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

using KernelNames = std::vector<std::string>;

/// The launches of the step that is recorded. One of them may be repeated.
class RecordedStep {
 public:
  std::uint32_t times(const cuda::KernelLaunch& launch, std::uint16_t layer) {
    if (layer >= layers_.size()) layers_.resize(layer + 1u);
    const std::size_t index = layers_[layer].size();
    layers_[layer].emplace_back(launch.kernel);
    return repeated_ && is_like_second(layer) && index == *repeated_ ? 2 : 1;
  }
  /// Forgets the step; the next one has this launch of every layer like the second twice.
  void repeat(std::size_t index) {
    seen_ = std::exchange(layers_, {});
    repeated_ = index;
  }

  /// The second layer's: the first one's begin with the embedding.
  const KernelNames& of_layer() const { return layers_.at(1); }
  std::size_t layers_like_second() const {
    return static_cast<std::size_t>(std::ranges::count(layers_, layers_.at(1)));
  }
  std::size_t count() const {
    std::size_t n = 0;
    for (const KernelNames& names : layers_) n += names.size();
    return n;
  }

 private:
  bool is_like_second(std::uint16_t layer) const { return seen_.at(layer) == seen_.at(1); }

  std::vector<KernelNames> layers_;
  std::vector<KernelNames> seen_;  // of the step before
  std::optional<std::size_t> repeated_;
};

Result<BenchCase> few_layers(const Settings& settings, Mix mix) {
  BenchCase one = TRY(first_case(settings));
  one.shape.layers = settings.tiny ? 3 : 16;
  one.title = fmt::format("{} {}", settings.tiny ? "tiny" : "7b", name(mix));
  one.mix = mix;
  if (settings.tiny) one.batches = {1};
  one.file = TRY(write_shape(one.shape, mix, one.file.path));
  return one;
}

/// A model whose steps in int8 are recorded in `step`, which must outlive it.
Result<std::unique_ptr<BenchModel>> load_recorded(Card& card, const BenchCase& one,
                                                  std::uint32_t batch, RecordedStep& step,
                                                  bool starts_early) {
  LocalOptions options = one.options(batch);
  options.arithmetic = Arithmetic::Int8;
  return BenchModel::load(
      card,
      {.rows = rows_of(Arithmetic::Int8),
       .starts_early = starts_early,
       .times_recorded = [&step](const cuda::KernelLaunch& launch,
                                 std::uint16_t layer) { return step.times(launch, layer); }},
      std::move(options));
}

/// Counts the launches of a step whose kernels do not start early.
Result<void> count_late_launches(StageReport& report, Card& card, const BenchCase& one,
                                 std::uint32_t batch) {
  RecordedStep step;
  const auto model = TRY(load_recorded(card, one, batch, step, false));
  TRY(model->decode(batch, one.context));
  report.add_row(
      "launches_not_early",
      {{"model", one.title},
       {"batch", batch},
       {"of_layer", step.of_layer().size()},
       {"of_step", step.count()}},
      judged(fmt::format("{} in int8, batch {}, not early: launches of a layer", one.title, batch),
             fmt::format("{} (of {} layers {})", step.of_layer().size(), one.shape.layers,
                         step.count()),
             std::nullopt));
  return {};
}

Result<void> time_launches(StageReport& report, Card& card, const BenchCase& one,
                           std::uint32_t batch) {
  RecordedStep step;
  const auto model = TRY(load_recorded(card, one, batch, step, true));
  const auto seconds = [&] {
    return median_seconds(one.repeats, [&] { return model->decode(batch, one.context); });
  };
  const double once = TRY(seconds());
  const KernelNames names = step.of_layer();
  const std::size_t n_layers = step.layers_like_second();
  const std::size_t n_launches = step.count();
  Json times = Json::array();
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    step.repeat(i);
    model->forget_graphs();
    const double us = (TRY(seconds()) - once) / static_cast<double>(n_layers) * 1e6;
    times.push_back({{"kernel", names[i]}, {"us", us}});
    text += fmt::format(", {} {:.1f}", names[i].substr(names[i].find('_') + 1), us);
  }
  report.add_row("launches",
                 {{"model", one.title},
                  {"batch", batch},
                  {"of_layer", names.size()},
                  {"of_step", n_launches},
                  {"times", times}},
                 judged(fmt::format("{} in int8, batch {}: launches of a layer", one.title, batch),
                        fmt::format("{} (of {} layers {}), us{}", names.size(), one.shape.layers,
                                    n_launches, text.substr(1)),
                        std::nullopt));
  return {};
}

}  // namespace

Result<void> check_launches(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  for (const Mix mix : {Mix::Q4KM, Mix::Q8}) {
    const BenchCase one = TRY(few_layers(settings, mix));
    for (const std::uint32_t batch : one.batches) {
      const std::string what = fmt::format("{} launches, batch {}", one.title, batch);
      report_failure(report, what, count_late_launches(report, *card, one, batch));
      report_failure(report, what, time_launches(report, *card, one, batch));
    }
    (void)std::remove(one.file.path.c_str());
    if (settings.tiny) break;
  }
  return {};
}

}  // namespace leasehold::gpu_check
