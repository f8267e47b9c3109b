/// The other sequences of a batch change no bit of a sequence's logits.
#include <catch2/catch.hpp>
#include <set>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kSequences = 16;
constexpr std::uint32_t kBatchTenants = 4;
constexpr std::uint32_t kBatchTokens = 6;
constexpr std::uint32_t kBudget = 24;            // splits the longer prompts into chunks
constexpr std::size_t kExtentBytes = 144 << 10;  // few blocks, so that sequences cross extents

RigOptions small_extents(RigOptions options) {
  options.limits = {.max_batch_size = kSequences, .token_budget = kBudget};
  options.extent_bytes = kExtentBytes;
  return options;
}

/// Sixteen texts of different lengths.
std::string text(std::uint32_t i) {
  std::string all = prompts()[i % prompts().size()];
  for (std::uint32_t more = 0; more < i / 3; ++more) all += " and " + prompts()[(i + more) % 8];
  return all;
}

std::string sequence_id(std::uint32_t i) {
  return "r" + std::to_string(i);
}

/// Runs these sequences together; grants one extent for each growth request.
class Batch {
 public:
  Batch(RigOptions options, std::vector<std::uint32_t> members)
      : rig_(small_extents(std::move(options))), members_(std::move(members)) {
    std::vector<LeaseId> leases;
    for (std::uint32_t t = 0; t < kBatchTenants; ++t) leases.push_back(rig_.grant(tenant(t)));
    for (const std::uint32_t i : members_) {
      const std::uint32_t t = i % kBatchTenants;
      REQUIRE(rig_.submit(
          rig_.request(tenant(t), leases[t], sequence_id(i), rig_.encode(text(i)), kBatchTokens)));
    }
  }

  std::map<std::uint32_t, Run> run() {
    std::map<std::uint32_t, Run> runs;
    while (rig_.engine().scheduler().has_work()) {
      REQUIRE(rig_.step());
      for (const std::uint32_t i : members_) {
        append_last_logits(rig_, sequence_id(i), runs[i]);
        note_extents(i);
      }
      for (const GrowthRequest& growth : rig_.engine().take_growth_requests())
        rig_.grow(growth.lease);
    }
    return runs;
  }

  /// Sequences whose keys and values lay in more than one extent.
  std::size_t crossed() const { return crossed_.size(); }

 private:
  static std::string tenant(std::uint32_t t) { return "t" + std::to_string(t); }

  void note_extents(std::uint32_t i) {
    const Sequence* sequence = rig_.sequence(sequence_id(i));
    if (sequence == nullptr) return;
    std::set<ExtentId> extents;
    for (const BlockId block : sequence->blocks.blocks()) extents.insert(block.extent);
    if (extents.size() > 1) crossed_.insert(i);
  }

  EngineRig rig_;
  std::vector<std::uint32_t> members_;
  std::set<std::uint32_t> crossed_;
};

std::vector<std::uint32_t> first(std::uint32_t count) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(i * 7 % kSequences);  // mixed lengths
  return all;
}

std::vector<Run> serial_runs(const RigOptions& options) {
  std::vector<Run> runs;
  for (std::uint32_t i = 0; i < kSequences; ++i) {
    runs.push_back(Batch(options, {i}).run().at(i));
    REQUIRE(runs.back().size() == kBatchTokens);
  }
  return runs;
}

/// A forward pass outside the engine, with block tables that a test may corrupt.
class BarePass {
 public:
  BarePass()
      : memory_(*MemoryObject::create({.name = "bare", .size_bytes = 2 << 20})),
        mapping_(*LeasedMapping::map(memory_.fd(), 2 << 20, MapAccess::ReadWrite)),
        model_(rig_.config(), KvType::F16, {}, rig_.backend()),
        weights_(rig_.map_weights()),
        lease_(rig_.grant("bare")) {}

  /// Blocks of sequence s; eight each.
  std::vector<Leased<std::byte>> table(std::uint32_t s) const {
    const auto size = static_cast<std::ptrdiff_t>(model_.kv_layout().block_size_bytes());
    std::vector<Leased<std::byte>> blocks;
    for (std::ptrdiff_t b = 0; b < 8; ++b)
      blocks.push_back(mapping_.writable_base() + (s * 8 + b) * size);
    return blocks;
  }

  /// One pass over rows `from` … of two sequences with these tables; the last rows' logits.
  Run forward(const std::array<std::vector<TokenId>, 2>& tokens, std::uint32_t n_rows,
              const std::array<std::vector<Leased<std::byte>>, 2>& tables) {
    GateSet gates(++step_, rig_.running_requests().stops(), null_listener_);
    const LeaseDependency lease = *rig_.table().dependency(lease_);
    std::vector<RowRef> rows;
    std::vector<TokenId> row_tokens;
    std::vector<std::uint32_t> last;
    for (std::uint32_t s = 0; s < 2; ++s) {
      gates.add_sequence({&lease, 1}, s);
      const auto size = static_cast<std::uint32_t>(tokens[s].size());
      for (std::uint32_t p = size - std::min(size, n_rows); p < size; ++p) {
        rows.push_back({s, p});
        row_tokens.push_back(tokens[s][p]);
      }
      last.push_back(static_cast<std::uint32_t>(rows.size() - 1));
    }
    const std::array<BlockTableView, 2> views{BlockTableView(tables[0]), BlockTableView(tables[1])};
    model_.forward(weights_, {.gates = &gates,
                              .rows = rows,
                              .tokens = row_tokens,
                              .block_tables = views,
                              .logit_rows = last});
    return {logits(0), logits(1)};
  }

  Logits logits(std::uint32_t i) const {
    return {model_.logits(i).begin(), model_.logits(i).end()};
  }
  Transformer& model() { return model_; }
  std::vector<TokenId> encode(const std::string& words) const { return rig_.encode(words); }

 private:
  EngineRig rig_;
  NullRefusalListener null_listener_;
  MemoryObject memory_;
  LeasedMapping mapping_;
  Transformer model_;
  Weights weights_;
  LeaseId lease_;
  std::uint64_t step_ = 0;
};

}  // namespace

TEST_CASE("batched decode equals serial decode") {
  const KvType kv_type = GENERATE(KvType::F32, KvType::F16, KvType::Q8_0);
  const std::vector<Run> serial = serial_runs(BackendUnderTest{1}.options(kv_type));
  for (std::uint32_t i = 1; i < kSequences; ++i) {
    CAPTURE(i);
    REQUIRE_FALSE(same_bits(serial[i], serial[i - 1]));  // or the comparison would prove nothing
  }
  for (const BackendUnderTest backend : {BackendUnderTest{1}, {2}, {0}}) {
    for (const std::uint32_t count : {1u, 2u, 3u, 4u, 8u, 16u}) {
      Batch batch(backend.options(kv_type), first(count));
      for (const auto& [i, run] : batch.run()) {
        CAPTURE(backend, count, i);
        REQUIRE(same_bits(run, serial[i]));
      }
      if (count == kSequences) REQUIRE(batch.crossed() > 0);
    }
  }
}

TEST_CASE("batched decode on a GPU equals serial decode there, with and without graphs") {
  if (cuda_backends().empty()) return;
  std::map<std::uint32_t, Run> serial;
  for (const std::uint32_t i : first(4))
    serial[i] = Batch(BackendUnderTest{BackendUnderTest::kCuda}.options(), {i}).run().at(i);
  for (const auto& [cuda, count] :
       {std::pair{BackendUnderTest::kCuda, 3u}, std::pair{BackendUnderTest::kCudaGraphs, 4u}}) {
    Batch batch(BackendUnderTest{cuda}.options(), first(count));
    for (const auto& [i, run] : batch.run()) {
      CAPTURE(BackendUnderTest{cuda}, count, i);
      REQUIRE(run.size() == kBatchTokens);
      REQUIRE(same_bits(run, serial[i]));
    }
  }
}

TEST_CASE("batched decode: the comparison detects a swapped block table and a foreign block") {
  BarePass pass;
  std::array<std::vector<TokenId>, 2> tokens{pass.encode(text(3)), pass.encode(prompts()[5])};
  REQUIRE(tokens[0].size() > 16);  // so that its last row is not written to its first block
  const std::array tables{pass.table(0), pass.table(1)};
  pass.forward(tokens, ~0u, tables);
  for (std::vector<TokenId>& known : tokens) known.push_back(known.front());
  const Run right = pass.forward(tokens, 1, tables);
  REQUIRE(same_bits(pass.forward(tokens, 1, tables), right));
  REQUIRE_FALSE(same_bits({right[0]}, {right[1]}));

  const Run swapped = pass.forward(tokens, 1, {tables[1], tables[0]});
  REQUIRE_FALSE(same_bits({swapped[0]}, {right[0]}));
  REQUIRE_FALSE(same_bits({swapped[1]}, {right[1]}));

  pass.forward(tokens, ~0u, tables);  // the swap overwrote keys
  auto strayed = tables;
  strayed[0][0] = tables[1][0];
  const Run neighbour = pass.forward(tokens, 1, strayed);
  REQUIRE_FALSE(same_bits({neighbour[0]}, {right[0]}));
  REQUIRE(same_bits({neighbour[1]}, {right[1]}));
}

TEST_CASE("transformer: scrubbing clears the logits") {
  BarePass pass;
  const std::array<std::vector<TokenId>, 2> tokens{pass.encode(text(0)), pass.encode(text(1))};
  const auto logits = pass.forward(tokens, ~0u, {pass.table(0), pass.table(1)});
  REQUIRE_FALSE(logits[0] == Logits(logits[0].size()));
  pass.model().scrub();
  REQUIRE(pass.logits(0) == Logits(logits[0].size()));
}

}  // namespace leasehold::testing
