/// The largest logits of a row, exactly: up to 64 in order.
///
/// A logit and its index make a *key*, a number of 64 bits that is larger the earlier it comes in
/// the order, and no two of a row are alike. So whatever order threads look in, the answer is one.
#include "kernels/cuda/device/sampling_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kSamplingThreads = 512;
inline constexpr std::uint32_t kMaxKept = 1024;

/// Below every key of a number.
inline constexpr std::uint64_t kNoKey = 0;

__device__ __forceinline__ std::uint64_t key_of(float logit, std::uint32_t index) {
  const std::uint32_t bits = __float_as_uint(logit + 0.0F);  // -0 becomes 0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return std::uint64_t{ordered} << 32 | (0xffffffffu - index);
}
__device__ __forceinline__ std::uint32_t index_of(std::uint64_t key) {
  return 0xffffffffu - static_cast<std::uint32_t>(key);
}
__device__ __forceinline__ bool is_finite(float x) {
  return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

/// What a thread found in its part of a row.
struct Seen {
  std::uint64_t best;
  std::uint32_t has_fault;
};

/// The best key below `bound` of every 512th element.
__device__ __forceinline__ Seen look(const float* logits, std::uint32_t n, std::uint64_t bound) {
  Seen seen{kNoKey, 0};
  for (std::uint32_t i = threadIdx.x; i < n; i += kSamplingThreads) {
    const float logit = logits[i];
    const std::uint64_t key = key_of(logit, i);
    if (key < bound && key > seen.best) seen.best = key;
    if (!is_finite(logit)) seen.has_fault = 1;
  }
  return seen;
}

/// The whole block's, for every thread. `all` is shared, [512]; free again at the next barrier.
__device__ __forceinline__ Seen best_of_block(Seen own, Seen* all) {
  all[threadIdx.x] = own;
  for (std::uint32_t half = kSamplingThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const Seen other = all[threadIdx.x + half];
      if (other.best > all[threadIdx.x].best) all[threadIdx.x].best = other.best;
      all[threadIdx.x].has_fault |= other.has_fault;
    }
  }
  __syncthreads();
  return all[0];
}

/// How many of `keys` stand before `key`.
__device__ __forceinline__ std::uint32_t rank_of(std::uint64_t key, const std::uint64_t* keys,
                                                 std::uint32_t n) {
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < n; ++i) rank += keys[i] > key ? 1 : 0;
  return rank;
}

/// When very many logits are equal: one pass over the row for each rank.
__device__ __forceinline__ void rank_by_rank(const TopCandidatesParams& p, const float* logits,
                                             Candidate* out, Seen* all) {
  std::uint64_t bound = ~std::uint64_t{0};
  for (std::uint32_t k = 0; k < p.k; ++k) {
    bound = best_of_block(look(logits, p.n_vocab, bound), all).best;
    __syncthreads();
    if (threadIdx.x == 0 && bound != kNoKey) out[k] = {index_of(bound), logits[index_of(bound)]};
  }
}

/// A block to a row. Each thread's best logit is one of 512; what stands before the k-th of these
/// is certainly among the first k of the row, and little else is.
LEASEHOLD_KERNEL(lh_top_candidates, TopCandidatesParams, kSamplingThreads) {
  __shared__ Seen all[kSamplingThreads];
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
  const Seen own = look(logits, p.n_vocab, ~std::uint64_t{0});
  keys[threadIdx.x] = own.best;
  __syncthreads();
  if (own.has_fault != 0) fault = 1;
  if (own.best != kNoKey && rank_of(own.best, keys, kSamplingThreads) == p.k - 1) bound = own.best;
  for (std::uint32_t k = threadIdx.x; k < p.k; k += kSamplingThreads) out[k] = {kNoToken, 0.0F};
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < p.n_vocab; i += kSamplingThreads) {
    const std::uint64_t key = key_of(logits[i], i);
    if (key < bound) continue;
    const std::uint32_t place = atomicAdd(&n_kept, 1u);
    if (place < kMaxKept) keys[place] = key;
  }
  __syncthreads();
  if (threadIdx.x == 0) p.has_fault[blockIdx.x] = fault;
  if (n_kept > kMaxKept) return rank_by_rank(p, logits, out, all);
  for (std::uint32_t i = threadIdx.x; i < n_kept; i += kSamplingThreads) {
    const std::uint32_t rank = rank_of(keys[i], keys, n_kept);
    if (rank < p.k) out[rank] = {index_of(keys[i]), logits[index_of(keys[i])]};
  }
}

}  // namespace leasehold::device
