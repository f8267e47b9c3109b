/// A lease word changes while launches wait in the stream: later kernels skip the revoked rows, and
/// waiters are called when the memory is quiet.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "ipc/cuda/device_memory.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

using cuda::GraphUse;

const cuda::CudaOptions kPlain{.graphs = GraphUse::None, .max_in_flight = 16};
constexpr std::uint32_t kDead = DecodeRig::kDead;

}  // namespace

TEST_CASE("cuda backend: kernels queued before a revocation skip the rows of the revoked lease") {
  const auto layout = GENERATE(MatrixLayout::Rows, MatrixLayout::RowGroups);
  DecodeRig calm(kPlain, layout);
  calm.step();
  DecodeRig rig(kPlain, layout);
  const auto before = rig.kv.bytes_of(kDead);
  // Units 0 to 8 wait in the stream when the word changes, including the first layer's append.
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == 8) rig.revoke(kDead);
    if (n == 10) fake_cuda_release();  // the poll of unit 9 has written the mirror
  });
  CHECK(rig.step().live == DecodeRig::kSurvivors);
  CHECK(rig.kv.bytes_of(kDead) == before);
  CHECK(calm.kv.bytes_of(kDead) != before);
  for (const std::uint32_t survivor : {0u, 2u}) {
    CHECK(rig.kv.bytes_of(survivor) == calm.kv.bytes_of(survivor));
    CHECK(rig.logits(survivor) == calm.logits(survivor));
  }
  const auto refusals = rig.table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].sequence == kDead);
}

TEST_CASE("cuda backend: kernels queued before the engine's lease is revoked do nothing") {
  const auto layout = GENERATE(MatrixLayout::Rows, MatrixLayout::RowGroups);
  DecodeRig rig(kPlain, layout);
  const auto before = rig.kv.bytes_of(0);
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == 8) rig.table.revoke(FakeTable::kEngineSlot);
  });
  rig.before_finish = fake_cuda_release;
  CHECK(rig.step().none_live());
  CHECK(rig.units.count() == 9);
  CHECK(rig.kv.bytes_of(0) == before);
  CHECK(rig.table.listener().refusals().size() == 1);

  rig.units.start({});
  rig.before_finish = {};
  CHECK(rig.step(2).live == 0b111);
  DecodeRig calm(kPlain, layout);
  calm.step(2);
  CHECK(rig.all_logits() == calm.all_logits());
}

TEST_CASE("cuda backend: the stream holds at most max_in_flight launches") {
  constexpr std::uint32_t kBound = 4;
  DecodeRig rig({.graphs = GraphUse::None, .max_in_flight = kBound});
  rig.step();
  const KernelCount kernels(nullptr);
  int most = 0;
  std::atomic<bool> over{false};
  fake_cuda_hold();
  rig.units.start([&](int n) {
    // Unit 0 is copies; every other unit is a kernel with its event.
    most = std::max(most, n - static_cast<int>(kernels()));
  });
  std::jthread stepper([&] {
    while (rig.units.count() < static_cast<int>(kBound)) std::this_thread::yield();
    while (!over) fake_cuda_run(1);
    fake_cuda_release();
  });
  CHECK(rig.step().live == 0b111);
  over = true;
  CHECK(rig.units.count() > 50);
  CHECK(most <= static_cast<int>(kBound));
  CHECK(most >= 2);  // otherwise nothing was in flight
}

TEST_CASE(
    "cuda backend: a waiter is called at once if nothing runs, otherwise when the launches are "
    "over") {
  DecodeRig rig(kPlain);
  rig.step();
  int told = 0;
  rig.backend->when_settled(SettleScope::Everything, [&] { ++told; });
  CHECK(told == 1);

  const KernelCount kernels(nullptr);
  std::uint64_t ran_when_notified = 0;
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == 6) {
      rig.backend->when_settled(SettleScope::Everything, [&] {
        ++told;
        ran_when_notified = kernels();
      });
    }
    if (n == 9) {
      CHECK(told == 1);
      fake_cuda_release();
    }
  });
  CHECK(rig.step().live == 0b111);
  CHECK(told == 2);
  CHECK(ran_when_notified >= 5);  // units 1 to 5; unit 0 is copies
}

TEST_CASE(
    "cuda backend: a tenant's waiter does not wait for later launches that touch weights only") {
  DecodeRig rig(kPlain);
  const KernelCount attentions("lh_attention_decode_f16_q1");
  int tenant = 0;
  int everything = 0;
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == 11) {  // the first layer's attention is queued, and matmuls after it
      rig.backend->when_settled(SettleScope::TenantMemory, [&] { ++tenant; });
      rig.backend->when_settled(SettleScope::Everything, [&] { ++everything; });
      CHECK(tenant == 0);
      while (attentions() < 1) fake_cuda_run(1);
    }
    if (n == 17) {  // the stream was full at unit 16, so the engine has polled
      CHECK(tenant == 1);
      CHECK(everything == 0);
      fake_cuda_release();
    }
  });
  CHECK(rig.step().live == 0b111);
  CHECK(tenant == 1);
  CHECK(everything == 1);
}

TEST_CASE(
    "cuda backend: a flip is refused while another thread maps memory and the driver is locked") {
  DecodeRig rig(kPlain);
  rig.step();
  const auto memory = required(cuda::DeviceMemory::create(test_card(), std::size_t{2} << 20));
  fake_cuda_hold();
  SequenceMask live = 0;
  std::jthread engine([&] {
    required(test_card().make_current());
    live = rig.step().live;
  });
  CHECK(engine_polls_again());  // the card works, and the engine waits for it
  fake_cuda_hold_calls("cuMemMap");
  std::jthread mapper(
      [&] { (void)required(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite)); });
  CHECK(eventually([] { return fake_cuda_held_calls() == 1; }));
  rig.revoke(DecodeRig::kDead);
  CHECK(eventually([&] { return !rig.table.listener().refusals().empty(); }));
  CHECK(fake_cuda_held_calls() == 1);  // the engine is not one of them
  fake_cuda_release_calls();
  mapper.join();
  fake_cuda_release();
  engine.join();
  CHECK(live == DecodeRig::kSurvivors);
}

TEST_CASE(
    "cuda backend: inside a segment a tenant's waiter is called by the matmul after attention") {
  DecodeRig rig({.segment_layers = DecodeRig::kLayers});
  rig.step();  // recorded, and run as a graph
  const KernelCount attentions("lh_attention_decode_f16_q1");
  std::atomic<bool> tenant{false};
  std::atomic<bool> everything{false};
  fake_cuda_hold();
  SequenceMask live = 0;
  std::jthread engine([&] {
    required(test_card().make_current());
    live = rig.step().live;
  });
  while (attentions() < 2) fake_cuda_run(1);
  CHECK(engine_polls_again());  // counts the graph's launch
  rig.revoke(kDead);
  rig.backend->when_settled(SettleScope::TenantMemory, [&] { tenant = true; });
  rig.backend->when_settled(SettleScope::Everything, [&] { everything = true; });
  CHECK(engine_polls_again());
  CHECK_FALSE(tenant);
  while (attentions() < 5) fake_cuda_run(1);
  CHECK(eventually([&] { return tenant.load(); }));
  CHECK_FALSE(everything);
  CHECK(attentions() < DecodeRig::kLayers);  // the graph is not over yet
  fake_cuda_release();
  engine.join();
  CHECK(everything);
  CHECK(live == DecodeRig::kSurvivors);
}

TEST_CASE("cuda backend: during a graph a waiter is called when a gate has seen the revocation") {
  DecodeRig rig({.segment_layers = 1});
  rig.step();  // recorded, and run as a graph
  for (int step = 0; step < 2; ++step) {
    CAPTURE(step);
    const std::size_t refused = rig.table.listener().refusals().size();
    const KernelCount gates("lh_conditional_gate");
    const KernelCount attentions("lh_attention_decode_f16_q1");
    std::atomic<bool> told{false};
    fake_cuda_hold();
    SequenceMask live = 0;
    std::jthread engine([&] {
      required(test_card().make_current());
      live = rig.step().live;
    });
    while (gates() < 2) fake_cuda_run(1);
    CHECK(engine_polls_again());  // counts the graph's launch
    rig.revoke(kDead);
    rig.backend->when_settled(SettleScope::Everything, [&] { told = true; });
    CHECK_FALSE(told);
    CHECK(engine_polls_again());
    CHECK(rig.table.listener().refusals().size() == refused + 1);
    CHECK_FALSE(told);
    while (gates() < 7) fake_cuda_run(1);
    CHECK(eventually([&] { return told.load(); }));
    CHECK(attentions() < DecodeRig::kLayers);  // the graph is not over yet
    fake_cuda_release();
    engine.join();
    CHECK(live == DecodeRig::kSurvivors);
  }
}

}  // namespace leasehold::testing
