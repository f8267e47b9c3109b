// Measures the best rates of the GPU, and compares decode and prefill with them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "kernels/cuda/device/bench_params.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/gpu_check/bench_cases.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr double kShareOfFloorAlone = 0.70;
constexpr double kShareOfFloorTogether = 0.75;
constexpr double kShareOfRate = 0.50;
constexpr double kMaxGateCost = 0.02;

Result<double> measure_copy(const Settings& settings, Card& card) {
  const std::size_t size_bytes = std::size_t{settings.tiny ? 1u : 1024u} << 20;
  const cuda::DeviceBuffer from = TRY(cuda::DeviceBuffer::allocate(card.context(), size_bytes));
  const cuda::DeviceBuffer to = TRY(cuda::DeviceBuffer::allocate(card.context(), size_bytes));
  const CUdeviceptr at = cuda::device_address(from.data());
  TRY(card.fill(at, size_bytes, {.keep = ~std::uint64_t{0}, .set = 0, .seed = 7}));
  constexpr int kTimes = 10;
  const double seconds = TRY(median_seconds({.warm = 1, .count = 7}, [&] {
    return card.copy(cuda::device_address(to.data()), at, size_bytes, kTimes);
  }));
  return 2.0 * static_cast<double>(size_bytes) * kTimes / seconds;
}

Result<double> measure_multiply(const Settings& settings, Card& card) {
  using device::MmaRateParams;
  const int sms = TRY(card.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const std::uint32_t blocks = settings.tiny ? 2 : static_cast<std::uint32_t>(sms) * 4;
  const std::uint32_t rounds = settings.tiny ? 1 : 512;
  const cuda::DeviceBuffer sums =
      TRY(cuda::DeviceBuffer::allocate(card.context(), std::size_t{blocks} * 128 * sizeof(float)));
  const double seconds = TRY(median_seconds({.warm = 2, .count = 9}, [&] {
    return card.multiply(cuda::device_address(sums.data()), blocks, rounds);
  }));
  const double products = double{MmaRateParams::kTimesEach} * rounds * blocks;
  return products * 2 * 64 * 16 * MmaRateParams::kColumns / seconds;
}

/// Minimum number of bytes that a decode step reads: the weights and the KV of its sequences.
double floor_bytes(const BenchCase& one, KvType kv_type, std::uint32_t batch) {
  const KvLayout layout(
      one.shape.layers,
      {.n_kv_heads = one.shape.kv_heads, .head_dim = one.shape.head_dim(), .type = kv_type});
  const double kept_each =
      static_cast<double>(layout.block_size_bytes()) / KvLayout::kBlockTokens * one.context;
  return static_cast<double>(one.file.read_each_step_bytes) + batch * kept_each;
}

/// Passes empty units through a gate like a worker's.
Result<double> measure_host_gate(const Settings& settings) {
  const double ns = TRY(bench::measure_gate_ns(settings.tiny ? 100 : 100'000));
  return ns * 1e-9;
}

/// The time of a poll, from the difference of two kernels with different numbers of polls.
Result<double> measure_card_gate(const Settings& settings, Card& card) {
  const std::uint32_t few = settings.tiny ? 1 : 2'000;
  const cuda::DeviceBuffer seen = TRY(cuda::DeviceBuffer::allocate(card.context(), 256));
  const auto time = [&](std::uint32_t n_polls) -> Result<double> {
    const double seconds = TRY(median_seconds({.warm = 1, .count = 9}, [&] {
      return card.poll_gate(cuda::device_address(seen.data()), n_polls);
    }));
    std::uint32_t n_seen = 0;
    TRY(card.fetch(std::as_writable_bytes(std::span(&n_seen, 1)),
                   cuda::device_address(seen.data())));
    if (n_seen == n_polls) return seconds;
    return fail(Errc::DeviceFault, "a kernel polled its gate less often than requested");
  };
  const double short_s = TRY(time(few));
  const double long_s = TRY(time(3 * few));
  return std::max(0.0, long_s - short_s) / (2.0 * few);
}

struct StepTime {
  double seconds = 0;
  double units = 0;  ///< Units that passed the gate: launches outside of graphs.
};

/// Decode steps of one model, by batch size.
using StepTimes = std::map<std::uint32_t, StepTime>;

Result<StepTime> time_step(const BenchCase& one, BenchModel& model, cuda::GraphUse graphs,
                           std::uint32_t batch) {
  const double seconds =
      TRY(median_seconds(one.repeats, [&] { return model.decode(batch, one.context); }));
  const std::uint64_t before = model.model().units();
  TRY(model.decode(batch, one.context));  // one more step, which does not build a graph
  const std::uint64_t units = model.model().units() - before;
  if (graphs != cuda::GraphUse::None && units > kMaxUnitsOfGraph)
    return fail(Errc::DeviceUnsupported, "the driver did not build a graph of the step");
  return StepTime{seconds, static_cast<double>(units)};
}

/// How a model decodes.
struct StepMode {
  Arithmetic arithmetic = Arithmetic::F16;
  cuda::GraphUse graphs = cuda::GraphUse::Gated;
  KvType kv_type = KvType::F16;
  bool starts_early = true;
};

Result<StepTimes> time_steps(Card& card, const BenchCase& one, const StepMode& mode) {
  LocalOptions options = one.options(one.batches.back());
  options.arithmetic = mode.arithmetic;
  options.kv_type = mode.kv_type;
  const auto model = TRY(BenchModel::load(
      card,
      {.rows = rows_of(mode.arithmetic), .graphs = mode.graphs, .starts_early = mode.starts_early},
      std::move(options)));
  StepTimes times;
  for (const std::uint32_t batch : one.batches)
    times[batch] = TRY(time_step(one, *model, mode.graphs, batch));
  return times;
}

void report_steps(StageReport& report, const BenchCase& one, const Rates& rates,
                  const StepMode& mode, const StepTimes& times) {
  const auto& [arithmetic, graphs, kv_type, starts_early] = mode;
  const std::string announced = announced_arithmetic(arithmetic, kv_type);
  for (const auto& [batch, time] : times) {
    const double seconds = time.seconds;
    const double share = floor_bytes(one, kv_type, batch) / rates.copy_bytes_per_s / seconds;
    const double wanted = batch == 1 ? kShareOfFloorAlone : kShareOfFloorTogether;
    const bool has_target = one.has_targets && arithmetic == Arithmetic::F16 &&
                            graphs == cuda::GraphUse::Gated && (batch == 1 || batch == 32);
    report.add_row("decode",
                   {{"model", one.title},
                    {"arithmetic", announced},
                    {"mode", name(graphs)},
                    {"early", starts_early},
                    {"batch", batch},
                    {"context", one.context},
                    {"step_us", seconds * 1e6},
                    {"tokens_per_s", batch / seconds},
                    {"share_of_floor", share}},
                   judged(fmt::format("{} in {}, batch {}, {}{}", one.title, announced, batch,
                                      name(graphs), starts_early ? "" : ", not early"),
                          fmt::format("{:.0f} tokens/s, step {:.0f} us, {:.0f} % of the floor",
                                      batch / seconds, seconds * 1e6, share * 100),
                          at_least(has_target, wanted, share)));
  }
}

/// Estimates the cost of gates per launch, and between the segments of a gated graph: one poll and
/// one announcement per launch, measured on an idle machine.
void report_gate_cost(StageReport& report, const BenchCase& one, const Rates& rates,
                      const std::map<cuda::GraphUse, StepTimes>& times) {
  using cuda::GraphUse;
  for (const std::uint32_t batch : one.batches) {
    const StepTime plain = times.at(GraphUse::None).at(batch);
    const StepTime gated = times.at(GraphUse::Gated).at(batch);
    const double between = gated.seconds - times.at(GraphUse::Plain).at(batch).seconds;
    const double on_card = plain.units * rates.card_gate_s;
    const double of_plain = (plain.units * rates.host_gate_s + on_card) / plain.seconds;
    const double of_gated = (between + on_card) / gated.seconds;
    report.add_row("gate_cost",
                   {{"model", one.title},
                    {"batch", batch},
                    {"launches", plain.units},
                    {"share_of_step_plain_launches", of_plain},
                    {"share_of_step_gated_graph", of_gated},
                    {"between_segments_s", between}},
                   judged(fmt::format("{} batch {}: gates", one.title, batch),
                          fmt::format("{:.2f} % of a step of {:.0f} launches, {:.2f} % of a graph",
                                      of_plain * 100, plain.units, of_gated * 100),
                          at_most(one.has_targets, kMaxGateCost, std::max(of_plain, of_gated))));
  }
}

}  // namespace

Result<Rates> measure_rates(const Settings& settings, Card& card) {
  Rates rates;
  rates.copy_bytes_per_s = TRY(measure_copy(settings, card));
  rates.multiply_flop_per_s = TRY(measure_multiply(settings, card));
  rates.host_gate_s = TRY(measure_host_gate(settings));
  rates.card_gate_s = TRY(measure_card_gate(settings, card));
  return rates;
}

void report_rates(StageReport& report, const Rates& rates) {
  report.numbers()["host_gate_ns"] = rates.host_gate_s * 1e9;
  report.numbers()["card_gate_ns"] = rates.card_gate_s * 1e9;
  report.numbers()["copy_gb_per_s"] = rates.copy_bytes_per_s / 1e9;
  report.numbers()["multiply_tflop_per_s"] = rates.multiply_flop_per_s / 1e12;
  report.measured("copying within the card, read and written",
                  fmt::format("{:.0f} GB/s", rates.copy_bytes_per_s / 1e9));
  report.measured("multiplying halves (bf16 has the same rate)",
                  fmt::format("{:.0f} TFLOP/s", rates.multiply_flop_per_s / 1e12));
  report.measured("a gate, for each launch",
                  fmt::format("{:.1f} ns on the host, {:.0f} ns in the kernel",
                              rates.host_gate_s * 1e9, rates.card_gate_s * 1e9));
}

Result<void> bench_decode(StageReport& report, Card& card, const BenchCase& one,
                          const Rates& rates) {
  using cuda::GraphUse;
  std::map<GraphUse, StepTimes> times;
  for (const GraphUse graphs : {GraphUse::Gated, GraphUse::Plain, GraphUse::None}) {
    const StepMode mode{.graphs = graphs};
    times[graphs] = TRY(time_steps(card, one, mode));
    report_steps(report, one, rates, mode, times[graphs]);
  }
  report_gate_cost(report, one, rates, times);
  return {};
}

Result<void> bench_decode_int8(StageReport& report, Card& card, const BenchCase& one,
                               const Rates& rates, Int8Steps& int8_steps) {
  for (const StepMode& mode : {StepMode{.arithmetic = Arithmetic::Int8},
                               StepMode{.arithmetic = Arithmetic::Int8, .starts_early = false},
                               StepMode{.arithmetic = Arithmetic::Int8, .kv_type = KvType::Q8_0}}) {
    const StepTimes times = TRY(time_steps(card, one, mode));
    report_steps(report, one, rates, mode, times);
    if (mode.kv_type != KvType::F16) continue;
    for (const auto& [batch, time] : times)
      int8_steps[{one.mix, mode.starts_early, batch}] = {floor_bytes(one, mode.kv_type, batch),
                                                         time.seconds};
  }
  return {};
}

namespace {

struct PrefillCase {
  Arithmetic arithmetic = Arithmetic::F16;
  std::uint32_t chunk = 0;  ///< Rows of a step.
};

Result<void> time_prefill(StageReport& report, Card& card, const BenchCase& one, const Rates& rates,
                          const PrefillCase& prefill) {
  const auto [arithmetic, chunk] = prefill;
  const auto model = TRY(BenchModel::load(card, {.rows = rows_of(arithmetic)},
                                          {.model_path = one.file.path,
                                           .arithmetic = arithmetic,
                                           .max_rows = chunk,
                                           .sequences = 1,
                                           .positions = 4 * chunk + 16}));
  for (const std::uint32_t rows : {chunk, 4 * chunk}) {
    const auto prompt = [&]() -> Result<void> {
      for (std::uint32_t from = 0; from < rows; from += chunk) TRY(model->prefill(from, chunk));
      return {};
    };
    const double seconds = TRY(median_seconds({.warm = 1, .count = 7}, prompt));
    const double flop = 2.0 * static_cast<double>(one.file.matrix_elements) * rows;
    const double share = flop / seconds / rates.multiply_flop_per_s;
    const bool has_target = one.has_targets && arithmetic == Arithmetic::F16;
    report.add_row("prefill",
                   {{"model", one.title},
                    {"arithmetic", name(arithmetic)},
                    {"rows", rows},
                    {"seconds", seconds},
                    {"share_of_rate", share}},
                   judged(fmt::format("{} in {}, prefill of {} in steps of {}", one.title,
                                      name(arithmetic), rows, chunk),
                          fmt::format("{:.0f} tokens/s, {:.0f} % of the rate of matmuls",
                                      rows / seconds, share * 100),
                          at_least(has_target, kShareOfRate, share)));
  }
  return {};
}

}  // namespace

Result<void> bench_prefill(const Settings& settings, StageReport& report, Card& card,
                           const BenchCase& one, const Rates& rates) {
  const std::uint32_t chunk = settings.tiny ? 8 : 512;
  TRY(time_prefill(report, card, one, rates, {Arithmetic::F16, chunk}));
  if (!one.is_quantised) return {};
  return time_prefill(report, card, one, rates, {Arithmetic::Int8, chunk});
}

}  // namespace leasehold::gpu_check
