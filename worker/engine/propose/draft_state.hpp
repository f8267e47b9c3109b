/// The recurrent state that a draft model keeps of one text: three copies in the draft's memory.
///
/// The *base* is a state of the text itself, and the *newest* copy the state after the last pass,
/// which may have read proposals. A pass reads the newest copy and writes one that is neither. When
/// the text has grown by everything that was read, the newest copy becomes the base. After a
/// rejected proposal the draft continues from the base, as the engine's model does from the copy
/// before its step (worker/kv/recurrent_state.hpp).
///
/// Pure bookkeeping: it never touches memory. A model without recurrent layers has no blocks here.
/// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/model/draft_layout.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold {

class DraftState {
 public:
  /// `blocks`: [kDraftStateCopies, blocks of a copy]; empty: the model has no recurrent state.
  explicit DraftState(std::vector<Leased<std::byte>> blocks)
      : written_(std::move(blocks)), read_(written_.begin(), written_.end()) {}

  /// Chooses the copy that the next pass reads, and returns its number of positions. `usable`: the
  /// positions that were read and are the text's, without its last one. Nothing if every copy has
  /// more positions; the text then has to grow first.
  std::optional<std::size_t> start(std::size_t usable);
  /// The copies that the next pass reads and writes.
  StateTableView table() const;
  /// Records that a pass wrote the state after `positions` positions. `is_text`: none of them is a
  /// proposal.
  void advance(std::size_t positions, bool is_text);
  /// The next pass starts from the zero state.
  void reset() { base_ = newest_ = {}; }

  /// The blocks of all copies.
  std::span<const Leased<std::byte>> blocks() const { return written_; }

 private:
  struct Copy {
    std::uint32_t index = 0;
    std::size_t positions = 0;  // 0: the zero state, which is not stored
  };
  std::uint32_t unused() const;
  std::size_t copy_blocks() const { return written_.size() / kDraftStateCopies; }

  std::vector<Leased<std::byte>> written_;
  std::vector<Leased<const std::byte>> read_;  // the same blocks
  Copy base_;
  Copy newest_;
};

}  // namespace leasehold
