/// The five launches of a layer whose matmuls start early: a lease that ends before any of them,
/// and a step after a stop.
#include <catch2/catch.hpp>

#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

const cuda::CudaOptions kQueued{.graphs = cuda::GraphUse::None, .max_in_flight = 16};

/// Holds a step's launches until eight wait, runs the embedding and the first launches of layer 0,
/// and then calls `act`. The others run after the next poll.
void act_between_launches(DecodeRig& rig, std::uint64_t n_of_layer, std::function<void()> act) {
  rig.units.start([&rig, n_of_layer, act = std::move(act)](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == 10) fake_cuda_release();  // the poll of unit 9 has written the mirror
    if (n != 8) return;
    const KernelCount kernels(nullptr);
    while (kernels() < 1 + n_of_layer) fake_cuda_run(1);
    act();
  });
  rig.before_finish = fake_cuda_release;  // a stopped step ends before unit 10
}

}  // namespace

TEST_CASE("cuda backend: between any two early launches a revoked row is left alone") {
  DecodeRig calm(kQueued, MatrixLayout::RowGroups);
  calm.step();
  for (std::uint64_t n_of_layer = 0; n_of_layer <= 5; ++n_of_layer) {
    CAPTURE(n_of_layer);
    DecodeRig rig(kQueued, MatrixLayout::RowGroups);
    std::vector<std::byte> when_revoked;
    act_between_launches(rig, n_of_layer, [&] {
      when_revoked = rig.kv.bytes_of(DecodeRig::kDead);
      rig.revoke(DecodeRig::kDead);
    });
    CHECK(rig.step().live == DecodeRig::kSurvivors);
    CHECK(rig.kv.bytes_of(DecodeRig::kDead) == when_revoked);
    for (const std::uint32_t survivor : {0u, 2u}) {
      CHECK(rig.kv.bytes_of(survivor) == calm.kv.bytes_of(survivor));
      CHECK(rig.logits(survivor) == calm.logits(survivor));
    }
  }
}

TEST_CASE("cuda backend: a stop between any two early launches leaves the next step its bits") {
  DecodeRig calm(kQueued, MatrixLayout::RowGroups);
  calm.step(2);
  for (std::uint64_t n_of_layer = 0; n_of_layer <= 5; ++n_of_layer) {
    CAPTURE(n_of_layer);
    DecodeRig rig(kQueued, MatrixLayout::RowGroups);
    std::vector<std::byte> when_stopped;
    act_between_launches(rig, n_of_layer, [&] {
      when_stopped = rig.kv.bytes_of(0);
      rig.table.revoke(FakeTable::kEngineSlot);
    });
    CHECK(rig.step().none_live());
    CHECK(rig.kv.bytes_of(0) == when_stopped);
    rig.units.start({});
    rig.before_finish = {};
    CHECK(rig.step(2).live == 0b111);
    CHECK(rig.all_logits() == calm.all_logits());
  }
}

#if LEASEHOLD_CUDA_EDGE_DATA
TEST_CASE("cuda backend: an early launch of a graph reads nothing that launches before it write") {
  DecodeRig plain({.graphs = cuda::GraphUse::None, .starts_early = false}, MatrixLayout::RowGroups);
  plain.step();
  DecodeRig rig({.segment_layers = 2}, MatrixLayout::RowGroups);
  fake_cuda_hide_unfinished(true);
  for (int i = 0; i < 2; ++i) {
    CHECK(rig.step().live == 0b111);
    CHECK(rig.all_logits() == plain.all_logits());
  }
  fake_cuda_hide_unfinished(false);
  CHECK(rig.backend->graph_count() == 1);
}
#endif

}  // namespace leasehold::testing
