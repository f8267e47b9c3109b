#include <catch2/catch.hpp>

#include "kernels/model/kv_type.hpp"

using namespace leasehold;

namespace {

/// Two heads of 64 floats and a convolution of 40 in the first layer, nothing in the second, a
/// convolution only in the third.
constexpr StateShape kStateShapes[] = {
    {.n_heads = 2, .head_floats = 64, .convolution_floats = 40}, {}, {.convolution_floats = 16}};

}  // namespace

TEST_CASE("state layout: each piece lies in one block, at a multiple of 64 bytes") {
  const StateLayout layout(kStateShapes, 512);
  CHECK(layout.blocks() == 2);
  REQUIRE(layout.pieces(0).size() == 3);
  CHECK(layout.pieces(0)[0] == StatePiece{.block = 0, .offset_bytes = 0});
  CHECK(layout.pieces(0)[1] == StatePiece{.block = 0, .offset_bytes = 256});
  CHECK(layout.pieces(0)[2] == StatePiece{.block = 1, .offset_bytes = 0});
  CHECK(layout.pieces(1).empty());
  REQUIRE(layout.pieces(2).size() == 1);
  CHECK(layout.pieces(2)[0] == StatePiece{.block = 1, .offset_bytes = 192});
}

TEST_CASE("state layout: the largest piece bounds the block from below") {
  CHECK(StateLayout::largest_piece_bytes(kStateShapes) == 256);
  CHECK(StateLayout(kStateShapes, 256).blocks() == 3);
  const KvLayout kv({}, StateLayout::largest_piece_bytes(kStateShapes));
  CHECK(kv.block_size_bytes() == 256);
}

TEST_CASE("state layout: a model without recurrent layers needs no blocks") {
  const StateShape none[] = {{}, {}};
  CHECK(StateLayout::largest_piece_bytes(none) == 0);
  CHECK(StateLayout(none, 1024).blocks() == 0);
  CHECK(StateLayout().pieces(0).empty());
}

TEST_CASE("state layout: recurrent layers of a config have pieces, attention has none") {
  ModelConfig config{};
  config.recurrent = {
      .n_taps = 4, .n_groups = 1, .n_heads = 2, .key_dim = 8, .head_dim = 8, .channels = 32};
  config.layers = {{.n_kv_heads = 0, .head_dim = 16, .n_ff = 32, .mixer = Mixer::DeltaNet},
                   {.n_kv_heads = 1, .head_dim = 16, .n_ff = 32}};
  const KvLayout kv = kv_layout(config, KvType::F16);
  CHECK(kv.block_size_bytes() == 1024);
  config.windows = {.width = 16, .has_window = {false, true}};
  CHECK(kv_layout(config, KvType::F16).n_groups() == 1);
  const StateLayout state = state_layout(config, kv);
  CHECK(state.blocks() == 1);
  CHECK(state.pieces(0).size() == 3);
  CHECK(state.pieces(1).empty());
}
