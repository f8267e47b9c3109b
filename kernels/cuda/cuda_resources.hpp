/// What the operators of a CUDA backend share. All memory is zeroed when it is created.
///
/// Lifetime: the context outlives it. Threads: the engine's.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/plan/matmul_plan.hpp"
#include "kernels/cuda/plan/row_plan.hpp"
#include "kernels/cuda/step_runner.hpp"

namespace leasehold::cuda {

/// The form in which a matmul reads its rows. The value of an int8 form is the number of elements
/// that share a scale.
enum class RowForm : std::uint16_t { Floats = 0, Halves = 1, Int8By32 = 32, Int8By256 = 256 };

/// The rows of a matmul in the form that it reads: tiles of halves, or rounded to int8.
///
/// The operators that compute a matmul's input also store it in that form. This object owns the
/// memory and remembers which array it holds, so that a matmul prepares rows only if it needs
/// others.
class PreparedArray {
 public:
  static Result<PreparedArray> create(Launcher& launcher, const BackendLimits& limits,
                                      RowArithmetic rows);

  RowForm form_for(const WeightMatrix& weight) const;
  /// The form that the next matmul is likely to read.
  RowForm expected_form(std::uint32_t n_in) const;
  /// Where to store rows of n_in elements in this form.
  PreparedRows prepared_rows_at(std::uint32_t n_in, RowForm form) const;

  /// The prepared rows, if it holds any.
  PreparedRows held_rows() const;
  /// Where a launch that reads the held rows may store up to kMaxGatedRows others, in an int8 form.
  PreparedRows rows_beside(std::uint32_t n_in, RowForm form) const;

  /// Records that the rows are those of `array`. Null: no rows are prepared.
  void set(const float* array, std::uint32_t n_in, RowForm form);
  /// Likewise, for rows at rows_beside().
  void set_beside(const float* array, std::uint32_t n_in, RowForm form);
  bool holds(const float* array, std::uint32_t n_in, RowForm form) const;
  /// Records that an operator writes `array` and, unless `form` is Floats, its rows in that form.
  void overwrite(const float* array, std::uint32_t n_in = 0, RowForm form = RowForm::Floats);
  void reset() { array_ = nullptr; }
  /// Forgets the array and zeroes the memory.
  void clear(Launcher& launcher);

 private:
  RowArithmetic arithmetic_ = RowArithmetic::Halves;
  std::uint32_t max_rows_ = 0;
  std::uint32_t max_width_ = 0;
  DeviceBuffer rows_;    // tiles of halves, or rounded rows
  DeviceBuffer scales_;  // of tiles
  DeviceBuffer beside_;  // rounded rows
  const float* array_ = nullptr;
  std::uint32_t n_in_ = 0;
  RowForm form_ = RowForm::Floats;
  bool is_beside_ = false;
};

/// Memory through which the blocks of a launch share their results.
class BlockScratch {
 public:
  static Result<BlockScratch> create(Launcher& launcher, const DeviceProperties& card,
                                     const BackendLimits& limits);

  /// Sums of split matmuls, or data that the blocks of a row share.
  float* partials() const { return reinterpret_cast<float*>(partials_.data()); }
  /// [n_counters], zero between launches.
  std::uint32_t* counters() const { return reinterpret_cast<std::uint32_t*>(counters_.data()); }
  std::uint32_t n_counters() const { return n_counters_; }
  /// [max_logit_rows], zero between launches.
  std::uint32_t* logit_counters() const { return counters() + n_counters_; }
  RowParts row_parts() const {
    return {.largest = reinterpret_cast<std::uint32_t*>(partials_.data()),
            .counters = counters(),
            .max_blocks = n_counters_};
  }
  void clear(Launcher& launcher) const { launcher.zero(partials_); }
  /// Call it after the mirror stopped a launch, because finished blocks have advanced the counters.
  void reset_counters(Launcher& launcher) const { launcher.zero(counters_); }

 private:
  std::uint32_t n_counters_ = 0;
  DeviceBuffer partials_;
  DeviceBuffer counters_;
};

struct CudaResources {
  std::string name;  ///< For example "cuda-sm90".
  BackendLimits limits;
  RowArithmetic rows;
  DeviceProperties card;
  std::unique_ptr<StepRunner> runner;
  PreparedArray prepared;
  BlockScratch blocks;

  static Result<std::unique_ptr<CudaResources>> create(const Context& context,
                                                       const BackendLimits& limits,
                                                       const ThreadGate& gate, CudaOptions options);
  Launcher& launcher() const { return runner->launcher(); }
  const StepMemory& step() const { return runner->step(); }
};

}  // namespace leasehold::cuda
