/// The tensors that a model needs, and their places in a weights region.
///
/// A region contains all weights of a model or a part of them (weights_plan.hpp), in an order that
/// depends on the model's config only. Each tensor starts on a cache line. It has the same bytes as
/// in the file, or its rows are interleaved in groups (kernels/quant/row_group.hpp). Workers with
/// the same layout can therefore share a region.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/hex.hpp"
#include "common/result.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// Increment this when the place or the format of bytes changes. The digest covers it.
inline constexpr std::uint32_t kWeightsLayoutVersion = 3;
inline constexpr std::uint64_t kWeightAlignmentBytes = 64;

/// Consecutive rows of a tensor in the file.
struct WeightPiece {
  std::string tensor;
  std::uint32_t first_row;
  std::uint32_t rows;

  bool operator==(const WeightPiece&) const = default;
};

struct WeightTensor {
  std::string name;  ///< "blk.0.attn_q.weight", in the file unless there are `pieces`.
  TensorType type;
  std::uint32_t rows;     ///< Outputs of a matrix; 1 for a vector.
  std::uint32_t columns;  ///< Elements per row.
  MatrixLayout layout = MatrixLayout::Rows;
  bool is_table = false;  ///< See TensorSpec.
  std::uint64_t region_offset_bytes = 0;
  std::uint64_t size_bytes = 0;  ///< Size in the region.
  /// Where the rows are if the file fuses tensors, or has a tensor per expert: one after the other.
  /// Empty: the tensor with this name has all rows.
  std::vector<WeightPiece> pieces = {};
  /// The columns of each piece are rows of the weight; see transposed_weight.hpp.
  bool is_transposed = false;

  bool operator==(const WeightTensor&) const = default;
};

/// SHA-256.
using LayoutDigest = std::array<std::uint8_t, 32>;

struct WeightsLayout {
  /// token_embd, layer by layer, output_norm, output: ascending.
  std::vector<WeightTensor> weights;
  std::uint64_t size_bytes;  ///< Size of the region; a multiple of kWeightAlignmentBytes.

  /// Covers the version and every weight's name, type, shape, layout and offset. Layouts with equal
  /// digests place bytes alike; the digest does not cover the bytes.
  LayoutDigest digest;

  /// Returns null if the model has no such weight. Searches: call it once, not per step.
  const WeightTensor* find(std::string_view name) const;
};

/// Assigns offsets to the weights in the given order; existing offsets are ignored.
WeightsLayout assign_weight_offsets(std::vector<WeightTensor> weights);

/// The arithmetic of products of weights and activations. Int8 rounds activations; it applies to
/// matrices of quantised types. All other matrices are multiplied as floats, and so are matrices of
/// experts whose rows do not form whole groups. F16, on a GPU only, rounds weights and activations
/// to halves. The results of F32 and of Int8 have the same bits on every CPU and GPU.
enum class Arithmetic : std::uint8_t { F32, Int8, F16 };

/// The name on the command line and on the wire: "f32", "int8", "f16".
constexpr std::string_view name(Arithmetic arithmetic) {
  constexpr std::string_view kNames[] = {"f32", "int8", "f16"};
  return kNames[static_cast<std::size_t>(arithmetic)];
}

/// The layout of all weights in one region. `config` is the result of read_config for this file.
/// Errors: MissingWeight naming the tensor; FileCorrupt for a shape that contradicts the config;
/// UnsupportedModel for a vector that is not F32, and for a tensor that this build does not use,
/// because ignoring it would give wrong results.
Result<WeightsLayout> make_weights_layout(const GgufFile& file, const ModelConfig& config,
                                          Arithmetic arithmetic = Arithmetic::F32);

/// Fills `destination` with bytes of the weight's rows from byte `from` on. They are those of the
/// file, unless it has the weight transposed.
/// Precondition: the layout was made for this file. Errors: those of GgufFile::read.
Result<void> read_weight(const GgufFile& file, const WeightTensor& weight, std::uint64_t from,
                         std::span<std::byte> destination);

/// Returns Int8 if the model has quantised matrices and all of them can be multiplied in Int8;
/// otherwise F32. `int8` is the model's layout for Int8.
Arithmetic fastest_arithmetic(const WeightsLayout& int8);

}  // namespace leasehold
