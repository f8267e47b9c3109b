#include "tools/checks/soak/round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "tools/checks/soak/arena.hpp"

namespace leasehold::soak {
namespace {

/// Nobody is disturbed any more: whoever is not done by then hangs.
constexpr Duration kSettlePatience = std::chrono::minutes(3);
/// When nobody tells anything, a deed is done all the same.
constexpr Duration kSilence = std::chrono::milliseconds(500);
constexpr std::uint64_t kDeedsPerScan = 3;

class Round {
 public:
  Round(const Settings& settings, const Cast& cast, const demo::Patience& patience,
        const RoundOrder& order)
      : order_(order),
        cast_(cast),
        chaos_(order.seed),
        arena_(settings, cast, patience, order.directory) {}

  Result<RoundResult> play() {
    while (tally_.kills() < order_.kills && clock_.now() < order_.until) {
      TRY(wait_for(chaos_.next()));
    }
    TRY(serve_everybody());
    TRY(settle());
    TRY(arena_.collect_event_logs());
    count();
    return RoundResult{tally_, judge(arena_.history())};
  }

 private:
  /// Until the tenants have told as much as the deed asks for, then does it.
  Result<void> wait_for(const Deed& deed) {
    const std::uint64_t wanted = arena_.tokens_told() + deed.after_tokens;
    const TimePoint enough = clock_.now() + kSilence;
    do {
      TRY(arena_.tend(true));
    } while (arena_.tokens_told() < wanted && clock_.now() < enough);
    if (!act(deed)) return {};
    ++tally_.deeds[static_cast<std::size_t>(deed.kind)];
    arena_.count_deed();
    if (++deeds_ % kDeedsPerScan == 0) scan();
    return {};
  }

  /// False when there is nobody to do it to.
  bool act(const Deed& deed) {
    switch (deed.kind) {
      case DeedKind::KillTenant:
        return to_tenant(deed, [](ProcessSlot& slot) { slot.kill(); });
      case DeedKind::KillWorker:
        return to_worker(deed, [](ProcessSlot& slot) { slot.kill(); });
      case DeedKind::KillBroker:
        return to_broker([](ProcessSlot& slot) { slot.kill(); });
      case DeedKind::StopTenant:
        return to_tenant(deed, [&](ProcessSlot& slot) { slot.stop(deed.stands_for); });
      case DeedKind::StopWorker:
        return to_worker(deed, [&](ProcessSlot& slot) { slot.stop(deed.stands_for); });
      case DeedKind::StopBroker:
        return to_broker([&](ProcessSlot& slot) { slot.stop(deed.stands_for); });
      case DeedKind::RevokeLease:
        return to_lease(deed, wire::LeaseScope::Tenant, false);
      case DeedKind::DrainLease:
        return to_lease(deed, wire::LeaseScope::Tenant, true);
      case DeedKind::RevokeWeights:
        return to_lease(deed, wire::LeaseScope::Engine, false);
    }
    return false;
  }

  using Blow = std::function<void(ProcessSlot&)>;

  bool to_tenant(const Deed& deed, const Blow& blow) {
    auto& slots = arena_.tenants();
    return strike(slots[deed.which % slots.size()].process, blow);
  }

  bool to_worker(const Deed& deed, const Blow& blow) {
    auto& slots = arena_.workers();
    return strike(slots[deed.which % slots.size()].process, blow);
  }

  /// Not while a worker is on its way: which broker it met would be a guess.
  bool to_broker(const Blow& blow) {
    return arena_.all_workers_ready() && strike(arena_.broker(), blow);
  }

  bool strike(ProcessSlot& slot, const Blow& blow) {
    if (!slot.runs()) return false;
    blow(slot);
    return true;
  }

  bool to_lease(const Deed& deed, wire::LeaseScope scope, bool drain) {
    demo::BrokerView* broker = arena_.view();
    auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "");
    if (!leases) return false;
    std::erase_if(*leases, [&](const wire::LeaseView& lease) {
      return lease.scope != scope || lease.state != LeaseState::Live;
    });
    if (leases->empty()) return false;
    const LeaseId lease = (*leases)[deed.which % leases->size()].lease;
    constexpr std::int64_t kGrace_ms = 20;
    if (drain) {
      return broker->command(wire::LeaseDrain{.lease = lease, .grace_ms = kGrace_ms}).has_value();
    }
    return broker->command(wire::LeaseRevoke{.lease = lease}).has_value();
  }

  /// A look that fails because the broker went away is made up for by the next.
  void scan() {
    if (demo::BrokerView* broker = arena_.view()) {
      (void)look_for_canaries(*broker, cast_.canaries, *arena_.history().canaries);
    }
  }

  /// Left alone, everybody is answered again.
  Result<void> serve_everybody() {
    arena_.wake_all();
    const auto& lives = arena_.history().tenants;
    const std::size_t first = lives.size();
    std::set<std::string> answered;
    const TimePoint give_up = clock_.now() + kSettlePatience;
    for (std::size_t next = first; answered.size() < cast_.parts.size();) {
      TRY(arena_.tend(true));
      for (; next < lives.size(); ++next) {
        if (lives[next].record.completed) answered.insert(lives[next].tenant);
      }
      if (clock_.now() > give_up) return hangs("somebody is never answered");
    }
    return {};
  }

  std::unexpected<Error> hangs(const std::string& what) const {
    return fail(Errc::TimedOut, what + "; the logs are in " + order_.directory.string());
  }

  Result<void> settle() {
    const TimePoint give_up = clock_.now() + kSettlePatience;
    while (clock_.now() < give_up) {
      TRY(arena_.tend(false));
      if (!unsettled()) return {};
    }
    return hangs(unsettled().value_or("it took too long until all was quiet"));
  }

  /// What is still going on when nobody is disturbed; nothing when all is quiet and given back, and
  /// then the status that said so is kept for the judge.
  std::optional<std::string> unsettled() {
    for (const TenantSlot& slot : arena_.tenants())
      if (slot.process.filled()) return slot.part->name + " never ended";
    demo::BrokerView* broker = arena_.view();
    if (broker == nullptr) return "no broker is reached";
    for (const WorkerSlot& slot : arena_.workers())
      if (!slot.ready) return slot.name + " never got ready";
    const auto status = broker->status();
    if (!status) return "the broker does not answer: " + status.error().detail;
    if (status->free_bytes != status->capacity_bytes) {
      return fmt::format("{} of {} bytes never got free",
                         status->capacity_bytes - status->free_bytes, status->capacity_bytes);
    }
    arena_.history().last = *status;
    return std::nullopt;
  }

  void count() {
    const History& history = arena_.history();
    for (const BrokerLife& life : history.brokers) tally_.brokers += 1 + life.restarts.size();
    tally_.workers = history.workers.size();
    tally_.tenants = history.tenants.size();
    tally_.extents_read = history.canaries->extents_read;
    for (const TenantLife& life : history.tenants) {
      tally_.tokens += life.record.tokens.size();
      tally_.answered += life.record.completed ? 1 : 0;
      if (life.record.failed) ++tally_.gave_up[life.record.told.back().why];
      tally_.leases += life.record.leases.size();
      tally_.revoked_leases += life.record.revocations.size();
    }
  }

  const RoundOrder& order_;
  const Cast& cast_;
  SystemClock clock_;
  Chaos chaos_;
  Arena arena_;
  Tally tally_;
  std::uint64_t deeds_ = 0;
};

}  // namespace

Result<RoundResult> play_round(const Settings& settings, const Cast& cast,
                               const demo::Patience& patience, const RoundOrder& order) {
  return Round(settings, cast, patience, order).play();
}

Result<void> play_calm(const Settings& settings, Cast& cast, const demo::Patience& patience,
                       const std::filesystem::path& directory) {
  Arena arena(settings, cast, patience, directory);
  const SystemClock clock;
  const TimePoint give_up = clock.now() + kSettlePatience;
  const auto text_of = [&arena](const Part& part) -> const TenantLife* {
    for (const TenantLife& life : arena.history().tenants) {
      if (life.tenant == part.name && life.record.completed) return &life;
    }
    return nullptr;
  };
  const auto all_told = [&] {
    return std::ranges::all_of(cast.parts, [&](const Part& part) { return text_of(part); });
  };
  while (!all_told()) {
    TRY(arena.tend(true));
    if (clock.now() > give_up) return fail(Errc::TimedOut, "the calm run does not end");
  }
  for (Part& part : cast.parts) part.undisturbed = text_of(part)->record.tokens;
  return {};
}

}  // namespace leasehold::soak
