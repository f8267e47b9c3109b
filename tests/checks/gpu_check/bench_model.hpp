/// A model with random weights of a given shape on the GPU.
///
/// Lifetime: the card outlives it. Threads: one. Errors: OutOfMemory; those of LocalModel.
#pragma once

#include <chrono>
#include <vector>

#include "tests/checks/gpu_check/card_placement.hpp"

namespace leasehold::gpu_check {

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

}  // namespace leasehold::gpu_check
