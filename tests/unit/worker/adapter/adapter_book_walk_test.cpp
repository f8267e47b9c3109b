// Random walks of an AdapterBook beside a model of its broker, whose answers come late and in any
// order.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/test_seed.hpp"
#include "tests/unit/worker/adapter/adapter_book_fixture.hpp"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPoolLeases = 3;  // adapters for which there is memory
constexpr std::size_t kOwnLeases = 2;   // a tenant's quota
const std::vector<std::string> kNames{"a", "b", "c", "d", "shared"};
const std::vector<std::string> kTenants{"t", "u"};

/// What the broker knows, and what it checks.
struct BrokerModel {
  std::map<std::string, ResolvedAdapter> registry;
  std::map<LeaseId, ResolvedAdapter> leases;  // live
  std::uint64_t last_lease = 0;
  std::map<std::string, std::uint32_t> last_version;

  void add(const std::string& name) {
    ResolvedAdapter adapter = own(name, name < "c" ? "t" : "u", ++last_version[name]);
    if (name == "shared") adapter.owner.reset();
    registry.insert_or_assign(name, adapter);
  }
  Result<ResolvedAdapter> resolve(const ResolveAdapter& asked) const {
    const auto found = registry.find(asked.name);
    const bool is_visible =
        found != registry.end() && (!found->second.owner || *found->second.owner == asked.tenant);
    if (!is_visible) return std::unexpected(error(Errc::UnknownAdapter));
    return found->second;
  }
  Result<LeaseId> open(const OpenAdapterLease& asked) {
    const auto found = registry.find(asked.name);
    if (found == registry.end() || found->second.version != asked.version)
      return std::unexpected(error(Errc::UnknownAdapter));
    const auto owned = std::ranges::count_if(
        leases, [&](const auto& entry) { return entry.second.owner == found->second.owner; });
    if (static_cast<std::size_t>(owned) >= kOwnLeases)
      return std::unexpected(error(Errc::QuotaAdapters));
    if (leases.size() >= kPoolLeases) return std::unexpected(error(Errc::PoolExhausted, 5));
    const LeaseId lease{static_cast<std::uint32_t>(++last_lease), 1};
    leases.emplace(lease, found->second);
    return lease;
  }
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    for (const std::string& name : kNames) broker_.add(name);
  }

  void step() {
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        use();
        break;
      case 3:
        drop_use();
        break;
      case 4:
        change_registry();
        break;
      case 5:
        revoke();
        break;
      case 6:
        f_.book.unload(kNames[pick(kNames.size())]);
        break;
      case 7:
        f_.clock.advance(std::chrono::milliseconds(pick(300)));
        f_.tick();
        break;
      default:
        answer_one(pick(8) == 0);
    }
    take();
  }

  /// Answers every call until nothing is left to do.
  void settle() {
    f_.book.changed();
    take();
    for (int i = 0; i < 3'000 && (!pending_.empty() || !waiting_.empty()); ++i) {
      while (!pending_.empty()) {
        answer_one(false);
        take();
      }
      held_.clear();
      f_.clock.advance(AdapterBook::kReclaimTime);
      f_.tick();
      take();
    }
    held_.clear();
    f_.tick();
    take();
    while (!pending_.empty()) {
      answer_one(false);
      take();
    }
  }

  void check_settled() {
    CHECK(waiting_.empty());
    std::set<LeaseId> loaded;
    for (const auto& [id, load] : f_.book.loads()) {
      CHECK(load.is_loaded());
      CHECK(broker_.registry.at(load.adapter.name) == load.adapter);
      loaded.insert(*load.lease);
    }
    std::set<LeaseId> live;
    for (const auto& [lease, adapter] : broker_.leases) live.insert(lease);
    CHECK(loaded == live);
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }

  void use() {
    const std::string& tenant = kTenants[pick(kTenants.size())];
    const std::string& name = kNames[pick(kNames.size())];
    waiting_.emplace(f_.use(tenant, name), std::pair(tenant, name));
  }
  void drop_use() {
    if (!held_.empty())
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(pick(held_.size())));
  }
  void change_registry() {
    const std::string& name = kNames[pick(kNames.size())];
    if (pick(3) == 0) {
      broker_.registry.erase(name);
    } else {
      broker_.add(name);
    }
    f_.book.changed();
  }
  void revoke() {
    if (broker_.leases.empty()) return;
    const auto victim =
        std::next(broker_.leases.begin(), static_cast<std::ptrdiff_t>(pick(broker_.leases.size())));
    const LeaseId lease = victim->first;
    broker_.leases.erase(victim);
    std::erase_if(held_, [lease](const AdapterUse& use) { return use->lease == lease; });
    f_.book.lease_lost(lease, f_.clock.now());
  }

  /// Takes the book's actions: what is answered at once, and what is answered later.
  void take() {
    for (AdapterAction& action : f_.book.take_actions()) {
      if (const auto* answered = std::get_if<AnswerAdapterUse>(&action)) {
        note(*answered);
      } else if (const auto* closed = std::get_if<CloseAdapterLease>(&action)) {
        for (const AdapterUse& use : held_) REQUIRE(use->lease != closed->lease);
        broker_.leases.erase(closed->lease);
      } else if (!is_report(action)) {
        pending_.push_back(std::move(action));
      }
    }
    check_once_each();
  }
  static bool is_report(const AdapterAction& action) {
    return std::holds_alternative<ReportAdapterLoaded>(action) ||
           std::holds_alternative<ReportAdapterEvicted>(action) ||
           std::holds_alternative<DropAdapterFile>(action);
  }
  void note(const AnswerAdapterUse& answered) {
    const auto caller = waiting_.extract(answered.ticket);
    REQUIRE(caller);  // answered once
    if (!answered.use) return;
    const auto& [tenant, name] = caller.mapped();
    const LoadedAdapter& adapter = **answered.use;
    CHECK(adapter.name == name);
    REQUIRE(broker_.leases.contains(adapter.lease));
    const auto& owner = broker_.leases.at(adapter.lease).owner;
    CHECK((!owner || owner->value == tenant));
    held_.push_back(*answered.use);
  }
  void check_once_each() {
    std::set<std::pair<std::string, std::uint32_t>> versions;
    for (const auto& [id, load] : f_.book.loads()) {
      if (load.phase == AdapterLoad::Phase::Draining) continue;
      CHECK(versions.emplace(load.adapter.name, load.adapter.version).second);
    }
  }

  /// Answers the oldest call of some load or name; calls of one kind keep their order.
  void answer_one(bool fails) {
    if (pending_.empty()) return;
    const auto chosen =
        pending_.begin() + static_cast<std::ptrdiff_t>(is_resolving() ? 0 : pick(pending_.size()));
    const AdapterAction action = std::move(*chosen);
    pending_.erase(chosen);
    std::visit([&](const auto& each) { answer(each, fails); }, action);
  }
  /// The broker's answers to `adapter.resolve` and its `adapters.changed` come in order.
  bool is_resolving() const {
    return std::ranges::any_of(pending_, [](const AdapterAction& action) {
      return std::holds_alternative<ResolveAdapter>(action);
    });
  }

  void answer(const ResolveAdapter& asked, bool fails) {
    Result<ResolvedAdapter> answer = broker_.resolve(asked);
    if (fails) answer = std::unexpected(error(Errc::ConnectionLost));
    f_.book.resolved({asked.tenant, asked.name}, answer, f_.clock.now());
  }
  void answer(const OpenAdapterFile& asked, bool fails) {
    if (fails) return f_.book.file_opened(asked.load, std::unexpected(error(Errc::FileCorrupt)));
    f_.opened_file(asked.load);
  }
  void answer(const OpenAdapterLease& asked, bool) {
    f_.opened_lease(asked.load, broker_.open(asked));
  }
  void answer(const CopyAdapter& asked, bool fails) {
    if (fails)
      return f_.book.copied(asked.load, std::unexpected(error(Errc::FileCorrupt)), f_.clock.now());
    f_.copied(asked.load);
  }
  void answer(const ConfirmAdapter& asked, bool fails) {
    if (fails) return f_.confirmed(asked.load, std::unexpected(error(Errc::TimedOut)));
    if (!broker_.leases.contains(asked.lease))
      return f_.confirmed(asked.load, std::unexpected(error(Errc::LeaseRevoked)));
    f_.confirmed(asked.load);
  }
  void answer(const auto&, bool) {}

  std::mt19937_64 random_;
  BookFixture f_;
  BrokerModel broker_;
  std::vector<AdapterAction> pending_;  // calls that are not answered yet
  std::map<AdapterTicket, std::pair<std::string, std::string>> waiting_;
  std::vector<AdapterUse> held_;  // by requests
};

}  // namespace

TEST_CASE(
    "adapter book: in any order of events each caller is answered once and no lease is lost") {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t walk = 0; walk < 200; ++walk) {
    CAPTURE(seed, walk);
    Walk one(seed + walk);
    for (int i = 0; i < 300; ++i) one.step();
    one.settle();
    one.check_settled();
  }
}

}  // namespace leasehold::testing
