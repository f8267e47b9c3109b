// Layers with a window in the scheduler: the blocks that a text holds, and what others may use.
#include <catch2/catch.hpp>

#include "tests/unit/worker/schedule/swap_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kBlock = SwapFixture::kBlock;
constexpr KvWindow kWindow{.n_groups = 2, .positions = 20};
constexpr std::uint32_t kStepRows = 32;
/// Blocks that one text holds at most in groups with a window.
constexpr std::uint32_t kMost = kWindow.n_groups * kWindow.most_blocks(kStepRows);

/// Texts of one lease.
struct Windows : SwapFixture {
  explicit Windows(std::uint32_t blocks)
      : SwapFixture({.token_budget = kStepRows, .max_context = 4096, .window = kWindow}),
        lease_id(lease(1, blocks)) {
    limit_blocks(10'000);
  }
  /// Runs a request to its end, and returns the positions that it did not compute.
  std::uint32_t run(const std::string& id, std::vector<TokenId> prompt, std::uint32_t tokens = 3) {
    PromptRequest asked = request(lease_id, id, 1, tokens);
    asked.prompt = std::move(prompt);
    submit(asked);
    std::optional<Completed> end;
    for (int i = 0; i < 1000 && !end; ++i) {
      for (const Completed& each : only<Completed>(swap_tick())) end = each;
      most_used = std::max(most_used, tenancy().used_blocks());
    }
    REQUIRE(end);
    CHECK(rows[id] + end->cached_tokens.value() == asked.prompt.size() + tokens - 1);
    return end->cached_tokens.value();
  }
  const Tenancy& tenancy() const { return scheduler.tenancies().at(lease_id); }

  LeaseId lease_id;
  std::uint32_t most_used = 0;
};

/// `count` different tokens, then others.
std::vector<TokenId> text(std::uint32_t count, std::uint32_t others = 0, TokenId other = 9'999) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100);
  tokens.insert(tokens.end(), others, other);
  return tokens;
}

/// Groups of a model with `n_full` layers that read all positions and `n_windowed` with a window,
/// all of one size.
KvWindow window_of(std::uint32_t n_full, std::uint32_t n_windowed, std::uint32_t positions) {
  return {.n_groups = (n_windowed + n_full - 1) / n_full, .positions = positions};
}

}  // namespace

TEST_CASE("window: a text holds no more blocks of layers with a window than the next step needs") {
  Windows windows(1000);
  CHECK(windows.run("r", text(400), 200) == 0);
  CHECK(windows.most_used <= (400 + 200) / kBlock + 1 + 1 + kMost);
  CHECK(windows.tenancy().pool.held_blocks() == windows.tenancy().prefixes.unused());
}

TEST_CASE("window: a lease of the size that is planned for a text is enough, without growth") {
  constexpr std::uint32_t kTokens = 1000;
  constexpr std::uint32_t kPlanned = (kTokens + kBlock - 1) / kBlock + kMost + 1;
  Windows windows(kPlanned);
  CHECK(windows.run("r", text(kTokens - 300), 300) == 0);
  CHECK(windows.most_used <= kPlanned);
  CHECK(windows.tenancies().take_growth_requests().empty());
}

TEST_CASE("window: a request that is too large for the tenant's blocks is refused at submit") {
  Windows windows(1000);
  const std::uint32_t needed = 1000 / kBlock + 1 + kMost + 1;
  windows.limit_blocks(needed - 1);
  const auto refused = windows.scheduler.submit(windows.request(windows.lease_id, "r", 700, 300));
  REQUIRE(refused.error().code == Errc::QuotaBlocks);
  windows.limit_blocks(needed);
  CHECK(windows.scheduler.submit(windows.request(windows.lease_id, "r", 700, 300)));
}

TEST_CASE("window: a request is shortened to the positions for which its blocks are enough") {
  const SchedulerLimits limits{.token_budget = kStepRows, .window = kWindow};
  for (std::uint32_t blocks = 1; blocks < 200; ++blocks) {
    const auto positions = static_cast<std::uint32_t>(limits.positions_in(blocks));
    CAPTURE(blocks, positions);
    CHECK(limits.blocks_for(positions) <= blocks);
    CHECK(limits.blocks_for(positions + 1) > blocks);
  }
}

TEST_CASE(
    "window: a text of 32k tokens takes at most 0.3 of all blocks for gemma3, 0.6 for gpt-oss") {
  struct Model {
    const char* name;
    KvWindow window;
    std::uint32_t n_full;
    std::uint32_t n_layers;
    double most_share;
  };
  // Layers and windows: gemma-3-1b, -4b, -27b, gpt-oss-20b, -120b.
  const Model model = GENERATE(Model{"gemma-3-1b", window_of(4, 22, 512), 4, 26, 0.3},
                               Model{"gemma-3-4b", window_of(5, 29, 1024), 5, 34, 0.3},
                               Model{"gemma-3-27b", window_of(10, 52, 1024), 10, 62, 0.3},
                               Model{"gpt-oss-20b", window_of(12, 12, 128), 12, 24, 0.6},
                               Model{"gpt-oss-120b", window_of(18, 18, 128), 18, 36, 0.6});
  CAPTURE(model.name);
  constexpr std::uint32_t kTokens = 32'768;
  SchedulerFixture fixture({.max_context = kTokens, .window = model.window});
  const std::uint32_t planned = fixture.scheduler.fit().limits().blocks_for(kTokens);
  const LeaseId lease = fixture.lease(1, planned + 1);  // and the record
  fixture.limit_blocks(planned + 1);
  fixture.submit(lease, "r", kTokens - 64, 64);
  std::uint32_t used = 0;
  while (fixture.scheduler.has_work()) {
    CHECK(only<Preempted>(fixture.tick()).empty());
    CHECK(fixture.tenancies().take_growth_requests().empty());
    used = std::max(used, fixture.tenancies().at(lease).used_blocks());
  }
  // Between steps the text does not hold the blocks of the next step's rows.
  const std::uint32_t of_step =
      model.window.n_groups * KvWindow::blocks_ahead(SchedulerLimits{}.token_budget);
  CHECK(used >= planned + 1 - of_step);
  const double of_all = kTokens / kBlock * static_cast<double>(model.n_layers) / model.n_full;
  CHECK(planned / of_all <= model.most_share);
}

TEST_CASE("window: a text that goes on after the end of another computes only what is new") {
  Windows windows(1000);
  CHECK(windows.run("first", text(200)) == 0);
  std::vector<TokenId> next = text(200);
  next.insert(next.end(), {2, 2, 2, 5, 5});  // the fixture's tokens, then a new question
  CHECK(windows.run("second", next) == 192);
}

TEST_CASE("window: a common beginning is reused where its windows are, which leave first") {
  Windows windows(60);
  CHECK(windows.run("first", text(200), 1) == 0);
  const bool is_needed = GENERATE(false, true);
  if (is_needed) CHECK(windows.run("other", std::vector<TokenId>(400, 7)) == 0);
  // The other text needs the blocks that the first one left behind, but not those of its end.
  if (is_needed) CHECK(windows.run("next", text(200, 5)) == 192);
  CHECK(windows.run("branch", text(96, 20)) == (is_needed ? 0 : 96));
}

TEST_CASE("window: texts with one beginning share the blocks of their windows while they run") {
  Windows windows(1000);
  CHECK(windows.run("first", text(64), 1) == 0);
  windows.submit(windows.request(windows.lease_id, "a", 1, 100));
  PromptRequest one = windows.request(windows.lease_id, "b", 1, 100);
  PromptRequest two = windows.request(windows.lease_id, "c", 1, 60);
  one.prompt = text(64, 3, 7);
  two.prompt = text(64, 3, 8);
  windows.submit(one);
  windows.submit(two);
  while (windows.scheduler.has_work()) windows.swap_tick();
  CHECK(windows.rows["b"] == 3 + 100 - 1);
  CHECK(windows.rows["c"] == 3 + 60 - 1);
}

TEST_CASE("window: a published text is read where its windows are, by any tenant") {
  Windows windows(1000);
  const LeaseId shared{9, 1};
  windows.tenancies().add({.lease = shared, .tenant = public_owner(), .is_shared = true});
  windows.grow(shared, 200 / kBlock + 1 + kMost);
  REQUIRE(windows.scheduler.submit(windows.scheduler.fill_request(shared, text(200)).value()));
  while (windows.scheduler.has_work()) windows.swap_tick();
  const auto filled = windows.scheduler.publications().take_filled();
  REQUIRE(filled.size() == 1);
  CHECK(filled[0].blocks == 200u / kBlock);
  CHECK(windows.run("reader", text(200, 30), 100) == 192);
  CHECK(windows.run("again", text(200, 40)) == 192);
}

TEST_CASE("window: a sequence whose spilled blocks are lost computes its rows again") {
  KvWindow window = kWindow;
  BlockPool pool;
  BlockPool swap;
  PrefixIndex index;
  pool.add_extent(ExtentId{1}, 40);
  swap.add_extent(ExtentId{2}, 40);
  BlockTable table(kBlock, 0, {.window = window, .step_rows = kStepRows});
  for (const std::uint32_t committed : {32u, 64u, 90u}) {
    REQUIRE(table.reserve(committed, pool));
    table.commit(committed);
    table.trim(committed, pool, index);
  }
  const std::uint32_t first = table.windows().shape().first(90);
  CHECK(table.windows().first() == first);
  CHECK(moved_blocks(table) == 6 + window.n_groups * (6 - first));
  table.swap_out(pool, swap, index);
  CHECK(table.swapped().size() == 6 + window.n_groups * (6 - first));
  CHECK(pool.held_blocks() == 0);
  table.spill(swap);
  table.begin_return({}, pool, index);
  const bool is_filled = GENERATE(true, false);
  table.finish_return(is_filled);
  CHECK(table.committed() == (is_filled ? 90u : 0u));
  CHECK(table.windows().first() == (is_filled ? first : 0u));
  REQUIRE(table.reserve(is_filled ? 100 : 16, pool));
  table.commit(is_filled ? 100 : 16);
  table.free(pool, index);
  CHECK(pool.held_blocks() == 0);
}

TEST_CASE("window: a text that goes on within a block is swapped in where it was swapped out") {
  const SchedulerLimits limits{.token_budget = kStepRows, .window = kWindow};
  BlockPool pool;
  BlockPool swap;
  PrefixIndex index;
  pool.add_extent(ExtentId{1}, 40);
  swap.add_extent(ExtentId{2}, 40);
  const TenantId owner{"alice"};
  const std::vector<TokenId> tokens = text(49);
  BlockTable before(kBlock, 0, limits.window_shape());
  REQUIRE(before.reserve(48, pool));
  before.commit(48);
  before.cache_full({&owner, tokens}, index);
  before.free(pool, index);
  const std::vector<PrefixId> chain = index.match({&owner, tokens}, kBlock);
  REQUIRE(chain.size() == 3);
  // Ten positions of an ended text follow. The window of the next one begins in block 2.
  const std::uint32_t first = limits.first_window(3, 10);
  index.take(chain, owner, chain.size());
  index.windows().reference(std::span(chain).subspan(first));
  std::vector<BlockId> end;
  REQUIRE(pool.take(1 + kWindow.n_groups, end));
  BlockTable table(kBlock, 0, limits.window_shape());
  table.start_with(chain, index, first);
  table.continue_in(end.front(), 10, std::span(end).subspan(1));
  REQUIRE(table.reserve(59, pool));
  table.commit(59);
  table.trim(59, pool, index);
  const std::uint32_t moved = moved_blocks(table);
  CHECK(table.swap_out(pool, swap, index).size() == moved);
  CHECK(table.swap_in({}, pool, swap, index).size() == moved);
  CHECK(moved_blocks(table) == moved);
  table.free(pool, index);
  CHECK(pool.held_blocks() == index.unused());
}

TEST_CASE("window: a table that moves to another lease takes its window with it") {
  BlockPool pool;
  BlockPool other;
  PrefixIndex index;
  pool.add_extent(ExtentId{1}, 40);
  BlockTable table(kBlock, 0, {.window = kWindow, .step_rows = kStepRows});
  for (const std::uint32_t committed : {32u, 64u}) {
    REQUIRE(table.reserve(committed, pool));
    table.commit(committed);
    table.trim(committed, pool, index);
  }
  other.add_extent(ExtentId{3}, table.own_blocks());
  const auto [moved, copies] = table.copy_to(other);
  CHECK(copies.size() == moved_blocks(table));
  CHECK(other.free_blocks() == 0);
  CHECK(moved.windows().first() == table.windows().first());
  CHECK(moved.windows().end() == table.windows().end());
}

}  // namespace leasehold::testing
