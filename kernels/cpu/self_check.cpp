#include "kernels/cpu/self_check.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/random.hpp"
#include "kernels/cpu/scalar_rows.hpp"
#include "kernels/rounded_rows.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kSeed = 1;

/// The number of blocks that makes chunks of two or four blocks, with a shorter last chunk.
constexpr std::uint32_t n_blocks(const GroupFormat& format) {
  return format.has_sub_blocks() ? 15 : 30;
}

/// Random bytes, with scales and minima of about 0.01.
std::vector<std::byte> random_group(SeededRandom& random, TensorType type, std::uint32_t n_in) {
  const GroupFormat format = group_format(type);
  std::vector<std::byte> group(row_group_bytes(type, n_in));
  for (std::byte& byte : group) byte = static_cast<std::byte>(random.below(256));
  for (std::size_t block = 0; block < group.size(); block += format.size_bytes())
    for (std::size_t at = 0; at < format.sub_scales_at(); at += sizeof(std::uint16_t)) {
      const auto half = static_cast<std::uint16_t>(0x2000 + random.below(0x400));
      std::memcpy(group.data() + block + at, &half, sizeof half);
    }
  return group;
}

void fill_rows(SeededRandom& random, std::uint32_t n_in, std::uint32_t block, RoundedRows& rows) {
  std::vector<float> x(n_in);
  for (std::uint32_t r = 0; r < kInt8TileRows; ++r) {
    for (float& value : x) value = static_cast<float>(random.below(2001)) - 1000.0F;
    round_row(x.data(), n_in, block, rows.buffer(r));
  }
}

/// The rows of x that a tile has: the first `n`, or `n` rows whose addresses have no constant
/// distance.
struct Rows {
  std::uint32_t n;
  bool are_in_order;
};
constexpr Rows kRows[] = {
    {kInt8TileRows, true}, {kInt8TileRows / 2 + 1, true}, {kInt8TileRows, false}};

/// Computes the scalar dots of all rows once, and compares the dots of each tile with them.
bool matches_scalar_dots_of(TensorType type, const RowKernels& kernels) {
  SeededRandom random(kSeed);
  const GroupFormat format = group_format(type);
  const std::uint32_t n_in = n_blocks(format) * format.elements;
  const std::vector<std::byte> group = random_group(random, type, n_in);
  RoundedRows rows(kInt8TileRows, n_in);
  fill_rows(random, n_in, format.elements, rows);
  RoundedRow x[kInt8TileRows];
  for (std::uint32_t r = 0; r < kInt8TileRows; ++r) x[r] = rows.row(r);
  GroupDots plain{};
  Int8Tile tile{.type = type,
                .groups = group.data(),
                .n_groups = 1,
                .n_in = n_in,
                .x = x,
                .n_rows = kInt8TileRows,
                .out = &plain};
  scalar::dot_groups_int8(tile);
  return std::ranges::all_of(kRows, [&](const Rows& of_x) {
    const auto row_of = [&](std::uint32_t r) { return of_x.are_in_order ? r : r * 5 % of_x.n; };
    GroupDots dots{};
    for (std::uint32_t r = 0; r < of_x.n; ++r) x[r] = rows.row(row_of(r));
    tile.n_rows = of_x.n;
    tile.out = &dots;
    kernels.dot_groups_int8(tile);
    kernels.end_int8_unit();
    for (std::uint32_t r = 0; r < of_x.n; ++r)
      if (std::memcmp(plain[row_of(r)], dots[r], sizeof dots[r]) != 0) return false;
    return true;
  });
}

}  // namespace

bool matches_scalar_dots(const RowKernels& kernels) {
  return std::ranges::all_of(kTensorTypeRows, [&](const TensorTypeRow& row) {
    const auto type = static_cast<TensorType>(&row - kTensorTypeRows);
    const bool is_quantised = row.block.size_bytes != 0 && has_row_groups(type);
    return !is_quantised || matches_scalar_dots_of(type, kernels);
  });
}

}  // namespace leasehold
