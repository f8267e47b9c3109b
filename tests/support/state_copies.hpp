/// The two copies of a sequence's recurrent state, for tests without an engine.
#pragma once

#include <utility>
#include <vector>

#include "kernels/state_layout.hpp"

namespace leasehold {

class StateCopies {
 public:
  using Blocks = std::vector<Leased<std::byte>>;

  /// The blocks of both copies, in the order of StateLayout; none for a model without state.
  StateCopies(Blocks first, Blocks second)
      : read_blocks_(std::move(first)), written_blocks_(std::move(second)) {}

  bool empty() const { return read_blocks_.empty(); }

  /// The tables of the next step. It reads what the step before wrote. Valid until the next call.
  StateTableView next() {
    std::swap(read_blocks_, written_blocks_);
    read_.assign(read_blocks_.begin(), read_blocks_.end());
    return {.from = std::exchange(is_known_, true) ? std::span<const Leased<const std::byte>>(read_)
                                                   : std::span<const Leased<const std::byte>>(),
            .to = written_blocks_};
  }
  /// The next step reads zeros.
  void forget() { is_known_ = false; }

 private:
  Blocks read_blocks_;
  Blocks written_blocks_;
  std::vector<Leased<const std::byte>> read_;
  bool is_known_ = false;
};

}  // namespace leasehold
