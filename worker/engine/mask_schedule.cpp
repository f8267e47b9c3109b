#include "worker/engine/mask_schedule.hpp"

#include <algorithm>
#include <tuple>

namespace leasehold {
namespace {

// Allowance for a mask's work on grammar states, in addition to the nodes of the trie.
constexpr std::size_t kStateUnits = std::size_t{1} << 14;

}  // namespace

MaskSchedule::Limits MaskSchedule::limits_for(const MaskLimits& limits, std::size_t nodes,
                                              std::size_t tenants) {
  const std::size_t mask = nodes + kStateUnits;
  const std::size_t step = limits.step_units > 0 ? limits.step_units : limits.masks_per_step * mask;
  const std::size_t part = step / std::max<std::size_t>(tenants, 1);
  return {
      .slice = limits.slice_units, .tenant = std::max(part, std::min(mask, step)), .step = step};
}

void MaskSchedule::add(std::uint32_t sequence, const TenantId& tenant, std::size_t spent_before) {
  waiting_.push_back({sequence, tenant, spent_before});
  spent_by_.try_emplace(tenant, 0);
}

std::optional<MaskSchedule::Turn> MaskSchedule::next() const {
  if (spent_ >= limits_.step) return std::nullopt;
  const auto order = [this](const Waiting& waiting) {
    return std::tuple(spent_by_.at(waiting.tenant), waiting.tenant <= last_, waiting.tenant,
                      waiting.spent);
  };
  const auto first = std::ranges::min_element(waiting_, {}, order);
  if (first == waiting_.end()) return std::nullopt;
  const std::size_t used = spent_by_.at(first->tenant);
  if (used >= limits_.tenant) return std::nullopt;  // the other tenants have used as much or more
  return Turn{first->sequence,
              std::min({limits_.slice, limits_.tenant - used, limits_.step - spent_})};
}

void MaskSchedule::record(std::uint32_t sequence, std::size_t spent, bool is_over) {
  const auto found = std::ranges::find(waiting_, sequence, &Waiting::sequence);
  found->spent += spent;
  spent_by_.at(found->tenant) += spent;
  spent_ += spent;
  last_ = found->tenant;
  if (is_over) waiting_.erase(found);
}

}  // namespace leasehold
