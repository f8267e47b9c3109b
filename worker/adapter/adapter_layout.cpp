#include "worker/adapter/adapter_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Indexed by AdapterTarget.
constexpr std::array<std::string_view, kAdapterTargets> kNames{"q",    "k",  "v",   "o",
                                                               "gate", "up", "down"};

std::uint64_t aligned(std::uint64_t size_bytes) {
  return (size_bytes + kAdapterAlignment - 1) / kAdapterAlignment * kAdapterAlignment;
}

/// Assigns the piece to the first extent with room. `used` has the bytes used in each extent.
void place(AdapterPiece& piece, std::uint64_t extent_bytes, std::vector<std::uint64_t>& used) {
  const auto room = std::ranges::find_if(
      used, [&](std::uint64_t bytes) { return piece.size_bytes <= extent_bytes - bytes; });
  const auto extent = static_cast<std::size_t>(room - used.begin());
  if (room == used.end()) used.push_back(0);
  piece.extent = static_cast<std::uint32_t>(extent);
  piece.offset = used[extent];
  used[extent] = std::min(extent_bytes, used[extent] + aligned(piece.size_bytes));
}

/// Places the pieces in ascending order of their keys. Pieces with equal keys keep their order.
template <class Key>
AdapterLayout place_all(std::vector<AdapterPiece> pieces, std::uint64_t extent_bytes, Key&& key) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t piece) { return key(pieces[piece]); });
  std::vector<std::uint64_t> used;
  for (const std::size_t piece : order) place(pieces[piece], extent_bytes, used);
  return {static_cast<std::uint32_t>(used.size()), std::move(pieces)};
}

}  // namespace

std::string name(const AdaptedWeight& weight, AdapterHalf half) {
  return fmt::format("the matrix {} of layer {}'s {}", half == AdapterHalf::A ? "A" : "B",
                     weight.layer, kNames[static_cast<std::size_t>(weight.target)]);
}

std::uint64_t size_bytes(const AdaptedWeight& weight, AdapterHalf half) {
  return weight.rank *
         row_size_bytes(weight.type, half == AdapterHalf::A ? weight.n_in : weight.n_out);
}

std::uint64_t size_bytes(std::span<const AdaptedWeight> weights) {
  std::uint64_t total = 0;
  for (const AdaptedWeight& weight : weights)
    total += size_bytes(weight, AdapterHalf::A) + size_bytes(weight, AdapterHalf::B);
  return total;
}

Result<AdapterLayout> make_adapter_layout(std::span<const AdaptedWeight> weights,
                                          std::uint64_t extent_bytes) {
  std::vector<AdapterPiece> pieces;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    for (const AdapterHalf half : {AdapterHalf::A, AdapterHalf::B}) {
      const std::uint64_t bytes = size_bytes(weights[i], half);
      if (bytes > extent_bytes)
        return fail(Errc::UnsupportedModel,
                    fmt::format("{} takes {} bytes, and one extent has {}; start the broker with a "
                                "lower --max-extents, or train with a lower rank",
                                name(weights[i], half), bytes, extent_bytes));
      pieces.push_back({.weight = i, .half = half, .size_bytes = bytes});
    }
  }
  AdapterLayout as_read = place_all(pieces, extent_bytes, [&](const AdapterPiece& piece) {
    const AdaptedWeight& weight = weights[piece.weight];
    return std::tuple(piece.half, weight.layer, weight.target);
  });
  AdapterLayout large_first = place_all(
      std::move(pieces), extent_bytes, [](const AdapterPiece& piece) { return ~piece.size_bytes; });
  return as_read.n_extents <= large_first.n_extents ? as_read : large_first;
}

}  // namespace leasehold
