#include "tools/checks/demo/run_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "tools/checks/demo/tenant_process.hpp"

namespace leasehold::demo {
namespace {

/// Far enough in that there is something to lose, and something left to say.
constexpr std::size_t kKeepMemoryAfter = 20;
constexpr std::size_t kRevokeAfter = 40;
constexpr std::size_t kKillAfter = 60;
/// Of a slow machine: it ends with the last extent.
constexpr Duration kSettlePatience = std::chrono::minutes(2);

std::vector<Actor> cast() {
  return {
      {.name = "A", .prompt = "Once upon a time", .temperature = "0"},
      {.name = "B", .prompt = "The little fox", .temperature = "0.8", .seed = 7, .rebind = true},
      {.name = "C", .prompt = "One morning", .temperature = "0.8", .seed = 11},
      {.name = "D", .prompt = "In the garden", .temperature = "0"}};
}

class Play {
 public:
  Play(Stage& stage, Screen& screen, std::ostream& out)
      : stage_(stage), screen_(screen), out_(out) {}

  Result<Observation> perform() {
    seen_.reads_memory = TRY(stage_.broker().status()).device == "cpu";
    TRY(admit());
    TRY(play_undisturbed());
    TRY(play_disturbed());
    TRY(settle());
    TRY(look_at_memory());
    seen_.leases = TRY(stage_.broker().leases());
    seen_.events = TRY(stage_.broker().events());
    seen_.last = TRY(stage_.broker().status());
    return std::move(seen_);
  }

 private:
  Result<void> admit() {
    out_ << "Four tenants are admitted.\n";
    for (const Actor& actor : cast()) {
      TRY(stage_.run_to_end("brokerctl",
                            {"--socket", stage_.broker_socket(), "admit", actor.name}));
      seen_.stories.push_back({.actor = actor});
    }
    return {};
  }

  Result<void> play_undisturbed() {
    out_ << "Undisturbed: one after the other, to know what each would say." << std::endl;
    for (Story& story : seen_.stories) {
      Players alone;
      alone.push_back(TRY(Player::start(stage_, story.actor)));
      TRY(listen(stage_, alone, [&] { return sample(); }));
      story.undisturbed = alone[0]->record();
      if (!story.undisturbed.completed) {
        return fail(Errc::SystemError,
                    fmt::format("tenant {} alone did not end well: {}", story.actor.name,
                                story.undisturbed.failed.value_or("no last line")));
      }
    }
    return {};
  }

  Result<void> play_disturbed() {
    out_ << fmt::format(
                "Side by side: B's lease is revoked after {} tokens, C's process is killed "
                "after {}.\n",
                kRevokeAfter, kKillAfter)
         << std::endl;
    for (const Story& story : seen_.stories) {
      players_.push_back(TRY(Player::start(stage_, story.actor)));
    }
    TRY(listen(stage_, players_, [&] { return after_round(); }));
    for (std::size_t i = 0; i < players_.size(); ++i) {
      seen_.stories[i].told = players_[i]->record();
    }
    screen_.finish(records());
    return {};
  }

  Result<void> after_round() {
    TRY(keep_memory(player(seen_.revoked), kept_revoked_));
    TRY(keep_memory(player(seen_.killed), kept_killed_));
    if (!revoked_ && player(seen_.revoked).record().tokens.size() >= kRevokeAfter) {
      revoked_ = true;
      TRY(stage_.run_to_end(
          "brokerctl", {"--socket", stage_.broker_socket(), "revoke", "--tenant", seen_.revoked}));
    }
    if (!killed_ && player(seen_.killed).record().tokens.size() >= kKillAfter) {
      killed_ = true;
      TRY(player(seen_.killed).kill());
    }
    screen_.show(records());
    return sample();
  }

  /// Before anything happens to the lease: its memory, from outside.
  Result<void> keep_memory(const Player& player, bool& done) {
    const bool is_early = player.record().tokens.size() < kKeepMemoryAfter;
    if (done || is_early || !seen_.reads_memory) return {};
    done = true;
    for (KeptExtent& extent : TRY(keep_extents(stage_.broker(), player.record().leases.back()))) {
      kept_.push_back(std::move(extent));
    }
    return {};
  }

  Result<void> sample() {
    seen_.samples.push_back(TRY(stage_.broker().status()));
    return {};
  }

  /// Until no memory is on its way back any more; what does not come is for the judge.
  Result<void> settle() {
    const SystemClock clock;
    const TimePoint give_up = clock.now() + kSettlePatience;
    while (clock.now() < give_up) {
      TRY(stage_.check_alive());
      TRY(sample());
      const wire::StatusView& status = seen_.samples.back();
      if (status.free_bytes == status.capacity_bytes) return {};
      TRY(stage_.patience().wait({}, std::chrono::milliseconds(10)));
    }
    return {};
  }

  Result<void> look_at_memory() {
    const auto listed = TRY(stage_.broker().extents());
    for (const KeptExtent& kept : kept_) {
      auto after = TRY(read_memory(kept.object));
      const auto view = std::ranges::find(listed, kept.extent, &wire::ExtentView::extent);
      seen_.extents.push_back({.extent = kept.extent,
                               .lease = kept.lease,
                               .before = kept.before,
                               .after = std::move(after),
                               .still_held = view != listed.end() && view->state != "Free"});
    }
    return {};
  }

  Player& player(const std::string& name) {
    return **std::ranges::find_if(players_,
                                  [&](const auto& other) { return other->actor().name == name; });
  }

  std::vector<TenantRecord> records() const {
    std::vector<TenantRecord> all;
    for (const auto& player : players_) all.push_back(player->record());
    return all;
  }

  Stage& stage_;
  Screen& screen_;
  std::ostream& out_;
  Observation seen_;
  Players players_;
  std::vector<KeptExtent> kept_;
  bool kept_revoked_ = false, kept_killed_ = false, revoked_ = false, killed_ = false;
};

}  // namespace

Result<Observation> play(Stage& stage, Screen& screen, std::ostream& out) {
  return Play(stage, screen, out).perform();
}

}  // namespace leasehold::demo
