#include "tests/unit/kernels/cuda/matmul/host_matmul.hpp"

#include <cmath>

#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/quant/row_group.hpp"
#include "kernels/rounded_rows.hpp"

namespace leasehold::testing {

std::uint32_t source_of(const MatmulCall& call, std::uint32_t result) {
  if (!call.chosen.empty()) return result / call.items_per_x;
  return call.select.empty() ? result : call.select[result];
}

float result_of(const MatmulCall& call, std::uint32_t result, std::uint32_t output, float product) {
  if (!call.bias.empty()) product += call.bias[output];
  if (!call.before.empty()) product += call.before[std::size_t{result} * call.n_out() + output];
  return product;
}

std::vector<float> rows_of(const MatmulCall& call) {
  if (call.norm_weight.empty()) return call.x;
  const std::uint32_t n_in = call.weight->n_in;
  std::vector<float> rows = call.x;
  const auto width = static_cast<float>(n_in);
  for (std::uint32_t row = 0; row < call.n_rows(); ++row) {
    float* const x = rows.data() + std::size_t{row} * n_in;
    const float mean = ordered_sum(x, n_in) / width;
    for (std::uint32_t i = 0; i < n_in; ++i) x[i] -= mean;
    const float factor = kNormScale / std::sqrt(ordered_dot(x, x, n_in) / width + kNormEpsilon);
    for (std::uint32_t i = 0; i < n_in; ++i)
      x[i] = x[i] * factor * call.norm_weight[i] * kNormOutScale;
  }
  return rows;
}

std::vector<float> int8_by_host(const MatmulCall& call) {
  const std::vector<float> x_of_rows = rows_of(call);
  const DeviceMatrix& weight = *call.weight;
  const std::vector<std::byte> groups = groups_of(weight);
  const std::uint32_t n_groups = row_groups(call.n_out());
  RoundedRows rows(call.n_rows(), weight.n_in);
  for (std::uint32_t row = 0; row < call.n_rows(); ++row)
    round_row(x_of_rows.data() + std::size_t{row} * weight.n_in, weight.n_in,
              block_shape(weight.type).elements, rows.buffer(row));
  std::vector<float> out(std::size_t{call.n_results()} * call.n_out());
  for (std::uint32_t result = 0; result < call.n_results(); ++result)
    for (std::uint32_t group = 0; group < n_groups; ++group) {
      const std::uint32_t expert = call.chosen.empty() ? 0 : call.chosen[result];
      const RoundedRow x = rows.row(source_of(call, result));
      float dots[kGroupRows];
      dot_group_int8(
          weight.type,
          groups.data() + (expert * n_groups + group) * row_group_bytes(weight.type, weight.n_in),
          weight.n_in, {&x, 1}, dots);
      for (std::uint32_t i = 0; i < kGroupRows && group * kGroupRows + i < call.n_out(); ++i) {
        const std::uint32_t output = group * kGroupRows + i;
        out[std::size_t{result} * call.n_out() + output] = result_of(call, result, output, dots[i]);
      }
    }
  return out;
}

}  // namespace leasehold::testing
