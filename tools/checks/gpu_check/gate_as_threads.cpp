// Checks the gate in one process: another thread revokes the lease of one of four sequences while
// they are decoded together. The others must generate their undisturbed texts.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "tools/checks/gpu_check/bench_cases.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr std::uint32_t kSequences = 4;
constexpr std::uint32_t kVictim = 1;

using Texts = std::vector<std::vector<TokenId>>;  // [kSequences]

struct RefusalCounter final : RefusalListener {
  void refused(const GateRefusal&) noexcept override { ++count; }
  void refusing_unit_ended() noexcept override {}
  std::atomic<int> count{0};
};

struct Run {
  Texts texts{kSequences};
  SequenceMask live_at_end = 0;
  int refusals = 0;
};

TokenId best_token(LocalModel& model, std::uint32_t row) {
  if (const auto top = model.top_logits(row))
    return static_cast<TokenId>(top->tokens.front().token);
  const auto logits = model.logits(row);
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

/// Decodes `steps` steps, and revokes the victim's lease during step `flip_at`.
Result<void> decode(LocalModel& model, int steps, std::optional<int> flip_at, Run& run) {
  std::vector<TokenId> next;
  for (std::uint32_t s = 0; s < kSequences; ++s) next.push_back(static_cast<TokenId>(10 + 7 * s));
  for (int step = 0; step < steps; ++step) {
    std::vector<LocalRow> rows;
    for (std::uint32_t s = 0; s < kSequences; ++s)
      rows.push_back({.sequence = s, .token = next[s]});
    std::thread revoker;
    if (step == flip_at) revoker = std::thread([&] { model.revoke(kVictim); });
    const Result<void> done = model.forward(rows);
    if (revoker.joinable()) revoker.join();
    TRY(done);
    run.live_at_end = model.live();
    for (std::uint32_t s = 0; s < kSequences; ++s) {
      if ((run.live_at_end >> s & 1) == 0) continue;
      next[s] = best_token(model, s);
      run.texts[s].push_back(next[s]);
    }
  }
  return {};
}

Result<Run> run_steps(Card& card, const std::string& model_path, cuda::GraphUse graphs, int steps,
                      std::optional<int> flip_at) {
  RefusalCounter refusal_counter;
  CardPlacement placement(card, {.graphs = graphs}, CardPlacement::WeightsSource::File);
  const std::unique_ptr<LocalModel> model =
      TRY(LocalModel::load({.model_path = model_path,
                            .placement = &placement,
                            .max_rows = kSequences,
                            .sequences = kSequences,
                            .positions = static_cast<std::uint32_t>(steps) + 1,
                            .listener = &refusal_counter}));
  Run run;
  TRY(decode(*model, steps, flip_at, run));
  run.refusals = refusal_counter.count;
  return run;
}

std::string smallest_model(const std::string& directory) {
  std::string smallest;
  std::error_code ignored;  // a missing directory has no model
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const bool is_less =
        smallest.empty() || entry.file_size() < std::filesystem::file_size(smallest);
    if (entry.path().extension() == ".gguf" && is_less) smallest = entry.path();
  }
  return smallest;
}

void compare(StageReport& report, const std::string& mode, const Run& calm, const Run& flipped) {
  bool same = true;
  for (std::uint32_t s = 0; s < kSequences; ++s)
    same = same && (s == kVictim || calm.texts[s] == flipped.texts[s]);
  const bool ended = (flipped.live_at_end >> kVictim & 1) == 0 && flipped.refusals > 0 &&
                     flipped.texts[kVictim].size() < calm.texts[kVictim].size();
  const auto add = [&](std::string what, bool holds) {
    report.add({.what = std::move(what) + ", " + mode,
                .measured = holds ? "yes" : "no",
                .verdict = holds ? Verdict::Pass : Verdict::Fail,
                .as_threads = true});
  };
  add("gate: the lease's sequence ends", ended);
  add("gate: survivors' tokens as undisturbed", same);
}

}  // namespace

Result<void> check_gate_as_threads(const Settings& settings, StageReport& report) {
  const std::string model = smallest_model(settings.model_dir);
  if (model.empty()) return fail(Errc::FileNotFound, "no model in " + settings.model_dir);
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  const int steps = settings.tiny ? 5 : 48;
  for (const auto graphs : {cuda::GraphUse::None, cuda::GraphUse::Gated}) {
    const Run calm = TRY(run_steps(*card, model, graphs, steps, std::nullopt));
    const Run flipped = TRY(run_steps(*card, model, graphs, steps, steps / 2));
    compare(report, std::string(name(graphs)), calm, flipped);
  }
  return {};
}

}  // namespace leasehold::gpu_check
