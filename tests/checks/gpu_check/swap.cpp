// The swap stage moves blocks between memory of the GPU and registered host memory, and checks that
// they return unchanged and that a revocation stops the copies before a waiter is called.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "ipc/cuda/device_memory.hpp"
#include "ipc/cuda/registered_mapper.hpp"
#include "ipc/region/memory_object.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"
#include "tests/checks/local_model/local_leases.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr LeaseId kLease{.slot = 0, .generation = 1};
constexpr std::uint32_t kRevokedAt = 3;  // in units
constexpr std::uint64_t kUnitBytes = 256 * 1024;

/// Revokes the lease after the poll of one unit, so that this unit is still queued.
class RevokingProbe final : public GateProbe {
 public:
  explicit RevokingProbe(LocalLeases& leases) : leases_(&leases) {}
  void arm() {
    units = 0;
    is_armed_ = true;
  }
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t, SequenceMask) override {
    if (units++ != kRevokedAt || !is_armed_) return;
    leases_->revoke(kLease);
    has_revoked = true;
  }
  std::atomic<std::uint32_t> units{0};
  std::atomic<bool> has_revoked{false};

 private:
  LocalLeases* leases_;
  bool is_armed_ = false;
};

/// A lease of one sequence and its gate.
struct Lease {
  static Result<std::unique_ptr<Lease>> make() {
    LocalLeases shared = TRY(LocalLeases::create(1));
    shared.table.grant(kLease, {});
    return std::make_unique<Lease>(std::move(shared));
  }
  ThreadGate gate() {
    return make_gates({.table = &shared.reader,
                       .segment = &shared.writer,
                       .stops = &stops,
                       .probe = &probe},
                      0, 1)
        .front();
  }

  LocalLeases shared;
  StopFlags stops = {};
  NullRefusalListener ignored = {};
  RevokingProbe probe{shared};
  std::uint64_t step = 0;
};

enum class Direction : std::uint8_t { Out, In };

/// Blocks on the GPU, and equally many in host memory.
class Blocks {
 public:
  static Result<std::unique_ptr<Blocks>> make(Card& card, std::uint64_t block_bytes,
                                              std::uint32_t count) {
    std::unique_ptr<Lease> lease = TRY(Lease::make());
    const BackendLimits limits{
        .max_rows = 1, .max_context = 16, .n_heads = 1, .head_dim = 64, .max_width = 64};
    auto backend = TRY(cuda::CudaBackend::create(card.context(), limits, lease->gate(), {}));
    const std::uint64_t size_bytes = block_bytes * count;
    const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), size_bytes));
    auto on_card = std::make_shared<cuda::DeviceMapping>(
        TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite)));
    MemoryObject object = TRY(MemoryObject::create({.name = "swap", .size_bytes = size_bytes}));
    Mapping host = TRY(Mapping::map(object.fd(), size_bytes, MapAccess::ReadOnly));
    const cuda::RegisteredMapper mapper(card.context());
    LeasedMapping swap =
        TRY(mapper.map(std::move(object).release(), size_bytes, MapAccess::ReadWrite));
    return std::unique_ptr<Blocks>(new Blocks{card, block_bytes, std::move(lease),
                                              std::move(on_card), std::move(host), std::move(swap),
                                              std::move(backend)});
  }

  /// Copies all blocks. Returns true if their sequence is live to the end.
  Result<bool> copy(Direction direction) {
    const auto size_bytes = static_cast<std::ptrdiff_t>(host_.size_bytes());
    const LeasedMapping kv(on_card_, {cuda::device_pointer<>(kv_address()), host_.size_bytes()},
                           MapAccess::ReadWrite);
    std::vector<LeasedCopy> copies;
    for (std::ptrdiff_t at = 0; at < size_bytes; at += static_cast<std::ptrdiff_t>(block_bytes_)) {
      const auto here = kv.writable_base() + at;
      const auto there = swap_.writable_base() + at;
      copies.push_back(direction == Direction::Out ? LeasedCopy{.to = there, .from = here}
                                                   : LeasedCopy{.to = here, .from = there});
    }
    GateSet gates(++lease_->step, lease_->stops, lease_->ignored);
    const LeaseDependency dependency = TRY(lease_->shared.reader.dependency(kLease));
    gates.add_sequence({&dependency, 1});
    const LaunchStatus status =
        backend_->copy_blocks({.gates = &gates, .rows = {}},
                              {.sequence = 0, .copies = copies, .block_size_bytes = block_bytes_});
    if (const auto fault = backend_->fault()) return std::unexpected(*fault);
    return !status.none_live();
  }

  CUdeviceptr kv_address() const { return on_card_->address(); }
  std::span<const std::byte> swap() const { return {host_.data(), host_.size_bytes()}; }
  Result<std::vector<std::byte>> kv() const {
    std::vector<std::byte> bytes(host_.size_bytes());
    TRY(card_->fetch(bytes, kv_address()));
    return bytes;
  }
  RevokingProbe& probe() { return lease_->probe; }
  /// Waits as a broker that saw the revocation does: first for a quiet segment, then for the GPU.
  void when_settled(std::move_only_function<void()> callback) {
    const WorkerSegmentReader::Snapshot seen = lease_->shared.segment.snapshot();
    while (!lease_->shared.segment.is_quiet_since(seen, Touches::TenantMemory))
      std::this_thread::yield();
    backend_->when_settled(SettleScope::TenantMemory, std::move(callback));
  }

 private:
  Blocks(Card& card, std::uint64_t block_bytes, std::unique_ptr<Lease> lease,
         std::shared_ptr<cuda::DeviceMapping> on_card, Mapping host, LeasedMapping swap,
         std::unique_ptr<cuda::CudaBackend> backend)
      : card_(&card),
        block_bytes_(block_bytes),
        lease_(std::move(lease)),
        on_card_(std::move(on_card)),
        host_(std::move(host)),
        swap_(std::move(swap)),
        backend_(std::move(backend)) {}

  Card* card_;
  std::uint64_t block_bytes_;
  std::unique_ptr<Lease> lease_;
  std::shared_ptr<cuda::DeviceMapping> on_card_;
  Mapping host_;  // the memory of `swap_` for the host
  LeasedMapping swap_;
  std::unique_ptr<cuda::CudaBackend> backend_;
};

/// Copies blocks out, clears them and copies them in; the GPU's memory then has its old contents.
Result<void> check_round_trip(StageReport& report, Card& card, Blocks& blocks) {
  const std::size_t size_bytes = blocks.swap().size();
  TRY(card.fill(blocks.kv_address(), size_bytes,
                {.keep = ~std::uint64_t{0}, .set = 0, .seed = 11}));
  const std::vector<std::byte> before = TRY(blocks.kv());
  const bool is_out = TRY(blocks.copy(Direction::Out));
  report.require("swap: host memory holds the blocks",
                 is_out && std::ranges::equal(blocks.swap(), before));
  TRY(card.clear(blocks.kv_address(), size_bytes));
  const bool is_in = TRY(blocks.copy(Direction::In));
  report.require("swap: blocks that come back are unchanged", is_in && TRY(blocks.kv()) == before);
  return {};
}

Result<void> measure_copies(StageReport& report, Blocks& blocks, bool is_tiny) {
  const Repeats repeats = is_tiny ? Repeats{.warm = 0, .count = 1} : Repeats{.warm = 1, .count = 9};
  for (const Direction direction : {Direction::Out, Direction::In}) {
    const auto copy_once = [&]() -> Result<void> {
      (void)TRY(blocks.copy(direction));
      return {};
    };
    const double seconds = TRY(median_seconds(repeats, copy_once));
    const double gb_per_s = static_cast<double>(blocks.swap().size()) / seconds / 1e9;
    const char* name = direction == Direction::Out ? "out" : "in";
    report.numbers()["swap"][fmt::format("{}_gb_per_s", name)] = gb_per_s;
    report.measured(fmt::format("swap: copying {}", name), fmt::format("{:.1f} GB/s", gb_per_s));
  }
  return {};
}

/// Measures mapping and unmapping, which both delay a worker's other driver calls.
Result<void> measure_registration(StageReport& report, Card& card, std::uint64_t size_bytes) {
  const cuda::RegisteredMapper mapper(card.context());
  const auto map_once = [&]() -> Result<void> {
    MemoryObject object = TRY(MemoryObject::create({.name = "swap", .size_bytes = size_bytes}));
    TRY(mapper.map(std::move(object).release(), size_bytes, MapAccess::ReadWrite));
    return {};
  };
  const double seconds = TRY(median_seconds({.warm = 1, .count = 5}, map_once));
  report.numbers()["swap"]["map_and_unmap_us"] = seconds * 1e6;
  report.measured(fmt::format("swap: mapping and unmapping {} MiB", size_bytes >> 20),
                  fmt::format("{:.0f} us", seconds * 1e6));
  return {};
}

/// Revokes the lease while units are queued.
Result<void> check_revocation(StageReport& report, Blocks& blocks) {
  blocks.probe().arm();
  std::vector<std::byte> bytes_when_settled;
  std::atomic<bool> is_settled{false};
  std::atomic<bool> is_over{false};
  std::thread broker([&] {
    while (!blocks.probe().has_revoked && !is_over) std::this_thread::yield();
    blocks.when_settled([&] {
      bytes_when_settled.assign(blocks.swap().begin(), blocks.swap().end());
      is_settled = true;
    });
  });
  const Result<bool> copied = blocks.copy(Direction::Out);
  is_over = true;
  broker.join();
  const bool was_live = TRY(copied);
  report.require(
      "swap: a revocation stops the copies", !was_live && blocks.probe().units == kRevokedAt + 1,
      fmt::format("{} units of at most {} KiB", blocks.probe().units.load(), kUnitBytes >> 10));
  report.require("swap: nothing is copied after a waiter was called",
                 is_settled && std::ranges::equal(blocks.swap(), bytes_when_settled));
  return {};
}

}  // namespace

Result<void> check_swap(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const std::uint64_t block_bytes = settings.tiny ? 3 * kUnitBytes / 2 : 2u << 20;
  const std::unique_ptr<Blocks> blocks =
      TRY(Blocks::make(*card, block_bytes, settings.tiny ? 16 : 64));
  TRY(check_round_trip(report, *card, *blocks));
  TRY(measure_copies(report, *blocks, settings.tiny));
  TRY(measure_registration(report, *card, settings.tiny ? 2u << 20 : 32u << 20));
  return check_revocation(report, *blocks);  // last: the lease is not granted again
}

}  // namespace leasehold::gpu_check
