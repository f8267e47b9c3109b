/// Finds the largest logits of a row exactly: up to 64, in order.
///
/// A logit and its index form a *key* of 64 bits. A larger key comes earlier in the order, and all
/// keys of a row differ. So the result does not depend on the order in which threads scan.
#include "kernels/cuda/device/sampling_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kSamplingThreads = 512;
inline constexpr std::uint32_t kMaxKept = 1024;

/// Less than the key of any number.
inline constexpr std::uint64_t kNoKey = 0;

__device__ __forceinline__ std::uint64_t key_of(float logit, std::uint32_t index) {
  const std::uint32_t bits = __float_as_uint(logit + 0.0F);  // turns -0 into +0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return std::uint64_t{ordered} << 32 | (0xffffffffu - index);
}
__device__ __forceinline__ std::uint32_t index_of(std::uint64_t key) {
  return 0xffffffffu - static_cast<std::uint32_t>(key);
}
__device__ __forceinline__ bool is_finite(float x) {
  return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

/// The result of one thread's scan of a row.
struct ScanResult {
  std::uint64_t best;
  std::uint32_t has_nonfinite;
};

/// The largest key below `bound` of every 512th element.
__device__ __forceinline__ ScanResult scan_logits(const float* logits, std::uint32_t n,
                                                  std::uint64_t bound) {
  ScanResult result{kNoKey, 0};
  for (std::uint32_t i = threadIdx.x; i < n; i += kSamplingThreads) {
    const float logit = logits[i];
    const std::uint64_t key = key_of(logit, i);
    if (key < bound && key > result.best) result.best = key;
    if (!is_finite(logit)) result.has_nonfinite = 1;
  }
  return result;
}

/// The best result of the block, for every thread. `all` is shared, [512]; the caller may reuse it
/// after the next barrier.
__device__ __forceinline__ ScanResult best_of_block(ScanResult own, ScanResult* all) {
  all[threadIdx.x] = own;
  for (std::uint32_t half = kSamplingThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const ScanResult other = all[threadIdx.x + half];
      if (other.best > all[threadIdx.x].best) all[threadIdx.x].best = other.best;
      all[threadIdx.x].has_nonfinite |= other.has_nonfinite;
    }
  }
  __syncthreads();
  return all[0];
}

/// The number of `keys` that rank before `key`.
__device__ __forceinline__ std::uint32_t rank_of(std::uint64_t key, const std::uint64_t* keys,
                                                 std::uint32_t n) {
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < n; ++i) rank += keys[i] > key ? 1 : 0;
  return rank;
}

/// Slow path for very many equal logits: one pass over the row per rank.
__device__ __forceinline__ void select_one_by_one(const TopCandidatesParams& p, const float* logits,
                                                  Candidate* out, ScanResult* all) {
  std::uint64_t bound = ~std::uint64_t{0};
  for (std::uint32_t k = 0; k < p.k; ++k) {
    bound = best_of_block(scan_logits(logits, p.n_vocab, bound), all).best;
    __syncthreads();
    if (threadIdx.x == 0 && bound != kNoKey) out[k] = {index_of(bound), logits[index_of(bound)]};
  }
}

/// One block per row. Each of the 512 threads finds its best logit. The first k logits of the row
/// are all at or above the k-th best of these, and few other logits are.
LEASEHOLD_KERNEL(lh_top_candidates, TopCandidatesParams, kSamplingThreads) {
  __shared__ ScanResult all[kSamplingThreads];
  __shared__ std::uint64_t keys[kMaxKept];
  __shared__ std::uint64_t bound;
  __shared__ std::uint32_t n_kept;
  __shared__ std::uint32_t fault;
  if (block_engine_is_stopped(p.gate)) return;
  if (blockIdx.x >= p.gate.step->n_logit_rows) return;
  const float* logits = p.logits + std::size_t{blockIdx.x} * p.n_vocab;
  Candidate* out = p.out + std::size_t{blockIdx.x} * p.k;
  if (threadIdx.x == 0) {
    bound = kNoKey + 1;
    n_kept = 0;
    fault = 0;
  }
  const ScanResult own = scan_logits(logits, p.n_vocab, ~std::uint64_t{0});
  keys[threadIdx.x] = own.best;
  __syncthreads();
  if (own.has_nonfinite != 0) fault = 1;
  if (own.best != kNoKey && rank_of(own.best, keys, kSamplingThreads) == p.k - 1) bound = own.best;
  for (std::uint32_t k = threadIdx.x; k < p.k; k += kSamplingThreads) out[k] = {kNoToken, 0.0F};
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < p.n_vocab; i += kSamplingThreads) {
    const std::uint64_t key = key_of(logits[i], i);
    if (key < bound) continue;
    const std::uint32_t index = atomicAdd(&n_kept, 1u);
    if (index < kMaxKept) keys[index] = key;
  }
  __syncthreads();
  if (threadIdx.x == 0) p.has_nonfinite[blockIdx.x] = fault;
  if (n_kept > kMaxKept) return select_one_by_one(p, logits, out, all);
  for (std::uint32_t i = threadIdx.x; i < n_kept; i += kSamplingThreads) {
    const std::uint32_t rank = rank_of(keys[i], keys, n_kept);
    if (rank < p.k) out[rank] = {index_of(keys[i]), logits[index_of(keys[i])]};
  }
}

}  // namespace leasehold::device
