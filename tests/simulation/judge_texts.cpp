// Texts, as their readers get them: every position once and as in the undisturbed text.
#include <fmt/format.h>

#include "tests/simulation/coverage.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr TextEvent kDeaths[] = {TextEvent::TenantDied,          TextEvent::ResumingTenantDied,
                                 TextEvent::WorkerDied,          TextEvent::AdoptingWorkerDied,
                                 TextEvent::FailoverWorkerDied,  TextEvent::BrokerDied,
                                 TextEvent::BrokerDiedInAdoption};

constexpr std::uint32_t bit(TextEvent event) {
  return 1u << static_cast<unsigned>(event);
}

}  // namespace

void Judge::begins_record(ExtentId extent, const Text& text) {
  objects_.at(extent).record.begin_write(text);
}

void Judge::wrote_record(ExtentId extent, const Text& text) {
  objects_.at(extent).record.finish_write(text);
}

void Judge::text_runs(const Request& request, const Worker& worker, const Text& from,
                      bool is_adopted) {
  if (!request.text.begins(from))
    violated(fmt::format("a worker continued text {} with other tokens", request.text.id));
  // A request that waited for its adapter may begin when its reader has the text from elsewhere.
  if (left_texts_.contains(from.id)) return;
  WatchedText& text = texts_[from.id];
  text.worker = &worker;
  if (is_adopted) {
    coverage_->happened(text.is_handed_over ? TextEvent::ContinuedByHandover : TextEvent::Adopted);
    if (from.size > request.text.size) coverage_->happened(TextEvent::RecordWasAhead);
  } else if (from.size > request.text.size) {
    coverage_->happened(TextEvent::Kept);
  } else if (from.size > 0) {
    coverage_->happened(TextEvent::ComputedAgain);
  }
}

void Judge::text_is_resumed(std::uint64_t text) {
  const auto found = texts_.find(text);
  if (found != texts_.end()) found->second.is_resumed = true;
}

void Judge::text_fails_over(std::uint64_t text) {
  const auto found = texts_.find(text);
  if (found != texts_.end()) found->second.fails_over = true;
}

void Judge::token_arrived(const Text& before, std::uint32_t position, std::uint32_t token) {
  if (tracing) trace(fmt::format("position {} of text {} arrives", position, before.id));
  if (position != before.size)
    violated(fmt::format("position {} of text {} arrived instead of {}", position, before.id,
                         before.size));
  if (token != before.next())
    violated(fmt::format("position {} of text {} is not as undisturbed", position, before.id));
  WatchedText& text = texts_.at(before.id);
  for (const TextEvent death : kDeaths) {
    if ((text.deaths & bit(death)) != 0) coverage_->happened(death);
  }
  constexpr std::uint32_t kBoth = bit(TextEvent::BrokerDied) | bit(TextEvent::WorkerDied);
  if ((text.deaths & kBoth) == kBoth) coverage_->happened(TextEvent::BrokerAndWorkerDied);
  text = {.worker = text.worker,
          .is_handed_over = text.is_handed_over,
          .has_seen_deaths = text.has_seen_deaths || text.deaths != 0};
}

void Judge::text_completed(const Text& text) {
  if (!text.is_whole())
    violated(fmt::format("text {} ended after {} positions", text.id, text.size));
  const auto found = texts_.find(text.id);
  if (found->second.has_seen_deaths) coverage_->happened(TextEvent::WholeAfterDeaths);
  texts_.erase(found);
  left_texts_.insert(text.id);
}

/// A text that cannot be resumed is left by its tenant's death.
void Judge::texts_are_whole() const {
  for (const auto& [id, text] : texts_) {
    if (is_resumable(id)) violated(fmt::format("text {} was begun and did not end", id));
  }
}

void Judge::tenant_died(std::uint64_t id) {
  const auto found = texts_.find(id);
  if (found == texts_.end()) return;
  if (!is_resumable(id)) {
    texts_.erase(found);
    return;
  }
  WatchedText& text = found->second;
  text.deaths |= bit(TextEvent::TenantDied);
  if (text.is_resumed) text.deaths |= bit(TextEvent::ResumingTenantDied);
}

void Judge::note_adoption(const Object& object, const Lease& by) {
  const Text* record = object.record.checked();
  const auto text = record == nullptr ? texts_.end() : texts_.find(record->id);
  if (text == texts_.end()) return;
  const auto adopter = workers_.find(by.worker);
  const auto before = workers_.find(slots_[object.lease.slot].worker);
  text->second.adopter = adopter == workers_.end() ? nullptr : adopter->second;
  text->second.is_handed_over = slots_[object.lease.slot].id == object.lease &&
                                before != workers_.end() && !before->second->is_dead();
}

void Judge::note_worker_death(const Worker& worker) {
  for (auto& [id, text] : texts_) {
    if (text.worker == &worker) text.deaths |= bit(TextEvent::WorkerDied);
    if (text.adopter == &worker) text.deaths |= bit(TextEvent::AdoptingWorkerDied);
    if (text.fails_over) text.deaths |= bit(TextEvent::FailoverWorkerDied);
  }
}

void Judge::note_broker_death() {
  for (auto& [id, text] : texts_) {
    text.deaths |= bit(TextEvent::BrokerDied);
    if (text.adopter != nullptr) text.deaths |= bit(TextEvent::BrokerDiedInAdoption);
  }
}

}  // namespace leasehold::simulation
