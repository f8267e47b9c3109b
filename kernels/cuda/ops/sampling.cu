/// Finds the largest logits of a row exactly: up to 64, in order.
///
/// A logit and its index form a *key* of 64 bits. A larger key comes earlier in the order, and all
/// keys of a row differ. So the result does not depend on the order in which threads scan.
#include "kernels/cuda/device/sampling_params.hpp"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kSamplingThreads = 256;
inline constexpr std::uint32_t kMaxKept = 1024;
static_assert(kMaxKept >= kMaxLogitParts * kMaxCandidates, "the merge holds every part");

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

/// The logits that a block searches.
struct LogitPart {
  const float* logits;  ///< Logits of the whole row.
  std::uint32_t begin, end;
  std::uint64_t* keys;  ///< [k] the result: descending, then kNoKey
};

__device__ __forceinline__ LogitPart part_of_block(const TopCandidatesParams& p) {
  const std::uint32_t length = (p.n_vocab + gridDim.y - 1) / gridDim.y;
  const std::uint32_t begin = blockIdx.y * length;
  return {p.logits + std::size_t{blockIdx.x} * p.n_vocab, begin,
          begin + length < p.n_vocab ? begin + length : p.n_vocab,
          p.part_keys + (std::size_t{blockIdx.x} * gridDim.y + blockIdx.y) * p.k};
}

/// The result of one thread's scan of a part.
struct ScanResult {
  std::uint64_t best;
  std::uint32_t has_nonfinite;
};

/// The largest key below `bound` among every 256th element of the part.
__device__ __forceinline__ ScanResult scan_logits(const LogitPart& part, std::uint64_t bound) {
  ScanResult result{kNoKey, 0};
  for (std::uint32_t i = part.begin + threadIdx.x; i < part.end; i += kSamplingThreads) {
    const float logit = part.logits[i];
    const std::uint64_t key = key_of(logit, i);
    if (key < bound && key > result.best) result.best = key;
    if (!is_finite(logit)) result.has_nonfinite = 1;
  }
  return result;
}

/// The largest `own` of the block, for every thread. `all` is shared, [256]; the caller may reuse
/// it after the next barrier.
__device__ __forceinline__ std::uint64_t best_of_block(std::uint64_t own, std::uint64_t* all) {
  all[threadIdx.x] = own;
  for (std::uint32_t half = kSamplingThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && all[threadIdx.x + half] > all[threadIdx.x])
      all[threadIdx.x] = all[threadIdx.x + half];
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
/// rank_of for descending keys.
__device__ __forceinline__ std::uint32_t rank_in_sorted(std::uint64_t key,
                                                        const std::uint64_t* keys,
                                                        std::uint32_t n) {
  std::uint32_t first = 0;
  while (n > 0) {
    const std::uint32_t half = n / 2;
    const bool is_before = keys[first + half] > key;
    first = is_before ? first + half + 1 : first;
    n = is_before ? n - half - 1 : half;
  }
  return first;
}

/// Slow path for very many equal logits: one pass over the part per rank.
__device__ __forceinline__ void select_one_by_one(const LogitPart& part, std::uint32_t k,
                                                  std::uint64_t* all) {
  std::uint64_t bound = ~std::uint64_t{0};
  for (std::uint32_t rank = 0; rank < k; ++rank) {
    bound = best_of_block(scan_logits(part, bound).best, all);
    __syncthreads();
    if (threadIdx.x == 0) part.keys[rank] = bound;
  }
}

/// Stores the first k keys of the part; returns whether it has a logit that is not finite, for
/// every thread. Each thread finds its best logit. The first k logits are all at or above the k-th
/// best of these 256, and few other logits are. `keys` is shared, [kMaxKept].
__device__ __forceinline__ bool search_part(const LogitPart& part, std::uint32_t k,
                                            std::uint64_t* keys) {
  __shared__ std::uint64_t bound;
  __shared__ std::uint32_t n_kept;
  __shared__ std::uint32_t fault;
  if (threadIdx.x == 0) {
    bound = kNoKey + 1;
    n_kept = 0;
    fault = 0;
  }
  const ScanResult own = scan_logits(part, ~std::uint64_t{0});
  keys[threadIdx.x] = own.best;
  __syncthreads();
  if (own.has_nonfinite != 0) fault = 1;
  if (own.best != kNoKey && rank_of(own.best, keys, kSamplingThreads) == k - 1) bound = own.best;
  for (std::uint32_t i = threadIdx.x; i < k; i += kSamplingThreads) part.keys[i] = kNoKey;
  __syncthreads();
  for (std::uint32_t i = part.begin + threadIdx.x; i < part.end; i += kSamplingThreads) {
    const std::uint64_t key = key_of(part.logits[i], i);
    if (key < bound) continue;
    const std::uint32_t index = atomicAdd(&n_kept, 1u);
    if (index < kMaxKept) keys[index] = key;
  }
  __syncthreads();
  if (n_kept > kMaxKept) {
    select_one_by_one(part, k, keys);
    return fault != 0;
  }
  for (std::uint32_t i = threadIdx.x; i < n_kept; i += kSamplingThreads) {
    const std::uint32_t rank = rank_of(keys[i], keys, n_kept);
    if (rank < k) part.keys[rank] = keys[i];
  }
  return fault != 0;
}

/// Stores the first k logits of the row from the keys of its parts. `keys` is shared, [kMaxKept].
__device__ __forceinline__ void merge_parts(const TopCandidatesParams& p, std::uint64_t* keys) {
  const std::uint32_t n = gridDim.y * p.k;
  const std::uint64_t* parts = p.part_keys + std::size_t{blockIdx.x} * n;
  const float* logits = p.logits + std::size_t{blockIdx.x} * p.n_vocab;
  Candidate* out = p.out + std::size_t{blockIdx.x} * p.k;
  for (std::uint32_t i = threadIdx.x; i < n; i += kSamplingThreads)
    keys[i] = load_arrived(parts + i);
  for (std::uint32_t k = threadIdx.x; k < p.k; k += kSamplingThreads) out[k] = {kNoToken, 0.0F};
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < n; i += kSamplingThreads) {
    if (keys[i] == kNoKey) continue;
    std::uint32_t rank = 0;
    for (std::uint32_t part = 0; part < gridDim.y && rank < p.k; ++part)
      rank += rank_in_sorted(keys[i], keys + part * p.k, p.k);
    if (rank < p.k) out[rank] = {index_of(keys[i]), logits[index_of(keys[i])]};
  }
}

/// Grid: x: rows; y: parts of a row.
LEASEHOLD_KERNEL(lh_top_candidates, TopCandidatesParams, kSamplingThreads) {
  __shared__ std::uint64_t keys[kMaxKept];
  if (block_engine_is_stopped(p.gate)) return;
  if (blockIdx.x >= p.gate.step->n_logit_rows) return;
  const bool has_nonfinite = search_part(part_of_block(p), p.k, keys);
  const Arrival arrival = arrive(&p.counters[blockIdx.x], gridDim.y, has_nonfinite);
  if (!arrival.is_last) return;
  if (threadIdx.x == 0) p.has_nonfinite[blockIdx.x] = arrival.has_flag ? 1 : 0;
  merge_parts(p, keys);
}

}  // namespace leasehold::device
