#include "worker/adapter/adapter_copy.hpp"

#include <fmt/format.h>

#include <string.h>

#include <algorithm>
#include <utility>

#include "worker/engine/check_device.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold {

Result<AdapterCopy> AdapterCopy::create(const Dependencies& dependencies, LeaseId lease,
                                        std::shared_ptr<AdapterReader> reader) {
  std::vector<LeaseMemory::Extent> extents = dependencies.memory->extents(lease);
  // Read after the extents: a lease that has ended may have lost them.
  if (dependencies.table->word_of(lease).state() != LeaseState::Live) {
    return fail(Errc::LeaseRevoked,
                fmt::format("lease {} was revoked before it was filled", to_string(lease)));
  }
  for (const AdapterPiece& piece : reader->layout().pieces) {
    const bool fits = piece.extent < extents.size() &&
                      piece.offset + piece.size_bytes <= extents[piece.extent].size_bytes;
    if (fits) continue;
    return fail(Errc::UntrustedSegment,
                fmt::format("lease {} has {} extents, which do not hold its adapter's {} of the "
                            "size that the broker announced; restart the worker",
                            to_string(lease), extents.size(), reader->layout().n_extents));
  }
  return AdapterCopy(dependencies, lease, std::move(reader), std::move(extents));
}

Result<std::uint64_t> AdapterCopy::copy(std::uint64_t max_bytes) {
  const std::uint64_t revocations = *deps_.revocations;
  std::uint64_t done_bytes = 0;
  while (!slices_.empty() && done_bytes < max_bytes && *deps_.revocations == revocations) {
    const AdapterSlice& slice = slices_.front();
    const AdapterSlice::Part& part = slice.parts[part_];
    const std::size_t size_bytes =
        std::min<std::uint64_t>({part.size_bytes - copied_, kUnitBytes, max_bytes - done_bytes});
    const auto to = static_cast<std::ptrdiff_t>(part.offset + copied_);
    TRY(copy_unit(extents_[part.extent].base + to,
                  std::span(slice.bytes).subspan(part.begin + copied_, size_bytes)));
    done_bytes += size_bytes;
    copied_ += size_bytes;
    if (copied_ < part.size_bytes) continue;
    copied_ = 0;
    if (++part_ < slice.parts.size()) continue;
    part_ = 0;
    is_done_ = slice.is_last;
    remove_slice();
  }
  return done_bytes;
}

/// Clears the slice: a revocation does not reach this memory.
void AdapterCopy::remove_slice() {
  std::vector<std::byte>& bytes = slices_.front().bytes;
  ::explicit_bzero(bytes.data(), bytes.size());
  slices_.pop_front();
}

Result<void> AdapterCopy::copy_unit(Leased<std::byte> to, std::span<const std::byte> bytes) {
  const LeaseDependency lease = TRY(deps_.table->dependency(lease_));
  const StopFlags no_stops;
  UnreportedRefusals refusals(*deps_.observer);
  GateSet gates(next_gate_number(), no_stops, refusals);
  gates.add_sequence(std::span(&lease, 1));
  const LeasedPiece piece{.to = to, .bytes = bytes};
  const SequenceMask live = deps_.gate->run(
      gates, {LaunchSite::WeightLoad, 0, Touches::TenantMemory},
      [&](const LaunchPermit& permit) { deps_.backend->write(permit, std::span(&piece, 1)); });
  TRY(check_device(*deps_.backend));
  if (live != 0) return {};
  return fail(Errc::LeaseRevoked,
              fmt::format("lease {} was revoked while it was filled", to_string(lease_)));
}

std::shared_ptr<const AdapterMatrices> AdapterCopy::matrices(std::uint32_t n_layers) const {
  auto matrices = std::make_shared<AdapterMatrices>(n_layers);
  const std::span<const AdaptedWeight> weights = reader_->weights();
  for (const AdapterPiece& piece : reader_->layout().pieces) {
    const AdaptedWeight& weight = weights[piece.weight];
    LowRankMatrix& matrix = matrices->of(weight.layer, weight.target);
    matrix.type = weight.type;
    matrix.rank = weight.rank;
    matrix.scale = weight.scale;
    const Leased<const std::byte> at =
        extents_[piece.extent].base + static_cast<std::ptrdiff_t>(piece.offset);
    (piece.half == AdapterHalf::A ? matrix.a : matrix.b) = at;
  }
  return matrices;
}

}  // namespace leasehold
