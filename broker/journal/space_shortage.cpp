#include "broker/journal/space_shortage.hpp"

#include <algorithm>
#include <system_error>

namespace leasehold::journal {

void SpaceShortage::begin(const Error& error, std::uint64_t log_moves) {
  if (!error_) free_bytes_.reset();
  error_ = error;
  log_moves_ = log_moves;
}

Result<void> SpaceShortage::check(const ReserveFile& reserve, std::uint64_t size_bytes,
                                  std::uint64_t log_moves) {
  if (!error_ || log_moves != log_moves_) return {};
  const std::uint64_t free_bytes = reserve.file_system_free_bytes();
  if (free_bytes_ && free_bytes <= *free_bytes_) {
    free_bytes_ = free_bytes;  // space that is used now and freed later counts as more free space
    return std::unexpected(*error_);
  }
  ++queries_;
  const std::error_code refused = reserve.growth_error(size_bytes);
  if (!refused) return {};
  free_bytes_ = refused == std::errc::no_space_on_device ? std::optional(free_bytes) : std::nullopt;
  return std::unexpected(*error_);
}

}  // namespace leasehold::journal
