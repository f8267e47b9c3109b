#include <algorithm>
#include <map>
#include <set>

#include "tests/checks/soak/adapters/adapters_run.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::soak {
namespace {

using runner::ActionKind;
using runner::Check;
using runner::NamedCounts;
using runner::Record;
using runner::Text;

constexpr runner::ActionShare kShares[] = {
    {ActionKind::RevokeAdapter, 20}, {ActionKind::UnloadAdapter, 8}, {ActionKind::RemoveAdapter, 8},
    {ActionKind::AddAdapter, 16},    {ActionKind::RevokeLease, 10},  {ActionKind::RevokeWeights, 2},
    {ActionKind::KillTenant, 8},     {ActionKind::KillWorker, 2},    {ActionKind::KillBroker, 2}};

/// The adapter of an operator action on one: "c7" of "adapter:c7@w0". Empty for other actions.
std::string adapter_of(const events::OperatorAction& action) {
  constexpr std::string_view kKind = "adapter:";
  if (!action.object.starts_with(kKind)) return {};
  return action.object.substr(kKind.size(), action.object.find('@') - kKind.size());
}

struct Effects {
  std::uint64_t reloads = 0, evicted = 0, unloaded = 0, revoked = 0, died = 0;
};

/// Counts the loads and ends of adapters of one broker. An adapter that a worker closes was evicted
/// for memory, unless an operator has unloaded, removed or added it since it was loaded.
class EffectCounter {
 public:
  void loaded(const events::AdapterLoaded& event) {
    if (!seen_.insert(event.adapter.value).second) ++effects_.reloads;
    told_to_leave_.erase(event.adapter.value);
  }
  void acted(const events::OperatorAction& action) {
    if (const std::string adapter = adapter_of(action); !adapter.empty())
      told_to_leave_.insert(adapter);
  }
  void ended(const events::AdapterEvicted& event) {
    const bool was_told = told_to_leave_.contains(event.adapter.value);
    if (event.reason == RevokeReason::Operator) ++effects_.revoked;
    if (event.reason == RevokeReason::WorkerGone) ++effects_.died;
    if (event.reason == RevokeReason::ModelUnloaded)
      ++(was_told ? effects_.unloaded : effects_.evicted);
  }
  const Effects& effects() const { return effects_; }

 private:
  std::set<std::string> seen_, told_to_leave_;
  Effects effects_;
};

Effects effects_of(const Record& record) {
  EffectCounter counter;
  for (const runner::BrokerInstance& broker : record.brokers) {
    for (const events::StampedEvent& stamped : broker.events) {
      if (const auto* loaded = std::get_if<events::AdapterLoaded>(&stamped.event))
        counter.loaded(*loaded);
      if (const auto* action = std::get_if<events::OperatorAction>(&stamped.event))
        counter.acted(*action);
      if (const auto* ended = std::get_if<events::AdapterEvicted>(&stamped.event))
        counter.ended(*ended);
    }
  }
  return counter.effects();
}

std::uint64_t count_texts(const Record& record, auto holds) {
  return static_cast<std::uint64_t>(std::ranges::count_if(record.texts, holds));
}

bool was_interrupted(const Text& text) {
  return std::ranges::any_of(text.record.reported, [](const runner::TenantEvent& reported) {
    return runner::is_end_of(FailureScope::Adapter, reported);
  });
}

bool was_refused(const Text& text) {
  return text.record.failed && text.record.reported.back().why == name(Errc::UnknownAdapter);
}

}  // namespace

const runner::Script kAdapterScript{.shares = kShares, .max_tokens_between = 400};

NamedCounts adapter_effects(const Record& record) {
  const Effects effects = effects_of(record);
  return {{"adapter loaded again", effects.reloads},
          {"adapter evicted for memory", effects.evicted},
          {"adapter closed on order", effects.unloaded},
          {"adapter's lease revoked", effects.revoked},
          {"adapter ended with its worker", effects.died},
          {"text interrupted by its adapter's end", count_texts(record, was_interrupted)},
          {"text ended, its adapter removed", count_texts(record, was_refused)}};
}

std::vector<Check> judge_adapters(const Record& record) {
  std::vector<Check> checks = runner::judge(record);
  checks.push_back(
      runner::happened("once every adapter is registered, every customer gets its text", "texts",
                       record.calm_texts));
  checks.push_back(runner::all_happened("every kind of disturbance happened",
                                        runner::named_counts(kAdapterScript, record.actions)));
  checks.push_back(runner::all_happened("every kind of effect was seen", adapter_effects(record)));
  return checks;
}

std::string adapters_text(const Record& record, const std::vector<Check>& checks) {
  cli::Table table{.columns = {{"WHAT"}, {"COUNT", true}}};
  NamedCounts counts = runner::named_counts(kAdapterScript, record.actions);
  std::ranges::copy(adapter_effects(record), std::back_inserter(counts));
  std::map<std::string, std::uint64_t> ends;
  for (const Text& text : record.texts) {
    if (text.record.completed) ++ends["whole texts"];
    if (text.record.failed) ++ends["texts ended by " + text.record.reported.back().why];
  }
  counts.insert(counts.end(), ends.begin(), ends.end());
  for (const auto& [what, count] : counts) table.rows.push_back({what, std::to_string(count)});
  std::string text = cli::render(table) + "\n";
  for (const Check& check : checks) text += runner::check_line(check.ok, check.promise, check.seen);
  return text;
}

}  // namespace leasehold::soak
