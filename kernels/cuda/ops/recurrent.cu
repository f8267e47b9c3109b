/// Causal convolutions and recurrences, with the reference's bits
/// (kernels/numerics/recurrence.hpp).
#include "kernels/cuda/device/recurrent_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/numerics/recurrence.hpp"

namespace leasehold::device {

/// A piece of a sequence's state in one of its copies, or null for a state of zeros.
__device__ __forceinline__ float* state_piece(const KernelGate& gate, const StateTables& states,
                                              std::uint32_t sequence, std::uint32_t copy,
                                              const StatePiece& piece) {
  const std::size_t table = std::size_t{sequence} * kStateCopies + copy;
  const std::uint64_t block = states.addresses[table * gate.step->state_blocks + piece.block];
  return block == 0 ? nullptr : reinterpret_cast<float*>(block + piece.offset_bytes);
}

/// The rows of one sequence are consecutive in a step.
__device__ __forceinline__ bool has_same_sequence(const KernelGate& gate, std::uint32_t row,
                                                  std::uint32_t other) {
  return gate.rows[row].sequence == gate.rows[other].sequence;
}
__device__ __forceinline__ bool is_first_row(const KernelGate& gate, std::uint32_t row) {
  return row == 0 || !has_same_sequence(gate, row, row - 1);
}
__device__ __forceinline__ bool is_last_row(const KernelGate& gate, std::uint32_t row) {
  return row + 1 == row_count(gate) || !has_same_sequence(gate, row, row + 1);
}

/// The inputs of the taps of a row in one channel: rows of the step, or slots of the state, which
/// ends with the input before the sequence's first row.
struct TapInputs {
  const ConvolutionParams& p;
  const float* before;  // null: zeros
  std::uint32_t row;
  std::uint32_t channel;
  std::uint32_t n_here;  // rows of the step before this one whose inputs the taps read

  __device__ __forceinline__ float of(std::uint32_t tap) const {
    const std::uint32_t back = p.n_taps - 1 - tap;
    if (back <= n_here) {
      const std::size_t at = std::size_t{row - back} * p.n_channels + channel;
      return p.input_gate != nullptr ? p.x[at] * p.input_gate[at] : p.x[at];
    }
    return before != nullptr ? before[std::size_t{tap + n_here} * p.n_channels + channel] : 0.0F;
  }
};

/// One thread per channel. Grid: channels / blockDim, rows. The last row of a sequence also stores
/// the state.
LEASEHOLD_KERNEL(lh_convolution, ConvolutionParams, 256) {
  const std::uint32_t row = blockIdx.y;
  const bool exists = row < row_count(p.gate);
  if (!block_row_is_live(p.gate, exists ? row : 0) || !exists) return;
  const std::uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= p.n_channels) return;
  const std::uint32_t sequence = p.gate.rows[row].sequence;
  std::uint32_t n_here = 0;
  while (n_here + 1 < p.n_taps && n_here < row && has_same_sequence(p.gate, row, row - n_here - 1))
    ++n_here;
  const TapInputs inputs{p, state_piece(p.gate, p.states, sequence, 0, p.piece), row, c, n_here};
  float result =
      convolve(p.weight + std::size_t{c} * p.n_taps, p.n_taps, p.bias != nullptr ? p.bias[c] : 0.0F,
               [&](std::uint32_t t) { return inputs.of(t); });
  if (p.applies_silu != 0) result = silu(result);
  const std::size_t at = std::size_t{row} * p.n_channels + c;
  p.out[at] = p.output_gate != nullptr ? result * p.output_gate[at] : result;
  if (!is_last_row(p.gate, row)) return;
  float* after = state_piece(p.gate, p.states, sequence, 1, p.piece);
  for (std::uint32_t t = 1; t < p.n_taps; ++t)
    after[std::size_t{t - 1} * p.n_channels + c] = inputs.of(t);
}

/// Turns the step inputs of a row into decays and weights, and with the delta rule scales its
/// queries and keys: a warp per vector. Grid: rows.
LEASEHOLD_KERNEL(lh_prepare_recurrence, RecurrenceParams, 256) {
  const std::uint32_t row = blockIdx.x;
  if (block_engine_is_stopped(p.gate) || row >= row_count(p.gate)) return;
  for (std::uint32_t h = threadIdx.x; h < p.n_heads; h += blockDim.x) {
    const std::size_t at = std::size_t{row} * p.n_heads + h;
    const StepTerms terms =
        step_terms(p.steps[at] + p.step_bias[h], p.decay_rates[h], p.weights[at], p.is_delta != 0);
    p.steps[at] = terms.decay;
    p.weights[at] = terms.weight;
  }
  if (p.is_delta == 0) return;
  const float query_length = 1.0F / sqrtf(static_cast<float>(p.key_dim));
  for (std::uint32_t v = warp_of_block(); v < 2 * p.n_groups; v += blockDim.x / kWarp) {
    const bool is_query = v < p.n_groups;
    float* x =
        p.x + std::size_t{row} * p.row_width +
        (is_query ? p.query_offset + v * p.key_dim : p.key_offset + (v - p.n_groups) * p.key_dim);
    const float factor =
        length_factor(warp_dot(x, x, p.key_dim), p.epsilon, is_query ? query_length : 1.0F);
    __syncwarp();
    for (std::uint32_t i = lane_of_warp(); i < p.key_dim; i += kWarp) x[i] *= factor;
  }
}

/// The shared memory of a block: its columns of the matrix, and the row's key and query.
struct StateTile {
  float* columns;  // [key_dim, kStateColumns]
  float* key;      // [key_dim]
  float* query;    // [key_dim]
};

/// Copies a lane's column between the tile and a head's matrix. A null matrix is one of zeros.
__device__ __forceinline__ void load_column(const RecurrenceParams& p, const float* matrix,
                                            std::uint32_t column, float* columns) {
#pragma unroll 16
  for (std::uint32_t i = 0; i < p.key_dim; ++i)
    columns[i * kStateColumns + lane_of_warp()] =
        matrix != nullptr ? matrix[std::size_t{i} * p.value_dim + column] : 0.0F;
}
__device__ __forceinline__ void store_column(const RecurrenceParams& p, const float* columns,
                                             std::uint32_t column, float* matrix) {
#pragma unroll 16
  for (std::uint32_t i = 0; i < p.key_dim; ++i)
    matrix[std::size_t{i} * p.value_dim + column] = columns[i * kStateColumns + lane_of_warp()];
}

/// Advances the tile by one row. The whole warp must call this function.
__device__ __forceinline__ void advance_tile(const RecurrenceParams& p, const StateTile& tile,
                                             std::uint32_t row, std::uint32_t head) {
  const float* x = p.x + std::size_t{row} * p.row_width;
  const std::uint32_t group = group_of_head(head, p.n_heads, p.n_groups, p.alternates_groups != 0);
  __syncwarp();  // the row before has read the key and the query
  for (std::uint32_t i = lane_of_warp(); i < p.key_dim; i += kWarp) {
    tile.key[i] = x[p.key_offset + group * p.key_dim + i];
    tile.query[i] = x[p.query_offset + group * p.key_dim + i];
  }
  __syncwarp();
  const std::uint32_t first = blockIdx.x * kStateColumns;
  if (first + lane_of_warp() >= p.value_dim) return;
  const std::size_t at = std::size_t{row} * p.n_heads + head;
  const StateHead state{.before = tile.columns,
                        .after = tile.columns,
                        .key_dim = p.key_dim,
                        .value_dim = kStateColumns,
                        .skip = p.skip != nullptr ? p.skip[head] : 0.0F,
                        .is_delta = p.is_delta != 0};
  advance_column(state,
                 {.query = tile.query,
                  .key = tile.key,
                  .value = x + p.value_offset + std::size_t{head} * p.value_dim + first,
                  .out = p.out + at * p.value_dim + first,
                  .decay = p.steps[at],
                  .weight = p.weights[at]},
                 lane_of_warp());
}

/// One warp advances kStateColumns columns of a head over all rows of a sequence. Grid: column
/// tiles, heads, rows; only blocks of a sequence's first row have work. Dynamic shared memory: a
/// StateTile.
LEASEHOLD_KERNEL(lh_recurrence, RecurrenceParams, 32) {
  if (warp_engine_is_stopped(p.gate)) return;
  const std::uint32_t head = blockIdx.y;
  std::uint32_t row = blockIdx.z;
  if (row >= row_count(p.gate) || !is_first_row(p.gate, row)) return;
  if (!warp_row_is_live(p.gate, row)) return;
  auto* const columns = reinterpret_cast<float*>(dynamic_shared());
  float* const key = columns + p.key_dim * kStateColumns;
  const StateTile tile{columns, key, key + p.key_dim};
  const std::uint32_t sequence = p.gate.rows[row].sequence;
  const StatePiece piece = p.pieces.of(head);
  const std::uint32_t column = blockIdx.x * kStateColumns + lane_of_warp();
  const bool has_column = column < p.value_dim;
  if (has_column)
    load_column(p, state_piece(p.gate, p.states, sequence, 0, piece), column, columns);
  advance_tile(p, tile, row, head);
  for (; !is_last_row(p.gate, row); ++row) advance_tile(p, tile, row + 1, head);
  if (has_column)
    store_column(p, columns, column, state_piece(p.gate, p.states, sequence, 1, piece));
}

}  // namespace leasehold::device
