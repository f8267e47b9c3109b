/// What a matmul of a test must give, by the host.
#pragma once

#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {

/// The row of x of a result.
std::uint32_t source_of(const MatmulCall& call, std::uint32_t result);

/// A product, + bias, + previous value, in this order.
float result_of(const MatmulCall& call, std::uint32_t result, std::uint32_t output, float product);

/// The rows that are multiplied: x, or its norm.
std::vector<float> rows_of(const MatmulCall& call);

/// [n_results, n_out], by round_row and dot_group_int8.
std::vector<float> int8_by_host(const MatmulCall& call);

}  // namespace leasehold::testing
