#include "kernels/cuda/prepared_array.hpp"

#include "kernels/launch_rules.hpp"

namespace leasehold::cuda {

Result<PreparedArray> PreparedArray::create(Launcher& launcher, const BackendLimits& limits,
                                            RowArithmetic rows) {
  PreparedArray made(rows, max_matmul_inputs(limits), limits.max_width);
  // Rounded rows are smaller than tiles.
  made.rows_ = TRY(launcher.zeroed_buffer(device::tile_halves(made.max_rows_, made.max_width_) *
                                          sizeof(std::uint16_t)));
  made.scales_ = TRY(launcher.zeroed_buffer(aligned(made.max_rows_ * sizeof(float))));
  return made;
}

RowForm PreparedArray::form_for(const WeightMatrix& weight) const {
  if (weight.layout == MatrixLayout::RowGroups)
    return block_shape(weight.type).elements == kInt8Block ? RowForm::Int8By32 : RowForm::Int8By256;
  const bool are_floats = weight.type == TensorType::F32 || arithmetic_ == RowArithmetic::Floats;
  return are_floats ? RowForm::Floats : RowForm::Halves;
}

RowForm PreparedArray::usual_form(std::uint32_t n_in) const {
  return n_in <= max_width_ && arithmetic_ == RowArithmetic::Halves ? RowForm::Halves
                                                                    : RowForm::Floats;
}

PreparedRows PreparedArray::room_for(std::uint32_t n_in, RowForm form) const {
  if (form == RowForm::Floats) return {};
  if (form == RowForm::Halves)
    return {.tiles = {.halves = reinterpret_cast<std::uint16_t*>(rows_.data()),
                      .scales = reinterpret_cast<float*>(scales_.data()),
                      .n_in = n_in}};
  return {.rounded = device::int8_rows_at(rows_.data(), max_rows_, n_in,
                                          static_cast<std::uint32_t>(form))};
}

void PreparedArray::set(const float* array, std::uint32_t n_in, RowForm form) {
  array_ = form == RowForm::Floats ? nullptr : array;
  n_in_ = n_in;
  form_ = form;
}

bool PreparedArray::holds(const float* array, std::uint32_t n_in, RowForm form) const {
  return array != nullptr && array_ == array && n_in_ == n_in && form_ == form;
}

void PreparedArray::overwrite(const float* array, std::uint32_t n_in, RowForm form) {
  if (array_ == array) array_ = nullptr;
  if (form != RowForm::Floats) set(array, n_in, form);
}

void PreparedArray::clear(Launcher& launcher) {
  reset();
  launcher.zero(rows_);
  launcher.zero(scales_);
}

}  // namespace leasehold::cuda
