#include "tests/simulation/adapters/text_check.hpp"

#include <fmt/format.h>

#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {
namespace {

bool is_version_in_use(const State& state, const PublishedText& text) {
  const journal::AdapterRow* newest = state.adapters.find({text.adapter});
  const bool is_shared = newest != nullptr && newest->tenant.value.empty();
  if (is_shared && newest->version == text.version) return true;
  bool is_loaded = false;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const bool is_its = record.scope == wire::LeaseScope::Adapter && record.tenant.value.empty() &&
                        record.part == text.adapter && record.adapter_version == text.version &&
                        record.worker() == text.worker;
    is_loaded = is_loaded || (is_its && record.is(LeaseState::Live));
  });
  return is_loaded;
}

std::string named(LeaseId id, const PublishedText& text) {
  return fmt::format("text {} under version {} of adapter {}", to_string(id), text.version,
                     text.adapter);
}

bool revokes_adapter(const Event& event, const std::string& adapter) {
  const auto* revoke = std::get_if<Call<wire::LeaseRevoke>>(&event);
  return revoke != nullptr && revoke->message.adapter == AdapterName{adapter};
}

}  // namespace

PublishedTexts published_texts(const State& state) {
  PublishedTexts texts;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.scope != wire::LeaseScope::Shared || !record.is(LeaseState::Live)) return;
    if (!record.model.empty())
      texts[record.id()] = {record.model, record.adapter_version, record.worker()};
  });
  return texts;
}

void check_published_texts(const PublishedTexts& before, const State& state, const Event& event,
                           Coverage& coverage) {
  const PublishedTexts now = published_texts(state);
  for (const auto& [id, text] : now) {
    if (!is_version_in_use(state, text))
      violated(named(id, text) + " is live, but that version is gone");
    const bool is_new = !before.contains(id);
    if (is_new && !std::holds_alternative<Call<wire::PrefixPublish>>(event))
      coverage.happened(AdapterEvent::PublishedAgain);
  }
  for (const auto& [id, text] : before) {
    const bool is_revoked = revokes_adapter(event, text.adapter);
    if (now.contains(id) && is_revoked)
      violated(named(id, text) + " is live after a revocation of the adapter");
    if (now.contains(id)) continue;
    const LeaseRecord* record = state.leases.find_open(id);
    if (is_revoked) coverage.happened(AdapterEvent::PublishedRevoked);
    if (record == nullptr || reason_of(record->lease) != RevokeReason::ModelUnloaded) continue;
    if (is_version_in_use(state, text))
      violated(named(id, text) + " has ended, but that version is in use");
    coverage.happened(AdapterEvent::PublishedVersionEnded);
  }
}

}  // namespace leasehold::simulation
