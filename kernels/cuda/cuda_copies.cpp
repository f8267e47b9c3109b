#include "kernels/cuda/cuda_copies.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/plan/step_plan.hpp"

namespace leasehold::cuda {
namespace {

/// The size of a copy. A queued copy does not read the mirror, so the max_in_flight queued copies
/// bound how long a revoked lease is still copied. Smaller copies would be limited by the driver's
/// calls.
constexpr std::uint64_t kPieceBytes = 256 * 1024;

/// Room for the counter of blocks before the list of staged pieces.
constexpr std::size_t kCounterBytes = 16;

/// Bytes in the staging buffer before the contents of the pieces.
std::size_t list_bytes(std::size_t n_pieces) {
  return kCounterBytes + n_pieces * sizeof(device::ScatterPiece);
}

/// The size of each of the two halves of the buffer for copy_in.
constexpr std::size_t kHalfBytes = std::size_t{1} << 20;

}  // namespace

Result<CudaCopies> CudaCopies::create(const Context& context, StepRunner& runner) {
  return CudaCopies(context, runner, TRY(PinnedBuffer::allocate(context, 2 * kHalfBytes)));
}

/// Copies in units of half the pinned buffer: the host fills one half while the card copies the
/// other.
LaunchStatus CudaCopies::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  const UnitLabel where = label(context, args.site, touches_of(args));
  launcher_.begin(*context.gates);
  LaunchStatus status{context.gates->all()};
  for (std::size_t at = 0; at < args.size_bytes && !status.none_live(); at += kHalfBytes) {
    const std::size_t n = std::min(kHalfBytes, args.size_bytes - at);
    std::byte* const half = halves_.data() + at / kHalfBytes % 2 * kHalfBytes;
    if (at >= 2 * kHalfBytes)
      status &= launcher_.wait_until_queued_at_most(1, *context.gates, where);
    status &= launcher_.unit(*context.gates, where, "copying to the device",
                             [&](const LaunchPermit& permit) {
                               if (!may_copy(context, args, permit)) return CUDA_SUCCESS;
                               std::memcpy(half, args.from + at, n);
                               return launcher_.copy_to_device(permit.open(args.to) + at, half, n);
                             });
  }
  status &= launcher_.wait_all(*context.gates, where);
  return status;
}

/// Waits for the end of the copies: the caller then frees the source, and no other work in the
/// stream may follow a copy that the mirror cannot stop.
LaunchStatus CudaCopies::copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) {
  const UnitLabel where = label(context, LaunchSite::BlockCopy, Touches::TenantMemory);
  const std::uint32_t pieces = copy_piece_count(args, kPieceBytes);
  launcher_.begin(*context.gates);
  LaunchStatus status{context.gates->all()};
  const auto is_live = [&] { return (status.live >> args.sequence & 1) != 0; };
  for (std::uint32_t i = 0; i < pieces && is_live(); ++i) {
    status &=
        launcher_.unit(*context.gates, where, "copying blocks", [&](const LaunchPermit& permit) {
          if (!permit.is_live(args.sequence)) return CUDA_SUCCESS;
          const CopyPiece piece = copy_piece_of(args, i, kPieceBytes);
          return launcher_.copy(permit.open(piece.to), permit.open(piece.from), piece.size_bytes);
        });
  }
  status &= launcher_.wait_all(*context.gates, where);
  return status;
}

Result<void> CudaCopies::ensure_staging(std::size_t size_bytes) {
  if (size_bytes <= staging_.size_bytes()) return {};
  const std::size_t room = std::max<std::size_t>(2 * size_bytes, 64 * 1024);
  DeviceBuffer device = TRY(DeviceBuffer::allocate(context_, room));
  PinnedBuffer host = TRY(PinnedBuffer::allocate(context_, room));
  staging_ = std::move(device);
  host_staging_ = std::move(host);
  return {};
}

/// Precondition: `staging` has room for all pieces.
CudaCopies::StagedPieces CudaCopies::stage(std::span<const LeasedPiece* const> pieces,
                                           const LaunchPermit& permit) const {
  std::byte* const host = host_staging_.data();
  std::memset(host, 0, kCounterBytes);
  auto* const list = reinterpret_cast<device::ScatterPiece*>(host + kCounterBytes);
  StagedPieces staged{.size_bytes = list_bytes(pieces.size())};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const LeasedPiece& piece = *pieces[i];
    const auto size_bytes = static_cast<std::uint32_t>(piece.bytes.size());
    list[i] = {.to = device_address(permit.open(piece.to)),
               .from_bytes = staged.size_bytes,
               .size_bytes = size_bytes};
    std::memcpy(host + staged.size_bytes, piece.bytes.data(), size_bytes);
    staged.size_bytes += (size_bytes + 7) / 8 * 8;
    if (piece.is_last) continue;
    ++staged.n_first;
    staged.largest_first_bytes = std::max(staged.largest_first_bytes, size_bytes);
  }
  return staged;
}

/// Writes whole pieces first, then the words that mark them complete. Each kMaxScatterPieces pieces
/// take one copy, one launch and one wait.
void CudaCopies::write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) {
  std::vector<const LeasedPiece*> ordered;
  for (const bool is_last : {false, true}) {
    for (const LeasedPiece& piece : pieces)
      if (piece.is_last == is_last) ordered.push_back(&piece);
  }
  std::span<const LeasedPiece* const> left = ordered;
  while (!left.empty() && !launcher_.fault()) {
    const std::size_t n = std::min<std::size_t>(left.size(), kMaxScatterPieces);
    write_ordered(permit, left.first(n));
    left = left.subspan(n);
  }
}

void CudaCopies::write_ordered(const LaunchPermit& permit,
                               std::span<const LeasedPiece* const> pieces) {
  std::size_t room_bytes = list_bytes(pieces.size());
  for (const LeasedPiece* const piece : pieces) room_bytes += (piece->bytes.size() + 7) / 8 * 8;
  if (const Result<void> room = ensure_staging(room_bytes); !room)
    return launcher_.fail_with(room.error());
  const StagedPieces staged = stage(pieces, permit);
  launcher_.enqueue_internal("writing records", [&] {
    return launcher_.copy_to_device(staging_.data(), host_staging_.data(), staged.size_bytes);
  });
  std::byte* const staging = staging_.data();
  KernelLaunch launch = plan_scatter(
      {.gate = runner_.gate(),
       .staging = staging,
       .pieces = reinterpret_cast<const device::ScatterPiece*>(staging + kCounterBytes),
       .counter = reinterpret_cast<std::uint32_t*>(staging),
       .n_first = staged.n_first,
       .n_last = static_cast<std::uint32_t>(pieces.size()) - staged.n_first},
      staged.largest_first_bytes);
  launcher_.enqueue_internal("writing records", [&] { return launcher_.enqueue(launch); });
  launcher_.wait_all();
}

}  // namespace leasehold::cuda
