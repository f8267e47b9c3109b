/// Scattered copies, and the gate between two segments of a graph without conditional nodes.
#include "kernels/cuda/device/segment_gate.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"

namespace leasehold::device {

/// A thread's part of a piece, and the number of bytes already copied.
struct CopyJob {
  std::byte* to;
  const std::byte* from;
  std::uint32_t size_bytes;
  std::uint32_t first;
  std::uint32_t stride;
  std::uint32_t done_bytes;
};

/// Copies as many whole words as are left, if source and target are aligned to them.
template <class Word>
__device__ __forceinline__ void copy_words(CopyJob& job) {
  const auto ends = reinterpret_cast<std::uint64_t>(job.from + job.done_bytes) |
                    reinterpret_cast<std::uint64_t>(job.to + job.done_bytes);
  if (ends % sizeof(Word) != 0) return;
  auto* to = reinterpret_cast<Word*>(job.to + job.done_bytes);
  const auto* from = reinterpret_cast<const Word*>(job.from + job.done_bytes);
  const std::uint32_t words =
      (job.size_bytes - job.done_bytes) / static_cast<std::uint32_t>(sizeof(Word));
  for (std::uint32_t i = job.first; i < words; i += job.stride) to[i] = from[i];
  job.done_bytes += words * static_cast<std::uint32_t>(sizeof(Word));
}

/// One of `stride` threads copies its part of a piece.
__device__ __forceinline__ void copy_part(const ScatterParams& p, std::uint32_t index,
                                          std::uint32_t first, std::uint32_t stride) {
  const ScatterPiece piece = p.pieces[index];
  CopyJob job{reinterpret_cast<std::byte*>(piece.to),
              p.staging + piece.from_bytes,
              piece.size_bytes,
              first,
              stride,
              0};
  copy_words<uint4>(job);
  copy_words<uint2>(job);
  copy_words<std::byte>(job);
}

/// Grid: parts of a first piece, first pieces. The last block to arrive writes the last pieces. If
/// a stop skips a block, the last pieces are not written. Eight aligned bytes are one store, so a
/// word that marks other pieces as complete is never torn.
LEASEHOLD_KERNEL(lh_scatter, ScatterParams, 256) {
  if (block_engine_is_stopped(p.gate)) return;
  if (blockIdx.y < p.n_first) {
    copy_part(p, blockIdx.y, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
    if (p.n_last == 0 || !arrive(p.counter, gridDim.x * p.n_first).is_last) return;
  }
  for (std::uint32_t i = threadIdx.x; i < p.n_last; i += blockDim.x)
    copy_part(p, p.n_first + i, 0, 1);
}

LEASEHOLD_KERNEL(lh_segment_gate, SegmentGateParams, 1) {
  report_segment(p);
}

}  // namespace leasehold::device
