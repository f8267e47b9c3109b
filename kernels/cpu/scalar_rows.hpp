/// The inner loops in plain C++, for CPUs without AVX2. RowKernels documents each function.
#pragma once

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::scalar {

void dot_tile(const DotTile& tile, DotProducts& out);
void dot_groups_int8(const Int8Tile& tile);
void store_dots(const DotStore& store);
void rms_norm_row(const NormRow& row);
void swiglu(Activation activation, float* gate, const float* up, std::size_t n);
void softcap(float* x, std::size_t n, float cap);
/// Turns n scores of a query into weights, and stores their maximum and sum in its partial.
void softmax(float* scores, std::uint32_t n, float* partial);
void add_scaled(float weight, const float* x, float* out, std::size_t n);
void add_low_rank(const LowRankTile& tile);
void advance_state(const StateHead& head, const StateRow* rows, std::uint32_t n_rows);
void rope_head(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style);
void store_kv(KvType type, const float* values, std::byte* to, std::size_t n);
void attend(const AttentionTile& tile);

}  // namespace leasehold::scalar
