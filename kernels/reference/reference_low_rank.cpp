/// The products of adapters on the reference backend.
#include <cmath>

#include "kernels/launch_rules.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace leasehold {

/// A unit is one row and one product.
LaunchStatus ReferenceBackend::low_rank(const LaunchContext& context, const LowRankArgs& args) {
  expect_within_limits(limits_, context, args);
  const std::size_t n_products = args.products.size();
  // Row k of a matrix whose rows have n elements, as floats.
  const auto widen = [&](const std::byte* matrix, TensorType type, std::size_t k, std::size_t n) {
    dequantize_row(type, matrix + k * row_size_bytes(type, n), row_.data(), n);
  };
  const auto add_product = [&](const LaunchPermit& permit, std::size_t unit) {
    const std::size_t r = unit / n_products;
    const std::uint32_t sequence = context.rows[r].sequence;
    const LowRankProduct& product = args.products[unit % n_products];
    if (args.adapters[sequence] == nullptr || !permit.is_live(sequence)) return;
    const LowRankMatrix& matrix = args.adapters[sequence][product.slot];
    float* h = args.h + unit * args.max_rank;
    for (std::uint32_t k = 0; k < matrix.rank; ++k) {
      widen(permit.open(matrix.a), matrix.type, k, args.n_in);
      h[k] = matrix.scale * ordered_dot(row_.data(), args.x + r * args.n_in, args.n_in);
    }
    float* out = product.out + r * product.n_out;
    for (std::uint32_t k = 0; k < matrix.rank; ++k) {
      widen(permit.open(matrix.b), matrix.type, k, product.n_out);
      for (std::uint32_t o = 0; o < product.n_out; ++o) out[o] = std::fma(row_[o], h[k], out[o]);
    }
  };
  return each_unit(context, label(context, args.products.front().site, Touches::TenantMemory),
                   context.rows.size() * n_products, add_product);
}

}  // namespace leasehold
