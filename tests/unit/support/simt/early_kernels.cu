/// Small kernels with barriers in shared memory, bulk copies and a wait for the previous kernel.
#include "kernels/cuda/device/simt.cuh"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

using namespace leasehold::device;

constexpr std::uint32_t kSlotWords = 8;
constexpr std::uint32_t kSlots = 2;
constexpr std::uint32_t kWarps = 2;  // that consume

__device__ __forceinline__ std::uint32_t* slot_words(std::uint32_t slot) {
  return reinterpret_cast<std::uint32_t*>(dynamic_shared()) + slot * kSlotWords;
}

struct Ring {
  SharedBarrier filled[kSlots];
  SharedBarrier emptied[kSlots];
};

/// The warp behind the consuming ones copies p.n units of kSlotWords; lane i of each consuming warp
/// adds word i of them. out: the sums, warp by warp. `Defect` leaves one step out.
enum class Defect { None, ConsumerWait, ProducerWait, Expect, LastUnit };

template <Defect kDefect>
__device__ void consume(const Words& p, Ring& ring) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < p.n; ++i) {
    if (kDefect == Defect::LastUnit && i + 1 == p.n) return;
    if (kDefect != Defect::ConsumerWait) barrier_wait(&ring.filled[i % kSlots], i / kSlots % 2);
    if (threadIdx.x % 32 < kSlotWords) sum += slot_words(i % kSlots)[threadIdx.x % 32];
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(&ring.emptied[i % kSlots]);
  }
  if (threadIdx.x % 32 < kSlotWords) p.out[threadIdx.x / 32 * kSlotWords + threadIdx.x % 32] = sum;
}

template <Defect kDefect>
__device__ void produce(const Words& p, Ring& ring) {
  constexpr std::uint32_t kBytes = kSlotWords * sizeof(std::uint32_t);
  for (std::uint32_t i = 0; i < p.n; ++i) {
    if (kDefect != Defect::ProducerWait)
      barrier_wait(&ring.emptied[i % kSlots], (i / kSlots + 1) % 2);
    barrier_expect(&ring.filled[i % kSlots], kDefect == Defect::Expect ? kBytes - 16 : kBytes);
    bulk_copy(slot_words(i % kSlots), p.in + i * kSlotWords, kBytes, &ring.filled[i % kSlots]);
  }
}

template <Defect kDefect>
__device__ void run_ring(const Words& p) {
  __shared__ Ring ring;
  if (threadIdx.x == 0) {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      barrier_init(&ring.filled[slot], 1);
      barrier_init(&ring.emptied[slot], kWarps);
    }
  }
  __syncthreads();
  if (threadIdx.x < 32 * kWarps) {
    consume<kDefect>(p, ring);
  } else if (threadIdx.x == 32 * kWarps) {
    produce<kDefect>(p, ring);
  }
}

LEASEHOLD_KERNEL(lh_test_ring, Words, 96) {
  run_ring<Defect::None>(p);
}
LEASEHOLD_KERNEL(lh_test_ring_read_early, Words, 96) {
  run_ring<Defect::ConsumerWait>(p);
}
LEASEHOLD_KERNEL(lh_test_ring_filled_early, Words, 96) {
  run_ring<Defect::ProducerWait>(p);
}
LEASEHOLD_KERNEL(lh_test_ring_expects_less, Words, 96) {
  run_ring<Defect::Expect>(p);
}
LEASEHOLD_KERNEL(lh_test_ring_last_unawaited, Words, 96) {
  run_ring<Defect::LastUnit>(p);
}

/// Copies p.n bytes. Nothing arrives a second time, so phase 0 cannot end.
LEASEHOLD_KERNEL(lh_test_phase_never_ends, Words, 32) {
  __shared__ SharedBarrier barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 2);
    barrier_expect(&barrier, p.n);
    bulk_copy(dynamic_shared(), p.in, p.n, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier, 0);
}

LEASEHOLD_KERNEL(lh_test_barrier_unsynchronised, Words, 64) {
  __shared__ SharedBarrier barrier;
  if (threadIdx.x == 0) barrier_init(&barrier, 1);
  __syncwarp();
  if (threadIdx.x == 1) barrier_arrive(&barrier);
}

LEASEHOLD_KERNEL(lh_test_barrier_overwritten, Words, 32) {
  auto* const barrier = reinterpret_cast<SharedBarrier*>(dynamic_shared());
  if (threadIdx.x != 0) return;
  barrier_init(barrier, 1);
  slot_words(0)[1] = 0;
  barrier_arrive(barrier);
}

/// out: what the thread reads of p.in before and after its wait. Threads from p.n on do not wait.
LEASEHOLD_KERNEL_EARLY(lh_test_early, Words, 32, 1) {
  trigger_next_kernel();
  p.out[2 * threadIdx.x] = p.in[threadIdx.x];
  if (threadIdx.x >= p.n) return;
  await_previous_kernel();
  p.out[2 * threadIdx.x + 1] = p.in[threadIdx.x];
}

/// Copies 32 words before the wait, but reads the copies after it.
LEASEHOLD_KERNEL_EARLY(lh_test_early_copy, Words, 32, 1) {
  __shared__ SharedBarrier barrier;
  trigger_next_kernel();
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    barrier_expect(&barrier, 128);
    bulk_copy(dynamic_shared(), p.in, 128, &barrier);
  }
  __syncthreads();
  await_previous_kernel();
  barrier_wait(&barrier, 0);
  p.out[threadIdx.x] = slot_words(0)[threadIdx.x];
}

/// Stores before the wait what the previous kernel stores, too.
LEASEHOLD_KERNEL_EARLY(lh_test_early_store, Words, 32, 1) {
  trigger_next_kernel();
  p.out[threadIdx.x] = p.n;
  await_previous_kernel();
}

}  // namespace
}  // namespace leasehold::simt
