/// The rows of a matmul in the form that it reads: tiles of halves, or rounded to int8.
///
/// The operators that compute a matmul's input also store it in that form. This object owns the
/// memory and remembers which array it holds, so that a matmul prepares rows only if it needs
/// others.
///
/// Threads: the engine's.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/cuda/cuda_options.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan/row_plan.hpp"

namespace leasehold::cuda {

/// The form in which a matmul reads its rows; numbers are the elements of a rounded block.
enum class RowForm : std::uint16_t { Floats = 0, Halves = 1, Int8By32 = 32, Int8By256 = 256 };

class PreparedArray {
 public:
  static Result<PreparedArray> create(Launcher& launcher, const BackendLimits& limits,
                                      RowArithmetic rows);

  RowForm form_for(const WeightMatrix& weight) const;
  /// The form that the next matmul is likely to read.
  RowForm usual_form(std::uint32_t n_in) const;
  /// Where to store rows of n_in elements in this form.
  PreparedRows room_for(std::uint32_t n_in, RowForm form) const;

  /// Records that the rows are those of `array`. Null: no rows are prepared.
  void set(const float* array, std::uint32_t n_in, RowForm form);
  bool holds(const float* array, std::uint32_t n_in, RowForm form) const;
  /// Records that an operator writes `array` and, unless `form` is Floats, its rows in that form.
  void overwrite(const float* array, std::uint32_t n_in = 0, RowForm form = RowForm::Floats);
  void reset() { array_ = nullptr; }
  /// Also zeroes the memory.
  void clear(Launcher& launcher);

 private:
  PreparedArray(RowArithmetic rows, std::uint32_t max_rows, std::uint32_t max_width)
      : arithmetic_(rows), max_rows_(max_rows), max_width_(max_width) {}

  RowArithmetic arithmetic_;
  std::uint32_t max_rows_;
  std::uint32_t max_width_;
  DeviceBuffer rows_;    // tiles of halves, or rounded rows
  DeviceBuffer scales_;  // of tiles
  const float* array_ = nullptr;
  std::uint32_t n_in_ = 0;
  RowForm form_ = RowForm::Floats;
};

}  // namespace leasehold::cuda
