/// Parts of the stages clocks, bandwidth and speed. Each adds lines to the report.
#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <vector>

#include "tests/checks/gpu_check/card_placement.hpp"
#include "tests/checks/gpu_check/shape_file.hpp"
#include "tests/checks/gpu_check/stages.hpp"
#include "tests/checks/gpu_check/step_times.hpp"

namespace leasehold::gpu_check {

/// A model with random weights of a given shape on the GPU. The card outlives it. Errors:
/// OutOfMemory; those of LocalModel.
class BenchModel {
 public:
  /// Precondition: `local` has no placement.
  static Result<std::unique_ptr<BenchModel>> load(Card& card, cuda::CudaOptions options,
                                                  LocalOptions local);

  LocalModel& model() { return *model_; }

  /// Decodes one token of each of the first `batch` sequences, at position `context` - 1.
  Result<void> decode(std::uint32_t batch, std::uint32_t context);
  /// Decodes one token of the first sequence and prefills `count` rows of the second one.
  Result<void> prefill_beside(std::uint32_t count, std::uint32_t context);
  /// Prefills `count` rows of the first sequence, starting at `from`.
  Result<void> prefill(std::uint32_t from, std::uint32_t count);
  void forget_graphs() { placement_->forget_graphs(); }

 private:
  BenchModel(std::unique_ptr<CardPlacement> placement, std::unique_ptr<LocalModel> model)
      : placement_(std::move(placement)), model_(std::move(model)) {}

  std::unique_ptr<CardPlacement> placement_;
  std::unique_ptr<LocalModel> model_;
};

/// How a worker computes the rows of matrices that are not quantised.
constexpr cuda::RowArithmetic rows_of(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::F16 ? cuda::RowArithmetic::Halves : cuda::RowArithmetic::Floats;
}

/// Repeats of a timed action: warm-up runs, then a number of runs or a duration.
struct Repeats {
  int warm = 4;
  int count = 40;
  std::chrono::milliseconds max_duration{1500};
};

/// Median duration of `once` in seconds.
Result<double> median_seconds(const Repeats& repeats, const std::function<Result<void>()>& once);

/// Measured best rates of the GPU and the host.
struct Rates {
  double copy_bytes_per_s = 0;     ///< Bytes read plus bytes written.
  double multiply_flop_per_s = 0;  ///< f16 inputs, f32 sums.
  double host_gate_s = 0;          ///< Announce and poll, per launch.
  double card_gate_s = 0;          ///< One poll of the mirror by a kernel.
};
Result<Rates> measure_rates(const Settings& settings, Card& card);
void report_rates(StageReport& report, const Rates& rates);

/// A model shape, its file and its repeats.
struct BenchCase {
  std::string title;  ///< "7b Q4_K_M"
  Mix mix = Mix::Q8;
  make_model::ModelShape shape;
  ShapeFile file;
  std::vector<std::uint32_t> batches;
  std::uint32_t context = 512;
  bool is_quantised = false;
  bool has_targets = false;  ///< True for the 7B shapes.
  Repeats repeats;

  /// The options of a model that decodes `batch` sequences.
  LocalOptions options(std::uint32_t batch) const {
    return {
        .model_path = file.path, .max_rows = batch, .sequences = batch, .positions = context + 16};
  }
};

/// The first shape with targets, in its first mix or in another one. Its file is `one.file.path`;
/// the caller removes it.
Result<BenchCase> first_case(const Settings& settings);
Result<BenchCase> first_case(const Settings& settings, Mix mix);

/// Reports a part without memory or kernels as unknown and continues.
void report_failure(StageReport& report, const std::string& what, const Result<void>& done);

constexpr std::string_view name(cuda::GraphUse use) {
  switch (use) {
    case cuda::GraphUse::None:
      return "plain launches";
    case cuda::GraphUse::Plain:
      return "plain graph";
    case cuda::GraphUse::Gated:
      return "gated graph";
  }
  return "unknown";
}

/// The limits of a share, if there is a target.
inline std::optional<Target> at_least(bool has_target, double least, double share) {
  if (!has_target) return std::nullopt;
  return Target{.limit = {.min = 100 * least}, .value = 100 * share, .unit = "%"};
}
inline std::optional<Target> at_most(bool has_target, double most, double share) {
  if (!has_target) return std::nullopt;
  return Target{.limit = {.max = 100 * most}, .value = 100 * share, .unit = "%"};
}

/// Steps in int8, for the fit of check_speed.
struct Int8Case {
  Mix mix;
  bool starts_early;
  std::uint32_t batch;
  auto operator<=>(const Int8Case&) const = default;
};
using Int8Steps = std::map<Int8Case, StepCost>;

/// Measures tokens per second in halves, with and without graphs and gates, and the cost of gates.
Result<void> bench_decode(StageReport& report, Card& card, const BenchCase& one,
                          const Rates& rates);
/// Measures tokens per second in int8, with kernels that start early and without, and with keys and
/// values in q8_0. Adds the steps with f16 to `int8_steps`.
Result<void> bench_decode_int8(StageReport& report, Card& card, const BenchCase& one,
                               const Rates& rates, Int8Steps& int8_steps);
/// Measures the rate at which one matmul of each weight format and arithmetic reads its weights.
Result<void> bench_matmul(const Settings& settings, StageReport& report, Card& card,
                          const Rates& rates);
Result<void> bench_prefill(const Settings& settings, StageReport& report, Card& card,
                           const BenchCase& one, const Rates& rates);

/// Measures the time from a flip to the refusal, and until no unit can touch the lease.
Result<void> bench_revoke(const Settings& settings, StageReport& report, Card& card,
                          const BenchCase& one);

}  // namespace leasehold::gpu_check
