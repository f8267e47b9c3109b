#include "worker/engine/propose/draft_state.hpp"

namespace leasehold {

std::optional<std::size_t> DraftState::start(std::size_t usable) {
  if (written_.empty()) return usable;
  if (newest_.positions <= usable) {
    base_ = newest_;
  } else {
    newest_ = base_;
  }
  if (newest_.positions > usable) return std::nullopt;
  return newest_.positions;
}

StateTableView DraftState::table() const {
  const std::size_t n = copy_blocks();
  StateTableView table{.from = {}, .to = std::span(written_).subspan(unused() * n, n)};
  if (newest_.positions > 0) table.from = std::span(read_).subspan(newest_.index * n, n);
  return table;
}

void DraftState::advance(std::size_t positions, bool is_text) {
  newest_ = {.index = unused(), .positions = positions};
  if (is_text) base_ = newest_;
}

/// The index of a copy that is neither the base nor the newest.
std::uint32_t DraftState::unused() const {
  std::uint32_t index = 0;
  while (index == base_.index || index == newest_.index) ++index;
  return index;
}

}  // namespace leasehold
