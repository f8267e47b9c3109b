/// Parts of the stages clocks, bandwidth and speed. Each adds lines to the report.
#pragma once

#include "tests/checks/gpu_check/bench_model.hpp"
#include "tests/checks/gpu_check/settings.hpp"
#include "tests/checks/gpu_check/shape_file.hpp"
#include "tests/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

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

/// The first shape with targets. Its file is `one.file.path`; the caller removes it.
Result<BenchCase> first_case(const Settings& settings);

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

constexpr Verdict against_target(bool has_target, bool holds) {
  return !has_target ? Verdict::Measured : holds ? Verdict::Reached : Verdict::Missed;
}

/// Measures tokens per second with and without graphs and gates, and the cost of gates.
Result<void> bench_decode(StageReport& report, Card& card, const BenchCase& one,
                          const Rates& rates);
/// Measures the rate at which one matmul of each weight format and arithmetic reads its weights.
Result<void> bench_matmul(const Settings& settings, StageReport& report, Card& card,
                          const Rates& rates);
Result<void> bench_prefill(const Settings& settings, StageReport& report, Card& card,
                           const BenchCase& one, const Rates& rates);

/// Measures the time from a flip to the refusal, and until no unit can touch the lease.
Result<void> bench_revoke(const Settings& settings, StageReport& report, Card& card,
                          const BenchCase& one);

}  // namespace leasehold::gpu_check
