#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

std::uint32_t SchedulerLimits::first_window(std::uint32_t n_blocks,
                                            std::uint32_t more_positions) const {
  const std::uint32_t committed = n_blocks * tokens_per_block + more_positions;
  return window.n_groups == 0 ? n_blocks : std::min(n_blocks, window_shape().first(committed));
}

std::uint32_t PlannedRows::rows_kept(std::size_t drawn) const {
  const auto accepted = static_cast<std::uint32_t>(drawn > 1 ? drawn - 1 : 0);
  const bool drops_all = accepted < n_proposed && sequence->blocks.recurrent().exists();
  return drops_all ? 0 : n_rows - n_proposed + accepted;
}

}  // namespace leasehold
