/// The parts of the bench. Each adds its lines as it has them; what a later one needs of an earlier
/// one is an argument.
#pragma once

#include "tools/checks/gpu_check/bench_model.hpp"
#include "tools/checks/gpu_check/settings.hpp"
#include "tools/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

/// What card and host do at best, measured.
struct Rates {
  double copy_bytes_per_s = 0;     ///< Read and written together.
  double multiply_flop_per_s = 0;  ///< Halves, sums in float.
  double host_gate_s = 0;          ///< Announcing and polling, for one launch.
  double card_gate_s = 0;          ///< A kernel's look at the mirror, waited for.
};
Result<Rates> measure_rates(const Settings& settings, StageReport& report, Card& card);

/// A shape, its file, and how it is measured.
struct BenchCase {
  BenchShape shape;
  ShapeFile file;
  std::vector<std::uint32_t> batches;
  std::uint32_t context = 512;
  bool has_targets = false;  ///< The 7B shapes have.
  Repeats repeats;
};

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

/// Tokens a second with and without graphs and gates, and what gates cost.
Result<void> bench_decode(StageReport& report, Card& card, const BenchCase& one,
                          const Rates& rates);
Result<void> bench_prefill(const Settings& settings, StageReport& report, Card& card,
                           const BenchCase& one, const Rates& rates);

/// From a flip to the refusal, and to all being over that could touch the lease.
Result<void> bench_revoke(const Settings& settings, StageReport& report, Card& card,
                          const BenchCase& one);

}  // namespace leasehold::gpu_check
