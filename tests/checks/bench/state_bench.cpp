#include "tests/checks/bench/state_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/expects.hpp"
#include "kernels/model/capacity_plan.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kAmpleMemory = 1ull << 50;
constexpr std::uint32_t kDecodedTokens = kSnapshotPositions;  // one snapshot of each stream

/// Rooms of a lease, in blocks: for its text alone, or also for all snapshots of the text.
struct Rooms {
  std::uint32_t text = 0;
  std::uint32_t with_snapshots = 0;
};

/// States have at most half of a lease's blocks.
Rooms rooms_of(const StateBenchConfig& config, const CapacityPlan& plan) {
  const auto blocks_of = [](std::uint32_t positions) {
    return (positions + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
  };
  const std::uint32_t positions = config.prompt_tokens + kDecodedTokens;
  const std::uint32_t n_snapshots = positions / kSnapshotPositions + 1;
  Rooms rooms;
  rooms.text = plan.blocks_per_tenant - blocks_of(plan.context) + blocks_of(positions);
  rooms.with_snapshots = rooms.text + 2 * n_snapshots * plan.state_blocks_per_tenant / kStateCopies;
  return rooms;
}

/// The streams of one run, each with a tenant and a lease of its own.
class Streams {
 public:
  Streams(const StateBenchConfig& config, std::uint64_t lease_bytes)
      : rig_({.model_path = config.model_path,
              .arithmetic = Arithmetic::Int8,
              .extent_bytes = lease_bytes,
              .prefaults_extents = true}) {
    for (std::uint32_t i = 0; i < config.streams; ++i) {
      leases_.push_back(rig_.grant(fmt::format("t{}", i)));
      submit(config, i);
    }
  }

  /// Runs all texts. Returns the time of each step in which all of them decode.
  Result<std::vector<double>> step_ms() {
    std::vector<double> times_ms;
    while (rig_.engine().scheduler().has_work()) {
      (void)rig_.take_step_cpu_ns();
      const StepReport report = TRY(rig_.step());
      const double took_ms = rig_.take_step_cpu_ns() / 1e6;
      const bool all_decode = report.summary.n_seqs == leases_.size() &&
                              report.summary.emitted_tokens == leases_.size();
      if (all_decode) times_ms.push_back(took_ms);
    }
    return times_ms;
  }
  bool has_snapshots() const {
    return std::ranges::any_of(leases_, [this](LeaseId lease) {
      const PrefixIndex& prefixes = rig_.engine().scheduler().tenancies().at(lease).prefixes;
      return prefixes.states().unused() > state_blocks();
    });
  }

 private:
  /// An ended text also leaves its last state.
  std::uint32_t state_blocks() const {
    return rig_.engine().scheduler().fit().limits().state_blocks;
  }
  /// Submits the text of stream `i`.
  void submit(const StateBenchConfig& config, std::uint32_t i) {
    const std::string tenant = fmt::format("t{}", i);
    std::vector<TokenId> prompt;
    const std::uint32_t shorter = i * (kSnapshotPositions / config.streams);
    for (std::uint32_t at = shorter; at < config.prompt_tokens; ++at)
      prompt.push_back(static_cast<TokenId>(at * 17 % 200 + 20));
    PromptRequest request =
        rig_.request(tenant, leases_[i], tenant, std::move(prompt), kDecodedTokens);
    request.sampling.ignore_eos = true;
    const bool is_queued = rig_.submit(request).has_value();
    ensures(is_queued, "a lease holds its text");
  }

  testing::EngineRig rig_;
  std::vector<LeaseId> leases_;
};

struct StateTimes {
  std::vector<double> with_ms, without_ms;
  std::vector<double> p50_ratios, p99_ratios;  // [rounds]
};

Result<std::vector<double>> run(const StateBenchConfig& config, const CapacityPlan& plan,
                                bool with_snapshots) {
  const Rooms rooms = rooms_of(config, plan);
  Streams streams(config, (with_snapshots ? rooms.with_snapshots : rooms.text) * plan.block_bytes);
  std::vector<double> times_ms = TRY(streams.step_ms());
  if (streams.has_snapshots() != with_snapshots)
    return fail(Errc::UnsupportedModel,
                fmt::format("the states of {} are too small beside its keys and values to be left "
                            "out; use a larger model",
                            config.model_path));
  return times_ms;
}

/// The two runs follow one another, so that other load of the machine disturbs both.
Result<void> add_round(const StateBenchConfig& config, const CapacityPlan& plan, bool with_first,
                       StateTimes& times) {
  std::vector<double> of_round[2];
  for (const bool with : {with_first, !with_first})
    of_round[with ? 1 : 0] = TRY(run(config, plan, with));
  const Distribution without = distribution_of(of_round[0]);
  const Distribution with = distribution_of(of_round[1]);
  times.p50_ratios.push_back(with.p50 / without.p50);
  times.p99_ratios.push_back(with.p99 / without.p99);
  times.without_ms.insert(times.without_ms.end(), of_round[0].begin(), of_round[0].end());
  times.with_ms.insert(times.with_ms.end(), of_round[1].begin(), of_round[1].end());
  return {};
}

}  // namespace

Result<nlohmann::json> measure_states(const StateBenchConfig& config) {
  const CapacityPlan plan = TRY(plan_capacity({.model = config.model_path}, kAmpleMemory));
  if (plan.state_blocks_per_tenant == 0)
    return fail(Errc::UnsupportedModel,
                fmt::format("the model {} has no recurrent layers", config.model_path));
  StateTimes times;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    TRY(add_round(config, plan, round % 2 == 0, times));
  return nlohmann::json{
      {"states",
       {{"model", config.model_path},
        {"streams", config.streams},
        {"state_bytes", plan.state_blocks_per_tenant / kStateCopies * plan.block_bytes},
        {"with_ms", to_json(distribution_of(times.with_ms))},
        {"without_ms", to_json(distribution_of(times.without_ms))},
        {"p50_ratio", median_of(times.p50_ratios)},
        {"p99_ratio", median_of(times.p99_ratios)}}}};
}

}  // namespace leasehold::bench
