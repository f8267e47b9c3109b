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

TEST_CASE("adapter layout: matrices follow one another in the order in which steps read them") {
  std::vector<AdaptedWeight> weights = weights_of({3, 3, 3, 3});
  weights[0].target = AdapterTarget::Down;
  weights[1].layer = 0;
  const std::uint32_t read_order[] = {1, 0, 2, 3};  // layer 0's up and down, then other layers
  const auto layout = make_adapter_layout(weights, 1 << 16);
  REQUIRE(layout);
  std::uint64_t end = 0;
  for (const std::size_t half : {0, 1})
    for (const std::uint32_t weight : read_order) {
      const AdapterPiece& piece = layout->pieces[2 * weight + half];
      CHECK(piece.extent == 0);
      CHECK(piece.offset == end);
      end += (piece.size_bytes + kAdapterAlignment - 1) / kAdapterAlignment * kAdapterAlignment;
    }
}

TEST_CASE("adapter layout: large matrices go first where this takes fewer extents") {
  // Both A, of 400 bytes, would leave no room for B, of 1200 bytes, in the first extent.
  const auto layout = make_adapter_layout(weights_of({2, 2}), 2000);
  REQUIRE(layout);
  CHECK(layout->n_extents == 2);
}

TEST_CASE("adapter layout: a matrix larger than an extent is refused by name") {
  const auto layout = make_adapter_layout(weights_of({1, 20}), 11999);
  REQUIRE_FALSE(layout);
  CHECK(layout.error().code == Errc::UnsupportedModel);
  CHECK_THAT(layout.error().detail, Contains("the matrix B of layer 1's up takes 12000 bytes"));
  CHECK(make_adapter_layout(weights_of({1, 20}), 12000));
}

}  // namespace leasehold
