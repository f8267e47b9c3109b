#include <catch2/catch.hpp>
#include <map>

#include "worker/adapter/adapter_layout.hpp"

namespace leasehold {
namespace {

using Catch::Matchers::Contains;

std::vector<AdaptedWeight> weights_of(std::initializer_list<std::uint32_t> ranks) {
  std::vector<AdaptedWeight> weights;
  for (const std::uint32_t rank : ranks)
    weights.push_back({.layer = static_cast<std::uint32_t>(weights.size()),
                       .target = AdapterTarget::Up,
                       .type = TensorType::F16,
                       .rank = rank,
                       .scale = 1.0F,
                       .n_in = 100,
                       .n_out = 300});
  return weights;
}

}  // namespace

TEST_CASE("adapter layout: each matrix lies in one extent, aligned, beside no other") {
  const auto weights = weights_of({1, 7, 3, 16, 2, 9, 5});
  for (const std::uint64_t extent_bytes : {9600u, 10000u, 16384u, 1u << 20}) {
    const auto layout = make_adapter_layout(weights, extent_bytes);
    REQUIRE(layout);
    REQUIRE(layout->pieces.size() == 2 * weights.size());
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> ends;
    for (std::size_t i = 0; i < layout->pieces.size(); ++i) {
      const AdapterPiece& piece = layout->pieces[i];
      CHECK(piece.weight == i / 2);
      CHECK(piece.half == (i % 2 == 0 ? AdapterHalf::A : AdapterHalf::B));
      CHECK(piece.size_bytes == size_bytes(weights[piece.weight], piece.half));
      CHECK(piece.offset % kAdapterAlignment == 0);
      CHECK(piece.offset + piece.size_bytes <= extent_bytes);
      CHECK(piece.extent < layout->n_extents);
      ends[{piece.extent, piece.offset}] = piece.offset + piece.size_bytes;
    }
    for (auto next = ends.begin(), piece = next++; next != ends.end(); piece = next++)
      if (piece->first.first == next->first.first) CHECK(piece->second <= next->first.second);
  }
}

TEST_CASE("adapter layout: large matrices go first, so few extents are needed") {
  // Matrices of 6400, 6400, 3200, 3200 and twice as many bytes of A and B in any order.
  const auto layout = make_adapter_layout(weights_of({16, 16, 8, 8}), 1 << 16);
  REQUIRE(layout);
  CHECK(layout->n_extents == 1);
  CHECK(make_adapter_layout(weights_of({16, 16, 8, 8}), 9600)->n_extents == 4);
}

TEST_CASE("adapter layout: a matrix larger than an extent is refused by name") {
  const auto layout = make_adapter_layout(weights_of({1, 20}), 11999);
  REQUIRE_FALSE(layout);
  CHECK(layout.error().code == Errc::UnsupportedModel);
  CHECK_THAT(layout.error().detail, Contains("the matrix B of layer 1's up takes 12000 bytes"));
  CHECK(make_adapter_layout(weights_of({1, 20}), 12000));
}

}  // namespace leasehold
