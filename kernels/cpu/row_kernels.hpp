/// The inner loops of the CPU backend: one set of functions per SIMD path.
///
/// Every set gives the same bits (kernels/README.md, *Numerics*), so the path depends on the CPU
/// alone. Do not call a set that the CPU lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/numerics/attention_order.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/recurrence.hpp"
#include "kernels/op_args.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold {

struct ConvolvedChannels;  // kernels/recurrent_rows.hpp

/// Ascending by preference: best_simd_path() returns the last usable one.
enum class SimdPath : std::uint8_t { Scalar, Avx2, AvxVnni, Avx512, Amx, Neon };
inline constexpr SimdPath kSimdPaths[] = {SimdPath::Scalar, SimdPath::Avx2, SimdPath::AvxVnni,
                                          SimdPath::Avx512, SimdPath::Amx,  SimdPath::Neon};

/// "scalar", "avx2", "avx-vnni", "avx512", "amx", "neon"
std::string_view name(SimdPath path);
std::optional<SimdPath> simd_path_from_name(std::string_view text);

/// What this machine lacks for a path, for the text of an error; empty if it has the path. For AMX,
/// the first call asks the kernel for the permission to use tiles.
std::string_view missing_for(SimdPath path);
bool cpu_has(SimdPath path);
/// True unless the path is AMX and its int8 dots differ from those of the scalar path. The first
/// call runs the check. Other paths are not checked: tests run them. Precondition: cpu_has(path).
bool passes_self_check(SimdPath path);
/// The last path that this CPU has and whose self-check passes.
SimdPath best_simd_path();

/// Maximum numbers of weight rows and of inputs that are multiplied at once. Each path divides
/// them by what its registers hold: AVX2 and AVX-VNNI three weight rows by four inputs, AVX-512 six
/// by four.
inline constexpr std::uint32_t kDotOutputs = 12;
inline constexpr std::uint32_t kDotInputs = 12;
/// Weight rows and inputs of a batch are divided into whole groups of this many.
inline constexpr std::uint32_t kDotOutputGroup = 6;
inline constexpr std::uint32_t kDotInputGroup = 4;

/// Weight rows to multiply with inputs of a batch.
struct DotTile {
  TensorType type;                        // F32, F16 or BF16
  const std::byte* weights[kDotOutputs];  // each [n] of `type`
  std::uint32_t n_outputs;                // 1 … kDotOutputs
  const float* x[kDotInputs];             // each [n]
  std::uint32_t n_inputs;                 // 1 … kDotInputs
  std::size_t n;
  /// What the next tile reads. Dots request it from memory; an invalid address does no harm.
  const std::byte* next = nullptr;
  std::size_t next_bytes = 0;
  /// Inputs that are multiplied with the same rows afterwards; null if there are none.
  const float* next_x[kDotInputGroup] = {};
};
/// The product of weight row o and input i is [o / kDotOutputGroup][i][o % kDotOutputGroup].
using DotProducts = float[kDotOutputs / kDotOutputGroup][kDotInputs][kDotOutputGroup];

/// Limits of a tile in int8 arithmetic.
inline constexpr std::uint32_t kInt8TileRows = 16;
inline constexpr std::uint32_t kInt8TileGroups = 2;

/// The dots of a group with the rows of a tile.
using GroupDots = float[kInt8TileRows][kGroupRows];

/// Neighbouring groups of weight rows to multiply with rounded rows of a batch.
struct Int8Tile {
  TensorType type;
  const std::byte* groups;  // [n_groups, row_group_bytes(type, n_in)]
  std::uint32_t n_groups;   // 1 … kInt8TileGroups
  std::uint32_t n_in;
  const RoundedRow* x;   // [n_rows]
  std::uint32_t n_rows;  // 1 … kInt8TileRows
  GroupDots* out;        // [n_groups]; rows from n_rows on are not written
};

/// The arguments of store_dots: row i of a whole group's dots goes to out + i · stride.
struct DotStore {
  const GroupDots* dots;
  std::uint32_t n_rows;
  const float* bias;  // [kGroupRows], or null
  bool accumulate;
  float* out;
  std::size_t stride;
};

struct NormRow {
  const float* x;       // [width]
  const float* weight;  // [width]; null: every weight is 1
  float* out;           // [width]; may be x
  std::uint32_t width;
  float epsilon;
  float scale = 1.0F;
  bool accumulate = false;   // adds to out
  float out_scale = 1.0F;    // multiplies the result
  bool is_centered = false;  // subtracts the mean of x first
};

/// Rows of a tile of B·h.
inline constexpr std::uint32_t kLowRankRows = 12;

/// Outputs to which the rows of B are added, for rows that share B.
struct LowRankTile {
  TensorType type;     // F32, F16 or BF16
  const std::byte* b;  // [rank, n_outputs], rows `stride` elements apart
  std::size_t stride;
  std::uint32_t rank;
  std::uint32_t n_outputs;
  const float* h[kLowRankRows];  // each [rank]
  float* out[kLowRankRows];      // each [n_outputs]
  std::uint32_t n_rows;          // 1 … kLowRankRows
  /// The rows of B that the next tile reads, requested from memory; an invalid address does no
  /// harm. Null: none.
  const std::byte* next = nullptr;
  std::size_t next_stride_bytes = 0;
};

inline constexpr std::uint32_t kPartitionBlocks = kPartitionPositions / KvLayout::kBlockTokens;

/// Maximum number of queries per attention tile.
inline constexpr std::uint32_t kMaxTileQueries = 16;

/// Positions whose values in Q8_0 are widened at a time.
inline constexpr std::uint32_t kWidenedPositions = 4 * KvLayout::kBlockTokens;

/// Attention of queries of one kv head over one partition of a sequence: each key and value is
/// loaded once for all queries. A query is one head of one row; queries are in the order of their
/// rows.
struct AttentionTile {
  const float* q[kMaxTileQueries];             // each [head_dim]
  float* partial[kMaxTileQueries];             // each [partial_floats(value_dim)]
  std::uint32_t n_skipped[kMaxTileQueries];    // positions before the window, ascending
  std::uint32_t n_positions[kMaxTileQueries];  // n_skipped + 1 … kPartitionPositions, ascending
  std::uint32_t n_queries;                     // 1 … kMaxTileQueries
  std::uint32_t head_dim;
  std::uint32_t value_dim;  // of a stored row of head_dim elements
  float scale;
  float softcap;  // 0: none
  KvType type;
  const std::byte* keys[kPartitionBlocks];    // each a head of KvLayout, if a query reads it
  const std::byte* values[kPartitionBlocks];  // likewise
  float* scores;                              // [kMaxTileQueries, kPartitionPositions], scratch
  float* block;                               // [kWidenedPositions, head_dim], scratch
  float* scales;  // [kBlockTokens, head_dim / kKvScaleBlock], scratch for Q8_0
};

/// Sizes of the units of dot_groups_int8.
struct Int8Units {
  std::uint64_t tile_macs;
  /// Groups of a tile that are multiplied together and share each load of a row: 1 …
  /// kInt8TileGroups.
  std::uint32_t groups_at_once = 1;
  /// The fewest batch rows in a tile, if the batch has as many: a power of two.
  std::uint32_t min_rows = kInt8TileRows / 4;

  bool operator==(const Int8Units&) const = default;
};

struct RowKernels {
  /// Same as dequantize_row in kernels/quant/dequantize.hpp.
  void (*dequantize_row)(TensorType type, const std::byte* source, float* out, std::size_t n);
  /// weights[o]·x[i]
  void (*dot_tile)(const DotTile& tile, DotProducts& out);
  /// Weight rows that a tile takes if they fit the L1 cache: kDotOutputGroup … kDotOutputs.
  std::uint32_t dot_tile_outputs;
  /// Multiply-adds of `dot_tile` in a unit.
  std::uint64_t dot_tile_macs;
  /// Same as round_row in kernels/numerics/int8_order.hpp.
  void (*round_row)(const float* x, std::size_t n, std::uint32_t block,
                    const RoundedRowBuffer& out);
  /// Multiplies each group as dot_group_int8 in kernels/quant/row_group.hpp does.
  void (*dot_groups_int8)(const Int8Tile& tile);
  /// out (+)= dot + bias
  void (*store_dots)(const DotStore& store);
  Int8Units int8_units;
  /// The units of batches with fewer rows than `int8_few_rows`.
  Int8Units int8_units_few_rows = int8_units;
  std::uint32_t int8_few_rows = 0;
  /// Called by a thread at the end of a unit in which it called dot_groups_int8: releases registers
  /// that would make a switch of threads slower.
  void (*end_int8_unit)() = [] {};
  void (*rms_norm_row)(const NormRow& row);
  /// gate[i] = gated(activation, gate[i], up[i]), see kernels/numerics/elementwise.hpp
  void (*swiglu)(Activation activation, float* gate, const float* up, std::size_t n);
  /// x[i] = softcapped(x[i], cap)
  void (*softcap)(float* x, std::size_t n, float cap);
  /// out[i] = fma(weight, x[i], out[i])
  void (*add_scaled)(float weight, const float* x, float* out, std::size_t n);
  /// out[i][o] = fma(b[k][o], h[i][k], out[i][o]), k ascending
  void (*add_low_rank)(const LowRankTile& tile);
  /// Same as convolve_channels in kernels/recurrent_rows.hpp.
  void (*convolve)(const ConvolvedChannels& channels);
  /// Calls advance_column for each column of each row in turn; rows after the first one read what
  /// the row before wrote.
  void (*advance_state)(const StateHead& head, const StateRow* rows, std::uint32_t n_rows);
  /// Multiply-adds of `advance_state` in a unit.
  std::uint64_t state_tile_macs;
  /// Rotates one head [head_dim] by the angles of its row [rope_dim/2, 2].
  void (*rope_head)(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style);
  /// Narrows keys or values to F16, or keeps F32, and stores them.
  void (*store_kv)(KvType type, const float* values, std::byte* to, std::size_t n);
  /// Same as round_kv in kernels/numerics/kv_q8.hpp.
  void (*round_kv)(const float* values, std::size_t n, std::int8_t* q, Half* scales);
  /// Fills the tile's partials.
  void (*attend)(const AttentionTile& tile);
  /// Multiply-adds of `attend` in a unit.
  std::uint64_t attend_tile_macs;
  /// Merges partials[count, partial_floats(head_dim)] into out[head_dim], as merge_partials does.
  void (*merge)(const float* partials, std::uint32_t count, std::uint32_t head_dim, float sink,
                float* out);

  bool operator==(const RowKernels&) const = default;
};

const RowKernels& row_kernels(SimdPath path);

}  // namespace leasehold
