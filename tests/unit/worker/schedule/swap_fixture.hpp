/// A scheduler with a simulated engine whose blocks have contents: what a row computes depends on
/// its token and on all tokens before it. Each tick checks that every planned row finds what it
/// reads, wherever copies, caching and freeing have put it: the contents of the rows before it, in
/// groups with a window those of its window, and the recurrent state of the row before it.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "tests/support/block_conservation.hpp"
#include "tests/unit/worker/schedule/scheduler_fixture.hpp"

namespace leasehold::testing {

/// Where a simulated step fails; at a copy only when there is one.
enum class StepFault { None, BeforeCopies, AfterFirstCopy, InCopy, AfterRows };

class SwapFixture : public SchedulerFixture {
 public:
  static constexpr std::uint32_t kBlock = 16;
  static constexpr Duration kStep{1'000'000};
  static constexpr Duration kRow{1'000};  // of a prompt

  /// With blocks of `block_size_bytes` and 1 GiB/s, a copy out and in costs two such times.
  explicit SwapFixture(SchedulerLimits limits = {}, std::uint64_t block_size_bytes = 1024)
      : SchedulerFixture(with_swap(limits, block_size_bytes)) {
    measure();
  }

  void grow_swap(LeaseId id, std::uint32_t blocks) {
    scheduler.blocks().add_swap_extent(id, ExtentId{next_swap_extent_++}, blocks);
  }

  /// Runs a tick and returns its events.
  std::vector<SchedulerEvent> swap_tick(StepFault fault = StepFault::None, TimePoint now = kNow) {
    scheduler.admit(now);
    check_block_conservation(scheduler);
    plan = scheduler.plan();
    check_block_conservation(scheduler);
    if (make_copies(fault)) run_rows(fault != StepFault::AfterRows);
    check_block_conservation(scheduler);
    return scheduler.take_events();
  }

  std::uint32_t copied_blocks = 0;
  Duration staging_copy{1};                   ///< Of a copy to or from staging.
  std::map<std::string, std::uint32_t> rows;  ///< Committed rows by request.

  using Content = std::array<std::uint64_t, kBlock>;
  Content& content(BlockId block) { return contents_[block]; }

 private:
  static SchedulerLimits with_swap(SchedulerLimits limits, std::uint64_t block_size_bytes) {
    limits.block_size_bytes = block_size_bytes;
    return limits;
  }

  /// Steps that only decode and steps with a prompt, so that the time of a row is known.
  void measure() {
    const LeaseId id = lease(40, 20);
    REQUIRE(scheduler.submit(request(id, "measure-1", 4, 12)));
    swap_tick();
    swap_tick();
    REQUIRE(scheduler.submit(request(id, "measure-2", 40, 2)));
    while (scheduler.has_work()) swap_tick();
    scheduler.end_lease(id, {});
    (void)scheduler.take_events();
    (void)scheduler.take_kv_changes();
    rows.clear();
  }

  /// True when the rows may run.
  bool make_copies(StepFault fault) {
    if (fault == StepFault::BeforeCopies && !scheduler.transfers().empty()) return false;
    bool first = true;
    while (!scheduler.transfers().empty()) {
      if (!first && fault == StepFault::AfterFirstCopy) return false;
      const SwapTransfer& transfer = scheduler.transfers().front();
      const std::size_t count = fault == StepFault::InCopy ? 1 : transfer.copies.size();
      for (std::size_t i = 0; i < count; ++i)
        contents_[transfer.copies[i].to] = contents_[transfer.copies[i].from];
      if (fault == StepFault::InCopy) return false;
      copied_blocks += static_cast<std::uint32_t>(count);
      const bool is_swap = transfer.pieces.empty();
      scheduler.transfer_done(*transfer.sequence, is_swap ? Duration(1) : staging_copy);
      first = false;
    }
    return true;
  }

  void run_rows(bool commits) {
    StepRows ran;
    for (const PlannedRows& part : plan.parts) {
      (part.sequence->pending() == 1 ? ran.decode : ran.prefill) += part.n_rows;
      write_rows(part);
    }
    if (!commits) return;
    if (!plan.parts.empty()) scheduler.note_duration(kStep + kRow * ran.prefill);
    for (const PlannedRows& part : plan.parts) {
      rows[part.sequence->request.engine_request_id.value] += part.n_rows;
      const bool wants = part.wants_token;
      scheduler.commit(part, std::vector<DrawnToken>(wants ? 1 : 0, {.sampled = {2}}));
    }
  }

  /// A step reads the state of the committed positions, and writes that of its last row. States of
  /// all texts differ.
  void write_state(const BlockTable& table, std::uint64_t committed, std::uint64_t written) {
    const RecurrentState& state = table.recurrent();
    REQUIRE(state.from().empty() == (!state.exists() || table.committed() == 0));
    for (const BlockId block : state.from()) REQUIRE(contents_[block].front() == committed);
    for (const BlockId block : state.to()) contents_[block].fill(written);
  }

  void write_rows(const PlannedRows& part) {
    const Sequence& sequence = *part.sequence;
    const std::uint32_t committed = sequence.blocks.committed();
    const std::uint32_t end = committed + part.n_rows;
    std::uint64_t content = 1;
    std::uint64_t committed_content = 1;
    for (std::uint32_t i = 0; i < end;) {
      Content& block = contents_[sequence.blocks.blocks()[i / kBlock]];
      for (std::uint32_t last = std::min(end, i - i % kBlock + kBlock); i < last; ++i) {
        content =
            content * 6364136223846793005u + static_cast<std::uint64_t>(sequence.tokens[i]) + 1;
        std::uint64_t& at = block[i % kBlock];
        if (i + 1 == committed) committed_content = content;
        if (i >= committed) at = content;
        if (at == content) continue;
        CAPTURE(sequence.request.engine_request_id.value, i, committed);
        REQUIRE(at == content);
      }
    }
    write_state(sequence.blocks, ~committed_content, ~content);
    write_windows(part);
  }

  /// Each row finds the contents of its window in every group of layers, and writes its own.
  void write_windows(const PlannedRows& part) {
    const WindowBlocks& windows = part.sequence->blocks.windows();
    const KvWindow& window = windows.shape().window;
    const std::uint32_t committed = part.sequence->blocks.committed();
    std::vector<std::uint64_t> contents;
    std::uint64_t content = 1;
    for (std::uint32_t i = 0; i < committed + part.n_rows; ++i) {
      content =
          content * 6364136223846793005u + static_cast<std::uint64_t>(part.sequence->tokens[i]) + 1;
      contents.push_back(content);
    }
    for (std::uint32_t group = 0; group < window.n_groups; ++group) {
      const auto at = [&](std::uint32_t position) -> std::uint64_t& {
        REQUIRE(!windows.of(position / kBlock).empty());
        return contents_[windows.of(position / kBlock)[group]][position % kBlock];
      };
      for (std::uint32_t row = committed; row < contents.size(); ++row) {
        at(row) = contents[row] ^ group;
        const std::uint32_t first = row < window.positions ? 0 : row + 1 - window.positions;
        for (std::uint32_t i = first; i <= row; ++i) {
          if (at(i) == (contents[i] ^ group)) continue;
          CAPTURE(part.sequence->request.engine_request_id.value, row, i, committed, group);
          REQUIRE(at(i) == (contents[i] ^ group));
        }
      }
    }
  }

  std::uint64_t next_swap_extent_ = 1'000'000;
  std::map<BlockId, Content> contents_;
};

}  // namespace leasehold::testing
