#include "kernels/host_backend.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/expects.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kAlignment = 256;

std::byte* aligned(unsigned char* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return reinterpret_cast<std::byte*>(at + (-address & (kAlignment - 1)));
}

}  // namespace

std::byte* HostBackend::allocate_scratch(std::size_t size_bytes) {
  scratch_.emplace_back(size_bytes + kAlignment);
  return aligned(scratch_.back().data());
}

void HostBackend::clear_scratch(std::byte* at, std::size_t size_bytes) {
  std::memset(at, 0, size_bytes);
}

void write_on_host(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) {
  for (const LeasedPiece& piece : pieces) {
    if (!piece.is_last) std::memcpy(permit.open(piece.to), piece.bytes.data(), piece.bytes.size());
  }
  for (const LeasedPiece& piece : pieces) {
    if (!piece.is_last) continue;
    std::uint64_t word = 0;
    expects(piece.bytes.size() == sizeof word, "what is stored last is one word");
    std::memcpy(&word, piece.bytes.data(), sizeof word);
    // release: a reader that sees the word sees all pieces before it (read_record).
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(permit.open(piece.to)))
        .store(word, std::memory_order_release);
  }
}

void copy_in_unit(const LaunchPermit& permit, const LaunchContext& context, const CopyInArgs& args,
                  std::size_t unit) {
  if (!may_copy(context, args, permit)) return;
  const std::size_t at = unit * kCopyUnitBytes;
  std::memcpy(permit.open(args.to) + at, args.from + at,
              std::min(kCopyUnitBytes, args.size_bytes - at));
}

void copy_piece(const LaunchPermit& permit, const CopyBlocksArgs& args, std::uint32_t piece) {
  if (!permit.is_live(args.sequence)) return;
  const CopyPiece part = copy_piece_of(args, piece, kCopyUnitBytes);
  std::memcpy(permit.open(part.to), permit.open(part.from), part.size_bytes);
}

}  // namespace leasehold
