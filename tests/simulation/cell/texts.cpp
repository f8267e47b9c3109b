#include "tests/simulation/cell/texts.hpp"

#include <algorithm>
#include <utility>

#include "tests/simulation/cell/judge.hpp"

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;

constexpr int kTextsOfTenant = 3;
constexpr Duration kSilentAfter = milliseconds(1'600);
constexpr Duration kWaitAtMost = milliseconds(6'000);  // for the first token at a host

}  // namespace

void Texts::start() {
  for (std::size_t tenant = 0; tenant < terms_.tenants.size(); ++tenant) {
    for (int i = 0; i < kTextsOfTenant; ++i) {
      Text& text = *texts_.emplace_back(std::make_unique<Text>(Text{.tenant = tenant}));
      network_.at(network_.between(500, 5'000), nullptr, [this, &text] { begin(text); });
    }
  }
}

void Texts::begin(Text& text) {
  if (is_settling_) return;
  text = {.tenant = text.tenant,
          .length = static_cast<std::uint32_t>(network_.between(3, 30) / milliseconds(1)),
          .has_ended = false};
  place(text);
  watch(text);
}

void Texts::place(Text& text) {
  text.host = network_.random().below(hosts_.size());
  text.attempt = ++attempts_;
  text.heard_at = network_.now();
  text.is_running = false;
  ModelHost& host = *hosts_[text.host];
  if (text.moved_from == host.name()) text.moved_from.reset();
  if (host.is_unlinked()) return;
  host.begin({.attempt = text.attempt,
              .tenant = text.tenant,
              .position = text.position,
              .length = text.length,
              .moved_from = text.moved_from});
}

void Texts::place_later(Text& text) {
  text.earlier = std::exchange(text.attempt, 0);
  network_.at(network_.between(100, 400), nullptr, [this, &text] {
    if (!text.has_ended && text.attempt == 0) place(text);
  });
}

/// A host that is silent is left.
void Texts::watch(Text& text) {
  if (text.has_ended) return;
  network_.at(milliseconds(700) * terms_.pace, nullptr, [this, &text] { watch(text); });
  const bool has_begun = text.is_running || hosts_[text.host]->is_unlinked();
  const Duration silent = network_.now() - text.heard_at;
  if (text.attempt != 0 && silent >= (has_begun ? kSilentAfter : kWaitAtMost) * terms_.pace)
    leave(text);
}

/// Cancels the text at its host, if a message reaches it.
void Texts::leave(Text& text) {
  ModelHost& host = *hosts_[text.host];
  network_.count(Counted::Moves, text.is_running);
  if (!host.is_unlinked()) host.cancel(text.attempt);
  place_later(text);
}

void Texts::heard(std::size_t host, const std::vector<TextNews>& news) {
  if (news.empty() || hosts_[host]->is_unlinked()) return;
  const bool is_unchecked = network_.has(PlantedBug::PositionUnchecked);
  for (const TextNews& each : news)
    for (const auto& text : texts_)
      if (!text->has_ended &&
          (text->attempt == each.attempt || (is_unchecked && text->earlier == each.attempt)))
        hear(*text, each);
}

void Texts::hear(Text& text, const TextNews& news) {
  text.heard_at = network_.now();
  for (const std::uint32_t position : news.positions) {
    text.is_running = true;
    text.moved_from = hosts_[text.host]->name();
    if (position != text.position && !network_.has(PlantedBug::PositionUnchecked))
      return leave(text);
    judge_.delivered(text.position++, position);
  }
  if (!news.end) return;
  switch (*news.end) {
    case TextEnd::Complete:
      return end(text);
    case TextEnd::Unknown:
      judge_.refused(text.tenant);
      return end(text);
    case TextEnd::Refused:
    case TextEnd::Lost:
      network_.count(Counted::LostLeases, *news.end == TextEnd::Lost);
      return place_later(text);
  }
}

void Texts::end(Text& text) {
  network_.count(Counted::Texts);
  text.has_ended = true;
  network_.at(network_.between(0, 4'000), nullptr, [this, &text] { begin(text); });
}

bool Texts::have_all_ended() const {
  return is_settling_ &&
         std::ranges::all_of(texts_, [](const auto& text) { return text->has_ended; });
}

}  // namespace leasehold::cell::simulation
