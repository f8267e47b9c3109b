/// The AMX kernel on emulated tiles, and on those of the CPU if it has them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu/amx/dot_groups.hpp"
#include "kernels/cpu/amx/int8.hpp"
#include "kernels/cpu/self_check.hpp"
#include "tests/support/emulated_tiles.hpp"
#include "tests/support/random_int8_tile.hpp"
#include "tests/support/test_seed.hpp"
#include "tests/support/trapped_tiles.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kMostRows = 33;

/// Rows of one block, whose chunks are whole steps or not, and whose last chunk is shorter.
std::vector<std::uint32_t> widths_in_blocks(TensorType type) {
  if (group_format(type).elements == kMinInt8Block) return {1, 7, 32, 43, 67};
  return {1, 3, 8, 9, 18};
}

template <class Use>
void each_format(Use&& use) {
  for (const TensorType type : kEveryType)
    if (has_row_groups(type)) use(type);
}

bool lacks_avx512() {
  if (can_emulate_tiles()) return false;
  WARN("not run: the kernel around emulated tiles needs AVX-512 with VNNI");
  return true;
}

bool lacks_amx() {
  if (cpu_has(SimdPath::Amx)) return false;
  WARN("not run: this machine lacks " << missing_for(SimdPath::Amx));
  return true;
}

/// The first dot of the last tile of any number of rows that differs from the plain one; -1 if
/// none.
std::ptrdiff_t first_difference_of(const RandomInt8Tile& tile, RandomInt8Tile::DotGroups dots,
                                   std::uint32_t n_groups, std::uint32_t n_rows) {
  const std::uint32_t first = (n_rows - 1) / kInt8TileRows * kInt8TileRows;
  const auto plain = row_kernels(SimdPath::Scalar).dot_groups_int8;
  return first_difference(tile.dots(dots, n_groups, n_rows - first, first),
                          tile.dots(plain, n_groups, n_rows - first, first));
}

/// Releases the thread's tiles at the end of a test, also of one that fails.
template <class Tiles>
struct ReleaseAtEnd {
  ~ReleaseAtEnd() { amx::release_tiles<Tiles>(); }
};

template <class Tiles>
void check_every_format() {
  const ReleaseAtEnd<Tiles> at_end;
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  each_format([&](TensorType type) {
    for (const std::uint32_t n_blocks : widths_in_blocks(type)) {
      const RandomInt8Tile tile(random, type, n_blocks, kMostRows);
      for (std::uint32_t n_rows = 1; n_rows <= kMostRows; ++n_rows) {  // full tiles only once
        const std::uint32_t n_groups = 1 + n_rows % kInt8TileGroups;
        CAPTURE(name(type), n_blocks, n_groups, n_rows);
        REQUIRE(first_difference_of(tile, amx::dot_groups<Tiles>, n_groups, n_rows) == -1);
      }
    }
  });
}

/// Numbers from `value` to the nearer of 1 and -1. Unless all are equal, some sums are odd.
std::vector<float> values_near(SeededRandom& random, std::size_t n, float value) {
  const float sign = value < 0 ? -1.0F : 1.0F;
  std::vector<float> values = random_floats(random, n, 1.0F - std::abs(value));
  for (float& x : values) x = sign * (1.0F - std::abs(x));
  return values;
}

/// Tiles that multiply bytes as if the codes were unsigned.
struct UnsignedTiles : EmulatedTiles {
  template <int kC, int kA, int kB>
  static void multiply() {
    multiply_as<std::int8_t, std::uint8_t>(used(kC), used(kA), used(kB));
  }
};

/// The AVX-512 path with dots by these tiles.
template <class Tiles>
RowKernels kernels_with() {
  RowKernels kernels = row_kernels(SimdPath::Avx512);
  kernels.dot_groups_int8 = amx::dot_groups<Tiles>;
  kernels.end_int8_unit = amx::release_tiles<Tiles>;
  return kernels;
}

using ByteTile = std::array<std::int8_t, 16 * 64>;
using IntTile = std::array<std::int32_t, 16 * 16>;

ByteTile random_bytes(SeededRandom& random) {
  ByteTile bytes;
  for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random.below(256));
  return bytes;
}

/// C += A·B with rows of A 48 bytes apart, stored in rows of 16; other elements stay.
template <class Tiles>
[[gnu::target("amx-tile,amx-int8")]] IntTile product(std::uint32_t n_rows, std::uint32_t depth,
                                                     const ByteTile& a, const ByteTile& b,
                                                     IntTile c) {
  Tiles::configure(amx::tile_config(n_rows, depth));
  Tiles::template load<2>(c.data(), 64);
  Tiles::template load<5>(a.data(), 48);
  Tiles::template load<7>(b.data(), 64);
  Tiles::template multiply<2, 5, 7>();
  Tiles::template store<2>(c.data(), 64);
  Tiles::release();
  return c;
}

IntTile plain_product(std::uint32_t n_rows, std::uint32_t depth, const ByteTile& a,
                      const ByteTile& b, IntTile c) {
  for (std::uint32_t m = 0; m < n_rows; ++m)
    for (std::uint32_t n = 0; n < 16; ++n)
      for (std::uint32_t k = 0; k < depth; ++k)
        c[m * 16 + n] += a[m * 48 + k] * b[k / 4 * 64 + n * 4 + k % 4];
  return c;
}

template <class Tiles>
void check_products() {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  for (const std::uint32_t depth : {16, 32}) {
    for (std::uint32_t n_rows = 1; n_rows <= 16; ++n_rows) {
      const ByteTile a = random_bytes(random);
      const ByteTile b = random_bytes(random);
      IntTile c;
      for (std::int32_t& sum : c) sum = static_cast<std::int32_t>(random.below(2001)) - 1000;
      CAPTURE(depth, n_rows);
      REQUIRE((product<Tiles>(n_rows, depth, a, b, c) == plain_product(n_rows, depth, a, b, c)));
    }
  }
}

}  // namespace

TEST_CASE("amx: emulated tiles give the plain product, and change no row beyond theirs") {
  check_products<EmulatedTiles>();
}

TEST_CASE("amx: this CPU's tiles give the plain product, and change no row beyond theirs") {
  if (!lacks_amx()) check_products<amx::HardwareTiles>();
}

TEST_CASE("amx: emulated tiles give the bits of the plain loops, for any format, rows and width") {
  if (lacks_avx512()) return;
  check_every_format<EmulatedTiles>();
}

TEST_CASE(
    "amx: this CPU's tiles give the bits of the plain loops, for any format, rows and width") {
  if (!lacks_amx()) check_every_format<amx::HardwareTiles>();
}

TEST_CASE(
    "amx: the instructions themselves give the bits of the plain loops, when they are trapped") {
  if (lacks_avx512()) return;
  if (cpu_has(SimdPath::Amx)) {
    WARN("not run: this CPU executes the instructions");
    return;
  }
  const TrappedTiles handler;
  const ReleaseAtEnd<amx::HardwareTiles> at_end;
  const std::uint64_t before = trapped_instructions();
  check_products<amx::HardwareTiles>();
  SeededRandom random(test_seed());
  each_format([&](TensorType type) {
    const RandomInt8Tile tile(random, type, widths_in_blocks(type)[3]);
    for (std::uint32_t n_rows = amx::kLeastTileRows; n_rows <= kInt8TileRows; ++n_rows) {
      CAPTURE(name(type), n_rows);
      REQUIRE(first_difference_of(tile, amx::dot_groups_int8, 2, n_rows) == -1);
    }
    amx::end_int8_unit();
  });
  CHECK(trapped_instructions() > before);
  CHECK(EmulatedTiles::configured_threads == 0);
}

TEST_CASE("amx: rows that are anywhere in memory have the bits of the plain loops") {
  if (lacks_avx512()) return;
  const ReleaseAtEnd<EmulatedTiles> at_end;
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  each_format([&](TensorType type) {
    RandomInt8Tile tile(random, type, widths_in_blocks(type)[3], kMostRows);
    for (RoundedRow& row : tile.x) row = tile.rounded.row(random.below(kMostRows));
    for (std::uint32_t n_rows = 1; n_rows <= kInt8TileRows; ++n_rows) {
      CAPTURE(name(type), n_rows);
      REQUIRE(first_difference_of(tile, amx::dot_groups<EmulatedTiles>, 1, n_rows) == -1);
    }
  });
}

TEST_CASE("amx: the largest elements, scales and minima have the bits of the plain loops") {
  if (lacks_avx512()) return;
  const ReleaseAtEnd<EmulatedTiles> at_end;
  SeededRandom random(1);
  each_format([&](TensorType type) {
    RandomInt8Tile tile(random, type, 2);
    const GroupFormat format = group_format(type);
    for (const int byte : {0x00, 0x7F, 0x80, 0xFF}) {
      for (std::size_t at = 0; at < tile.groups.size(); at += format.size_bytes())
        std::fill_n(tile.groups.begin() + static_cast<std::ptrdiff_t>(at + format.sub_scales_at()),
                    format.size_bytes() - format.sub_scales_at(), static_cast<std::byte>(byte));
      for (const float value : {1.0F, -1.0F, 0.75F, -0.75F}) {
        for (std::uint32_t r = 0; r < kInt8TileRows; ++r)
          tile.round(r, values_near(random, tile.n_in, value));
        CAPTURE(name(type), byte, value);
        REQUIRE(first_difference_of(tile, amx::dot_groups<EmulatedTiles>, 2, kInt8TileRows) == -1);
      }
    }
  });
}

TEST_CASE("amx: steps cover every piece once, and none crosses a chunk or a block of 256") {
  each_format([](TensorType type) {
    const std::uint32_t per_block = amx::block_pieces(type);
    for (std::uint32_t n_blocks = 1; n_blocks <= 80; ++n_blocks) {
      CAPTURE(name(type), n_blocks);
      const amx::Steps steps(type, n_blocks * group_format(type).elements);
      const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks) * per_block;
      std::uint32_t covered = 0;
      for (amx::Step step = steps.first(); !step.is_empty(); step = steps.after(step)) {
        REQUIRE(step.pieces.begin == covered);
        REQUIRE(step.count() <= amx::kStepPieces);
        const std::uint32_t last = step.pieces.end - 1;
        REQUIRE(step.pieces.begin / per_chunk == last / per_chunk);
        REQUIRE((per_block == 1 || step.pieces.begin / per_block == last / per_block));
        REQUIRE(step.begins_chunk() == (step.pieces.begin % per_chunk == 0));
        REQUIRE(step.is_in_first_chunk() == (step.pieces.begin < per_chunk));
        covered = step.pieces.end;
        REQUIRE(step.ends_chunk() == (covered % per_chunk == 0 || covered == n_blocks * per_block));
      }
      REQUIRE(covered == n_blocks * per_block);
    }
  });
}

TEST_CASE("amx: few rows have the bits of AVX-512 and use no tile") {
  if (lacks_avx512()) return;
  SeededRandom random(test_seed());
  const RandomInt8Tile tile(random, TensorType::Q8_0, 9);
  for (std::uint32_t n_rows = 1; n_rows < amx::kLeastTileRows; ++n_rows)
    REQUIRE(first_difference_of(tile, amx::dot_groups_int8, 2, n_rows) == -1);
  CHECK(amx::configured_shape<amx::HardwareTiles> == 0);
}

TEST_CASE("amx: tiles are configured once per shape, and released once") {
  if (lacks_avx512()) return;
  const ReleaseAtEnd<EmulatedTiles> at_end;
  SeededRandom random(test_seed());
  const RandomInt8Tile tile(random, TensorType::Q4_K, 1);
  const auto configurations = [&](std::uint32_t n_rows) {
    const std::uint64_t before = EmulatedTiles::configurations;
    tile.dots(amx::dot_groups<EmulatedTiles>, 2, n_rows);
    return EmulatedTiles::configurations - before;
  };
  CHECK(configurations(16) == 1);
  CHECK(configurations(16) == 0);
  CHECK(configurations(9) == 1);
  CHECK(EmulatedTiles::configured_threads == 1);
  amx::release_tiles<EmulatedTiles>();
  CHECK(EmulatedTiles::configured_threads == 0);
  CHECK(configurations(9) == 1);
}

TEST_CASE("amx: what a machine lacks is named") {
  const amx::Support all{true, true, true, true, true};
  CHECK(amx::missing(all).empty());
  const auto missing_without = [&](bool amx::Support::* part) {
    amx::Support support = all;
    support.*part = false;
    return amx::missing(support);
  };
  CHECK_THAT(std::string(missing_without(&amx::Support::has_tiles)), Catch::Equals("AMX-TILE"));
  CHECK_THAT(std::string(missing_without(&amx::Support::has_int8)), Catch::Equals("AMX-INT8"));
  CHECK_THAT(std::string(missing_without(&amx::Support::has_avx512)), Catch::Contains("VNNI"));
  CHECK_THAT(std::string(missing_without(&amx::Support::is_enabled)), Catch::Contains("XCR0"));
  CHECK_THAT(std::string(missing_without(&amx::Support::is_permitted)),
             Catch::Contains("permission"));
}

TEST_CASE("self-check: every path of this CPU passes, and products with a wrong sign do not") {
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path)) CHECK(matches_scalar_dots(row_kernels(path)));
  if (lacks_avx512()) return;
  CHECK(matches_scalar_dots(kernels_with<EmulatedTiles>()));
  CHECK_FALSE(matches_scalar_dots(kernels_with<UnsignedTiles>()));
}

}  // namespace leasehold::testing
