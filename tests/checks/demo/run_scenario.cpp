#include "tests/checks/demo/run_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "tests/checks/demo/check_groups.hpp"
#include "tests/checks/demo/tenant_process.hpp"

namespace leasehold::demo {
namespace {

/// How many tokens of a stream precede each event, which is in the middle of the stream.
struct Moments {
  std::size_t keep_memory;
  std::size_t revoke;
  std::size_t kill_worker;
  std::size_t kill;
};

/// Streams longer than 120 tokens have the events at the same tokens as streams of 120.
Moments moments_in(std::uint32_t max_tokens) {
  const std::size_t twelfth = std::min(max_tokens, 120u) / 12;
  return {.keep_memory = 2 * twelfth,
          .revoke = 4 * twelfth,
          .kill_worker = 5 * twelfth,
          .kill = 6 * twelfth};
}

/// Long enough for a slow machine; the wait ends when all memory is free.
constexpr Duration kSettleTimeout = std::chrono::minutes(2);

std::vector<TenantSpec> stories() {
  return {
      {.name = "A", .prompt = "Once upon a time", .temperature = "0"},
      {.name = "B", .prompt = "The little fox", .temperature = "0.8", .seed = 7, .rebind = true},
      {.name = "C", .prompt = "One morning", .temperature = "0.8", .seed = 11},
      {.name = "D", .prompt = "In the garden", .temperature = "0"}};
}

/// Questions with answers of 64 tokens or more.
std::vector<TenantSpec> chats() {
  return {{.name = "A",
           .prompt = "How do plants make food from sunlight? Explain it to a child.",
           .temperature = "0",
           .chat = true,
           .expects = "photosynthesis"},
          {.name = "B",
           .prompt = "Write a short letter to a friend about a day at the beach.",
           .temperature = "0.6",
           .seed = 7,
           .rebind = true,
           .chat = true,
           .expects = "beach"},
          {.name = "C",
           .prompt = "Give me a recipe for vegetable soup.",
           .temperature = "0.6",
           .seed = 11,
           .chat = true},
          {.name = "D",
           .prompt = "Why is the sky blue?",
           .temperature = "0",
           .chat = true,
           .expects = "Rayleigh scattering"}};
}

class Scenario {
 public:
  Scenario(System& system, Display& display, std::ostream& out)
      : system_(system),
        display_(display),
        out_(out),
        moments_(moments_in(system.settings().max_tokens)) {}

  Result<Observation> run() {
    seen_.reads_memory = TRY(system_.broker().status()).device == "cpu";
    seen_.enough_tokens = moments_.kill + 4;
    TRY(admit());
    TRY(run_undisturbed());
    TRY(run_disturbed());
    TRY(settle());
    TRY(recheck_memory());
    seen_.leases = TRY(system_.broker().leases());
    seen_.events = TRY(system_.broker().events());
    TRY(run_with_killed_worker());
    TRY(settle());
    seen_.last = TRY(system_.broker().status());
    return std::move(seen_);
  }

 private:
  Result<void> admit() {
    out_ << "Four tenants are admitted.\n";
    for (const TenantSpec& spec : system_.settings().chat ? chats() : stories()) {
      TRY(system_.brokerctl({"tenants", "admit", spec.name}));
      seen_.results.push_back({.spec = spec});
    }
    return {};
  }

  Result<void> run_undisturbed() {
    out_ << "Undisturbed run: each tenant alone, for comparison." << std::endl;
    for (TenantResult& result : seen_.results) {
      TenantProcesses alone;
      alone.push_back(TRY(TenantProcess::start(system_, result.spec)));
      TRY(read_all(system_, alone, [&] { return sample(); }));
      result.undisturbed = alone[0]->record();
      if (!result.undisturbed.completed) {
        return fail(Errc::SystemError,
                    fmt::format("tenant {} failed in the undisturbed run: {}", result.spec.name,
                                result.undisturbed.failed.value_or("its output ended early")));
      }
    }
    return {};
  }

  Result<void> run_disturbed() {
    out_ << fmt::format(
                "Side by side: B's lease is revoked after {} tokens, C's process is killed "
                "after {}.\n",
                moments_.revoke, moments_.kill)
         << std::endl;
    for (const TenantResult& result : seen_.results) {
      tenants_.push_back(TRY(TenantProcess::start(system_, result.spec)));
    }
    TRY(read_all(system_, tenants_, [&] { return on_progress(); }));
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      seen_.results[i].observed = tenants_[i]->record();
    }
    display_.finish(records());
    return {};
  }

  Result<void> on_progress() {
    TRY(open_memory(tenant(seen_.revoked), opened_revoked_));
    TRY(open_memory(tenant(seen_.killed), opened_killed_));
    if (!revoked_ && tenant(seen_.revoked).record().tokens.size() >= moments_.revoke) {
      revoked_ = true;
      TRY(system_.brokerctl({"revoke", "--tenant", seen_.revoked}));
    }
    if (!killed_ && tenant(seen_.killed).record().tokens.size() >= moments_.kill) {
      killed_ = true;
      TRY(tenant(seen_.killed).kill());
    }
    display_.show(records());
    return sample();
  }

  Result<void> run_with_killed_worker() {
    out_ << fmt::format(
                "Side by side again: the worker's process is killed after {} tokens of B, and "
                "another one is started.\n",
                moments_.kill_worker)
         << std::endl;
    tenants_.clear();
    for (TenantResult& result : seen_.results) {
      TenantSpec rebinding = result.spec;
      rebinding.rebind = true;
      tenants_.push_back(TRY(TenantProcess::start(system_, rebinding)));
    }
    bool killed = false;
    const auto on_output = [&]() -> Result<void> {
      if (!killed && tenant(seen_.revoked).record().tokens.size() >= moments_.kill_worker) {
        killed = true;
        TRY(system_.replace_killed_worker());
      }
      return sample();
    };
    TRY(read_all(system_, tenants_, on_output));
    for (std::size_t i = 0; i < tenants_.size(); ++i)
      seen_.results[i].recovered = tenants_[i]->record();
    const wire::StatusView status = TRY(system_.broker().status());
    for (const wire::ModeSummary& mode : status.rebinds)
      if (mode.mode == "adopt") seen_.adopted = mode.rebinds.since_start.count;
    return {};
  }

  /// Opens the memory of the lease before its revocation.
  Result<void> open_memory(const TenantProcess& tenant, bool& done) {
    const bool is_early = tenant.record().tokens.size() < moments_.keep_memory;
    if (done || is_early || !seen_.reads_memory) return {};
    done = true;
    for (OpenedExtent& extent :
         TRY(open_extents(system_.broker(), tenant.record().leases.back()))) {
      opened_.push_back(std::move(extent));
    }
    return {};
  }

  Result<void> sample() {
    seen_.samples.push_back(TRY(system_.broker().status()));
    return {};
  }

  /// Waits until all memory is free. After a timeout the checks report the missing memory.
  Result<void> settle() {
    const SystemClock clock;
    const TimePoint deadline = clock.now() + kSettleTimeout;
    while (clock.now() < deadline) {
      TRY(system_.check_alive());
      TRY(sample());
      const wire::StatusView& status = seen_.samples.back();
      if (is_all_free(status)) return {};
      TRY(system_.poller().wait({}, std::chrono::milliseconds(10)));
    }
    return {};
  }

  Result<void> recheck_memory() {
    const auto listed = TRY(system_.broker().extents());
    for (const OpenedExtent& opened : opened_) {
      auto after = TRY(read_memory(opened.object));
      const auto view = std::ranges::find(listed, opened.extent, &wire::ExtentView::extent);
      seen_.extents.push_back({.extent = opened.extent,
                               .lease = opened.lease,
                               .before = opened.before,
                               .after = std::move(after),
                               .still_held = view != listed.end() && view->state != "Free"});
    }
    return {};
  }

  TenantProcess& tenant(const std::string& name) {
    return **std::ranges::find_if(tenants_,
                                  [&](const auto& other) { return other->spec().name == name; });
  }

  std::vector<TenantRecord> records() const {
    std::vector<TenantRecord> all;
    for (const auto& tenant : tenants_) all.push_back(tenant->record());
    return all;
  }

  System& system_;
  Display& display_;
  std::ostream& out_;
  Moments moments_;
  Observation seen_;
  TenantProcesses tenants_;
  std::vector<OpenedExtent> opened_;
  bool opened_revoked_ = false, opened_killed_ = false, revoked_ = false, killed_ = false;
};

}  // namespace

Result<Observation> run_scenario(System& system, Display& display, std::ostream& out) {
  return Scenario(system, display, out).run();
}

}  // namespace leasehold::demo
