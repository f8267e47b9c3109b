/// The paged cache: appends write where the layout says, attention reads only what it may.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint16_t kLayer = 1;  // one of the two layers of every layout here

struct AttentionCase {
  AttentionCase(SeededRandom& random, KvLayout layout, std::uint32_t heads_per_kv,
                const std::vector<std::uint32_t>& counts, const std::vector<std::uint32_t>& lengths)
      : kv(random, layout, lengths),
        n_heads(layout.layer(kLayer).n_kv_heads * heads_per_kv),
        n_sequences(static_cast<std::uint32_t>(lengths.size())),
        rows(rows_of(counts, lengths)),
        q(random_floats(random, rows.size() * row_floats())) {}

  std::size_t row_floats() const { return std::size_t{n_heads} * kv.shape.head_dim; }
  std::size_t out_floats() const { return std::size_t{n_heads} * kv.shape.value_dim(); }

  /// The outputs of rows [first, first + count), run as a step of their own.
  std::vector<float> on(Rig& rig, std::size_t first, std::size_t count) const {
    std::vector<float> out(count * out_floats());
    const auto gates = rig.table.step(n_sequences);
    const LaunchContext context{
        .gates = gates.get(), .rows = std::span(rows).subspan(first, count), .layer = kLayer};
    const Tables tables = tables_for(context.rows);
    const LaunchStatus status = rig.backend->attention(
        context,
        {.layout = kv.layout.layer(kLayer),
         .q = q.data() + first * row_floats(),
         .out = out.data(),
         .n_heads = n_heads,
         .scale = 1.0F / std::sqrt(static_cast<float>(kv.shape.head_dim)),
         .block_tables = tables.views,
         .window = window,
         .softcap = softcap,
         .sinks = sinks.empty() ? Leased<const float>{} : sinks_memory.at().as<const float>()});
    REQUIRE(status.live == gates->all());
    return out;
  }

  struct Tables {
    std::vector<std::vector<Leased<std::byte>>> blocks;
    std::vector<BlockTableView> views;
  };
  /// The block tables without the blocks before the windows of the rows: the backend may not open
  /// these.
  Tables tables_for(std::span<const RowRef> read) const {
    Tables tables;
    for (std::uint32_t s = 0; s < kv.block_tables().size(); ++s) {
      const auto row = std::ranges::find(read, s, &RowRef::sequence);
      const std::uint32_t n =
          row == read.end() ? 0 : first_position(row->position, window) / KvLayout::kBlockTokens;
      const std::span<const Leased<std::byte>> later = kv.block_tables()[s].blocks.subspan(n);
      tables.blocks.emplace_back(later.begin(), later.end());
      tables.views.emplace_back(tables.blocks.back(), n);
    }
    return tables;
  }
  void set_sinks(SeededRandom& random) {
    sinks = random_floats(random, n_heads, 4.0F);
    sinks_memory.fill<float>(sinks);
  }
  std::vector<float> on(Rig& rig) const { return on(rig, 0, rows.size()); }

  KvFixture kv;
  std::uint32_t n_heads;
  std::uint32_t n_sequences;
  std::vector<RowRef> rows;
  std::vector<float> q;
  std::uint32_t window = 0;
  float softcap = 0;
  std::vector<float> sinks = {};  // [n_heads], or empty
  LeasedMemory sinks_memory{1024};
};

KvLayout layout(std::uint32_t n_kv_heads, std::uint32_t head_dim, KvType type) {
  return {2, {.n_kv_heads = n_kv_heads, .head_dim = head_dim, .type = type}};
}

const std::vector<KvType> kTypes{KvType::F32, KvType::F16, KvType::Q8_0};

/// The width of heads that `type` can store.
std::uint32_t stored_width(std::uint32_t head_dim, KvType type) {
  return can_store(type, head_dim) ? head_dim : (head_dim + 31) / 32 * 32;
}

/// Grouped heads, odd widths, positions on both sides of 256 and 512.
AttentionCase random_case(SeededRandom& random, KvType type) {
  const auto kv_heads = static_cast<std::uint32_t>(1 + random.below(3));
  const auto head_dim = static_cast<std::uint32_t>(1 + random.below(96));
  const std::vector<std::uint32_t> lengths{static_cast<std::uint32_t>(250 + random.below(15)),
                                           static_cast<std::uint32_t>(1 + random.below(40)),
                                           static_cast<std::uint32_t>(500 + random.below(100))};
  return AttentionCase(random, layout(kv_heads, stored_width(head_dim, type), type),
                       static_cast<std::uint32_t>(1 + random.below(2)), {12, 1, 3}, lengths);
}

double score(const AttentionCase& c, std::size_t r, std::uint32_t head, std::uint32_t position) {
  const std::uint32_t kv_head = head / (c.n_heads / c.kv.shape.n_kv_heads);
  double sum = 0;
  for (std::uint32_t d = 0; d < c.kv.shape.head_dim; ++d)
    sum += double{c.q[r * c.row_floats() + head * c.kv.shape.head_dim + d]} *
           c.kv.at(c.rows[r].sequence, kLayer, 0, kv_head, position, d);
  const double scaled = sum / std::sqrt(static_cast<double>(c.kv.shape.head_dim));
  return c.softcap > 0 ? c.softcap * std::tanh(scaled / c.softcap) : scaled;
}

std::vector<double> expected_head(const AttentionCase& c, std::size_t r, std::uint32_t head) {
  const std::uint32_t kv_head = head / (c.n_heads / c.kv.shape.n_kv_heads);
  std::vector<double> out(c.kv.shape.value_dim());
  double sum = c.sinks.empty() ? 0 : std::exp(double{c.sinks[head]});
  for (std::uint32_t p = first_position(c.rows[r].position, c.window); p <= c.rows[r].position;
       ++p) {
    const double weight = std::exp(score(c, r, head, p));
    sum += weight;
    for (std::uint32_t d = 0; d < out.size(); ++d)
      out[d] += weight * c.kv.at(c.rows[r].sequence, kLayer, 1, kv_head, p, d);
  }
  for (double& value : out) value /= sum;
  return out;
}

}  // namespace

TEST_CASE("backend: attention matches doubles across blocks, extents and partitions") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  SeededRandom random(test_seed() + 1000);
  Rig rig(threads);
  const AttentionCase c(random, layout(2, stored_width(24, type), type), 2, {3, 2, 1},
                        {257, 18, 520});
  const auto out = c.on(rig);
  CAPTURE(threads, test_seed());
  for (std::size_t r = 0; r < c.rows.size(); ++r)
    for (std::uint32_t head = 0; head < c.n_heads; ++head) {
      const auto expected = expected_head(c, r, head);
      for (std::uint32_t d = 0; d < expected.size(); ++d)
        REQUIRE(out[r * c.row_floats() + head * expected.size() + d] ==
                Approx(expected[d]).margin(4e-6));
    }
}

TEST_CASE("backend: latent attention weighs the first elements of its keys") {
  struct Widths {
    std::uint32_t key;
    std::uint32_t value;
  };
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  SeededRandom random(test_seed() + 1020);
  Rig rig(threads);
  Rig reference(0);
  for (const Widths widths : {Widths{96, 64}, Widths{288, 256}, Widths{576, 512}}) {
    const KvLayout latent(
        2, {.n_kv_heads = 1, .head_dim = widths.key, .type = type, .latent_dim = widths.value});
    const AttentionCase c(random, latent, 5, {3, 1}, {262, 18});
    REQUIRE(latent.block_size_bytes() * 2 == layout(1, widths.key, type).block_size_bytes());
    const auto out = c.on(rig);
    CAPTURE(threads, test_seed(), widths.key);
    REQUIRE(first_difference(out, c.on(reference)) == -1);
    if (threads != 0) continue;  // the reference's bits are right once
    for (std::size_t r = 0; r < c.rows.size(); ++r)
      for (std::uint32_t head = 0; head < c.n_heads; head += 2) {
        const auto expected = expected_head(c, r, head);
        for (std::uint32_t d = 0; d < expected.size(); ++d)
          REQUIRE(out[r * c.out_floats() + head * expected.size() + d] ==
                  Approx(expected[d]).margin(8e-6));
      }
  }
}

TEST_CASE("backend: a window, a soft cap and sinks match doubles and open no block before it") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  SeededRandom random(test_seed() + 1050);
  Rig rig(threads);
  Rig reference(0);
  AttentionCase c(random, layout(2, stored_width(40, type), type), 3, {9, 2, 1}, {265, 18, 530});
  for (const std::uint32_t window : {1u, 100u, 275u}) {
    c.window = window;
    c.softcap = window % 2 == 0 ? 1.5F : 0.0F;
    if (window == 100) c.set_sinks(random);
    CAPTURE(threads, test_seed(), window);
    const auto out = c.on(rig);
    REQUIRE(first_difference(out, c.on(reference)) == -1);
    for (const std::size_t first : {8, 11}) {
      const auto alone = c.on(rig, first, 1);
      const auto at = out.begin() + static_cast<std::ptrdiff_t>(first * c.row_floats());
      REQUIRE(std::equal(alone.begin(), alone.end(), at));
    }
    for (std::size_t r = 0; r < c.rows.size(); ++r)
      for (std::uint32_t head = 0; head < c.n_heads; ++head) {
        const auto expected = expected_head(c, r, head);
        for (std::uint32_t d = 0; d < expected.size(); ++d)
          REQUIRE(out[r * c.row_floats() + head * expected.size() + d] ==
                  Approx(expected[d]).margin(4e-6));
      }
  }
}

TEST_CASE("backend: attention has the reference's bits for every head width and key type") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 1100);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < 12; ++shape) {
    const KvType type = kTypes[static_cast<std::size_t>(shape) % kTypes.size()];
    const auto c = random_case(random, type);
    CAPTURE(shape, c.n_heads, c.kv.shape.head_dim);
    REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
  }
}

TEST_CASE("backend: attention has the reference's bits whichever heads and rows share a unit") {
  struct Shape {
    std::uint32_t n_kv_heads;
    std::uint32_t heads_per_kv;
    std::uint32_t head_dim;
    std::vector<std::uint32_t> counts;
    std::vector<std::uint32_t> lengths;
  };
  // Chunks that begin or end at a partition, groups that do and do not divide a unit, and the
  // widths that have loops of their own.
  const std::vector<Shape> shapes{{1, 7, 64, {20, 1, 9}, {263, 300, 9}},
                                  {2, 4, 64, {17, 16}, {17, 529}},
                                  {1, 8, 128, {3, 9, 1, 2}, {256, 265, 1, 513}},
                                  {1, 1, 80, {40}, {530}},
                                  {4, 2, 33, {6, 2}, {258, 20}}};
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  SeededRandom random(test_seed() + 1150);
  Rig rig(threads);
  Rig reference(0);
  for (const Shape& shape : shapes) {
    const AttentionCase c(random,
                          layout(shape.n_kv_heads, stored_width(shape.head_dim, type), type),
                          shape.heads_per_kv, shape.counts, shape.lengths);
    CAPTURE(threads, test_seed(), shape.n_kv_heads, shape.heads_per_kv, shape.head_dim);
    REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
  }
}

TEST_CASE("backend: a long context is merged in a launch of its own, with the reference's bits") {
  class MergeWatch final : public GateProbe {
   public:
    void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t, SequenceMask) override {
      if (site == LaunchSite::AttentionMerge) merges.fetch_add(1);
    }
    std::atomic<int> merges{0};
  } watch;
  BackendLimits limits = kLimits;
  limits.max_context = 3000;
  SeededRandom random(test_seed() + 1175);
  const AttentionCase c(random, layout(1, 128, KvType::F16), 2, {3}, {2900});
  Rig rig(0);
  rig.backend = required(CpuBackend::create(limits, rig.table.gates(2, &watch)));
  Rig reference(0);
  reference.backend = std::make_unique<ReferenceBackend>(limits, reference.table.gate(0));
  REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
  REQUIRE(watch.merges > 0);
}

TEST_CASE("backend: a NaN at a later position of the cache reaches no earlier row") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  SeededRandom random(test_seed() + 1250);
  Rig rig(threads);
  const AttentionCase c(random, layout(1, stored_width(40, type), type), 2, {6}, {262});
  const auto expected = c.on(rig);
  const std::vector<float> nans(c.kv.shape.head_dim, std::nanf(""));
  const auto gates = rig.table.step(1);
  append(*rig.backend, {.gates = gates.get(), .rows = {&c.rows.back(), 1}, .layer = kLayer},
         c.kv.layout.layer(kLayer), nans, nans, c.kv.block_tables());
  const auto out = c.on(rig);
  CAPTURE(threads, test_seed());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i < 5 * c.row_floats())
      REQUIRE(out[i] == expected[i]);
    else
      REQUIRE(std::isnan(out[i]));
  }
}

TEST_CASE("backend: a prefill in chunks or row by row has the bits of the whole prefill") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(KvType::F16, KvType::Q8_0);
  SeededRandom random(test_seed() + 1200);
  Rig rig(threads);
  const auto c = random_case(random, type);
  const auto whole = c.on(rig);
  for (const std::size_t chunk : {1, 5}) {
    std::vector<float> pieces;
    for (std::size_t first = 0; first < c.rows.size(); first += chunk) {
      const auto piece = c.on(rig, first, std::min(chunk, c.rows.size() - first));
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    CAPTURE(threads, chunk);
    REQUIRE(first_difference(pieces, whole) == -1);
  }
}

TEST_CASE("backend: an append writes each row's keys and values only to its own position") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const KvType type = GENERATE(from_range(kTypes));
  const std::uint32_t width = stored_width(20, type);
  SeededRandom random(test_seed() + 1300);
  Rig rig(threads);
  const std::vector<std::uint32_t> lengths{40, 1, 70};
  KvFixture kv(random, layout(3, width, type), lengths);
  KvFixture untouched = [&] {
    SeededRandom again(test_seed() + 1300);
    return KvFixture(again, layout(3, width, type), lengths);
  }();
  const auto rows = rows_of({18, 1, 2}, lengths);
  const auto k = random_floats(random, rows.size() * 3 * width);
  const auto v = random_floats(random, rows.size() * 3 * width);
  const auto gates = rig.table.step(3);
  append(*rig.backend, {.gates = gates.get(), .rows = rows, .layer = kLayer},
         kv.layout.layer(kLayer), k, v, kv.block_tables());
  const auto stored = [&](const std::vector<float>& values, std::size_t i) {
    if (type == KvType::F32) return values[i];
    if (type == KvType::F16) return f32_from_f16(f16_from_f32(values[i]));
    std::int8_t q[32];
    Half scale;
    round_kv(values.data() + i / 32 * 32, 32, q, &scale);
    return kv_value(q[i % 32], f32_from_f16(scale));
  };
  int wrong = 0;
  std::size_t changed = 0;
  for (std::uint32_t s = 0; s < 3; ++s)
    for (std::uint32_t layer = 0; layer < 2; ++layer)
      for (std::uint32_t h = 0; h < 3; ++h)
        for (std::uint32_t p = 0; p < lengths[s]; ++p)
          for (std::uint32_t d = 0; d < width; ++d) {
            const auto row = std::ranges::find_if(
                rows, [&](RowRef r) { return r.sequence == s && r.position == p; });
            const bool is_new = layer == kLayer && row != rows.end();
            const std::size_t from =
                (static_cast<std::size_t>(row - rows.begin()) * 3 + h) * width + d;
            const float key = is_new ? stored(k, from) : untouched.at(s, layer, 0, h, p, d);
            const float value = is_new ? stored(v, from) : untouched.at(s, layer, 1, h, p, d);
            wrong += kv.at(s, layer, 0, h, p, d) != key;
            wrong += kv.at(s, layer, 1, h, p, d) != value;
            changed += is_new ? 1 : 0;
          }
  REQUIRE(changed == k.size());
  REQUIRE(wrong == 0);
}

}  // namespace leasehold::testing
