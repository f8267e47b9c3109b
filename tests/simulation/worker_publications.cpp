// Texts that the worker publishes: a step computes them, and its requests read them. The product's
// prefix index decides which of them a request may read.
#include "tests/simulation/adapters/worker_adapters.hpp"
#include "tests/simulation/model_worker.hpp"
#include "worker/schedule/adapter_version.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kBlockTokens = 16;
/// Every prompt begins with the published text, which has one block.
constexpr std::array<TokenId, kBlockTokens + 1> kPrompt{};

}  // namespace

/// On a card, whose launches name one lease for each row, nothing is computed and nothing is read.
void Worker::on_fill(const wire::PrefixFill& asked, std::uint64_t number) {
  const bool is_short = deps_.machine.one_in(6);
  posted_.push_back([this, asked, number, is_short] {
    if (is_short || !held_.contains(asked.lease))
      return reply(number,
                   FillAnswered{asked.lease, fail(Errc::BadRequest, "the text is too short")});
    if (launcher_)
      return reply(number,
                   FillAnswered{asked.lease, wire::PrefixFilled{.tokens = 16, .blocks = 1}});
    if (!weights_ready_)
      return reply(number, FillAnswered{asked.lease, fail(Errc::NoModelLoaded, "no weights")});
    asked.adapter ? load_for_fill(asked, number) : begin_fill({number, asked});
  });
}

/// The text is computed under the version that the broker names, or not at all.
void Worker::load_for_fill(const wire::PrefixFill& asked, std::uint64_t number) {
  adapters_->use("", asked.adapter->value, [this, asked, number](const Result<AdapterUse>& use) {
    if (!use) return reply(number, FillAnswered{asked.lease, std::unexpected(use.error())});
    const auto checked =
        check_version({.name = asked.adapter->value, .version = asked.adapter_version}, **use);
    if (checked) return begin_fill({number, asked, *use});
    deps_.coverage.happened(AdapterEvent::OtherVersionToPublish);
    reply(number, FillAnswered{asked.lease, std::unexpected(checked.error())});
  });
}

void Worker::begin_fill(Fill fill) {
  const LeaseId lease = fill.asked.lease;
  const auto held = held_.find(lease);
  const bool is_ready =
      held != held_.end() && is_live(lease) && (!fill.adapter || is_live(fill.adapter->lease));
  if (!is_ready)
    return reply(fill.number, FillAnswered{lease, fail(Errc::LeaseRevoked, "revoked")});
  if (fill.adapter) deps_.adapters->text_began(fill.adapter->lease);
  held->second.fill = std::move(fill);
}

/// Adds the text to the step, as a sequence without a tenant.
void Worker::add_fill(LeaseId lease, const Held& held) {
  const AdapterUse& adapter = held.fill->adapter;
  std::vector<LeaseDependency> needed{table_->dependency(lease).value()};
  if (adapter) needed.push_back(table_->dependency(adapter->lease).value());
  set_->add_sequence(needed);
  Part& part = in_step_.emplace_back(Part{.lease = lease, .extents = held.extents});
  deps_.adapters->publishes(part.extents);
  if (!adapter) return;
  part.adapter = adapter->lease;
  part.adapter_extents = held_.at(adapter->lease).extents;
  part.content = content_of(adapter->digest);
}

/// The step has computed the text.
void Worker::publish(LeaseId lease, Held& held) {
  const Fill& fill = *held.fill;
  const bool is_new =
      held.published.add({}, published_text(fill.adapter, kBlockTokens), {}).has_value();
  if (!is_new) violated("a text was published twice in " + to_string(lease));
  if (fill.adapter) {
    held.published_under = fill.adapter->lease;
    deps_.adapters->published({fill.asked.adapter->value, fill.asked.adapter_version},
                              content_of(fill.adapter->digest), held.extents);
  } else {
    deps_.adapters->published(held.extents);
  }
  end_fill(lease, held, wire::PrefixFilled{.tokens = kBlockTokens, .blocks = 1});
}

void Worker::end_fill(LeaseId lease, Held& held, Result<wire::PrefixFilled> filled) {
  const Fill fill = *std::exchange(held.fill, std::nullopt);
  if (fill.adapter) deps_.adapters->text_ended(fill.adapter->lease);
  reply(fill.number, FillAnswered{lease, std::move(filled)});
}

/// Its own lease has ended, or that of its adapter.
void Worker::refuse_fill(LeaseId lease, Held& held) {
  if (is_live(lease)) deps_.coverage.happened(AdapterEvent::RevokedWhilePublishing);
  end_fill(lease, held, fail(Errc::LeaseRevoked, "revoked before the text was computed"));
}

/// The weights do not return.
void Worker::give_up_fills() {
  for (auto& [lease, held] : held_)
    if (held.fill) end_fill(lease, held, fail(Errc::NoModelLoaded, "no weights"));
}

OwnedText Worker::published_text(const AdapterUse& adapter, std::size_t tokens) const {
  const bool is_known = adapter && !deps_.planted_bugs.adapter_text_for_any;
  return {&public_owner(), std::span(kPrompt).first(tokens), is_known ? &adapter->digest : nullptr};
}

/// A published text that a new request under the adapter reads.
std::optional<LeaseId> Worker::published_for(const AdapterUse& adapter) const {
  std::vector<LeaseId> found;
  for (const auto& [lease, held] : held_) {
    if (held.published.size() == 0 || !is_live(lease)) continue;
    if (!held.published.match(published_text(adapter, kPrompt.size()), kBlockTokens).empty())
      found.push_back(lease);
  }
  if (found.empty() || deps_.machine.one_in(4)) return std::nullopt;
  return found[deps_.machine.pick(found.size())];
}

void Worker::note_published(const Running& reader) const {
  if (!reader.shared || !reader.adapter) return;
  deps_.coverage.happened(AdapterEvent::PublishedRead);
  if (held_.at(*reader.shared).published_under != reader.adapter->lease)
    deps_.coverage.happened(AdapterEvent::PublishedReadAfterReload);
}

}  // namespace leasehold::simulation
