#include "broker/decide/effect_group.hpp"

#include <catch2/catch.hpp>

#include "broker/decide/merged_batch.hpp"

using namespace leasehold;

namespace {

constexpr LeaseId kLease{.slot = 1, .generation = 1};
constexpr LeaseId kOther{.slot = 2, .generation = 1};

/// Lists what was performed, in order.
class Recorder {
 public:
  bool writes_together = true;
  std::vector<std::string> performed;

  bool write_together(const std::vector<const journal::Batch*>& batches) {
    if (writes_together) performed.push_back("rows of " + std::to_string(batches.size()));
    return writes_together;
  }
  void perform(const effect::Journal&) { performed.emplace_back("rows"); }
  void perform(const effect::CreateExtents&) { performed.emplace_back("create"); }
  void perform(const effect::PublishGrant& effect) {
    performed.push_back("grant " + to_string(effect.lease));
  }
  void perform(const effect::StoreWords& effect) {
    const auto& change = effect.changes.front();
    performed.push_back((change.to == LeaseState::Revoked ? "revoke " : "fence ") +
                        to_string(change.lease));
  }
  void perform(const effect::BeginQuietWatch&) { performed.emplace_back("watch"); }
  void perform(const effect::BindWorker&) { performed.emplace_back("bind"); }
  void perform(const effect::Warn& effect) { performed.push_back(effect.message); }
  void perform(const auto&) { performed.emplace_back("other"); }
};

effect::Journal rows() {
  return {.batch = {.rows = {journal::BootRow{}}}};
}

effect::StoreWords words(LeaseId lease, LeaseState to) {
  return {.worker = {}, .changes = {{.lease = lease, .to = to}}, .at = {}};
}

std::vector<Effect> grant_of(LeaseId lease) {
  return {effect::CreateExtents{}, rows(), effect::PublishGrant{.lease = lease, .deadline = {}}};
}

std::vector<Effect> revocation_of(LeaseId lease) {
  return {words(lease, LeaseState::Revoked), effect::BeginQuietWatch{.leases = {lease}},
          effect::Warn{"notify"}, rows()};
}

using Performed = std::vector<std::string>;

}  // namespace

TEST_CASE("effects: a decision without rows waits only behind decisions with rows") {
  Recorder recorder;
  EffectGroup group;
  group.add({effect::Warn{"first"}}, recorder);
  CHECK(recorder.performed == Performed{"first"});
  group.add({rows()}, recorder);
  group.add({effect::Warn{"second"}}, recorder);
  CHECK_FALSE(group.is_empty());
  CHECK(recorder.performed == Performed{"first"});
  group.flush(recorder);
  CHECK(group.is_empty());
  CHECK(recorder.performed == Performed{"first", "rows", "second"});
}

TEST_CASE("effects: what comes before the rows of a decision waits only behind other decisions") {
  Recorder recorder;
  EffectGroup group;
  group.add({effect::Warn{"before"}, rows(), effect::Warn{"after"}}, recorder);
  CHECK(recorder.performed == Performed{"before"});
  group.add({effect::Warn{"next"}, rows()}, recorder);
  CHECK(recorder.performed == Performed{"before"});
  group.flush(recorder);
  CHECK(recorder.performed == Performed{"before", "rows of 2", "after", "next"});
}

TEST_CASE("effects: the rows of many decisions are written once, before what follows them") {
  Recorder recorder;
  EffectGroup group;
  group.add(grant_of(kLease), recorder);
  group.add(grant_of(kOther), recorder);
  group.flush(recorder);
  CHECK(recorder.performed == Performed{"create", "create", "rows of 2", "grant 1.1", "grant 2.1"});
}

TEST_CASE("effects: rows that cannot be written together are written by each decision") {
  Recorder recorder;
  recorder.writes_together = false;
  EffectGroup group;
  group.add(grant_of(kLease), recorder);
  group.add(grant_of(kOther), recorder);
  group.flush(recorder);
  CHECK(recorder.performed ==
        Performed{"create", "create", "rows", "grant 1.1", "rows", "grant 2.1"});
}

TEST_CASE("effects: a revocation does not wait for the rows of other leases") {
  Recorder recorder;
  EffectGroup group;
  group.add(grant_of(kOther), recorder);
  group.add(revocation_of(kLease), recorder);
  CHECK(recorder.performed == Performed{"revoke 1.1", "watch"});
  group.flush(recorder);
  CHECK(recorder.performed ==
        Performed{"revoke 1.1", "watch", "create", "rows of 2", "grant 2.1", "notify"});
}

TEST_CASE("effects: a revocation follows the grant of its lease") {
  Recorder recorder;
  EffectGroup group;
  group.add(grant_of(kLease), recorder);
  group.add(revocation_of(kLease), recorder);
  CHECK(recorder.performed == Performed{"create", "rows", "grant 1.1", "revoke 1.1", "watch"});
}

TEST_CASE("effects: a fence waits for its rows") {
  Recorder recorder;
  EffectGroup group;
  group.add({rows(), words(kLease, LeaseState::Fenced)}, recorder);
  CHECK(recorder.performed.empty());
  group.flush(recorder);
  CHECK(recorder.performed == Performed{"rows", "fence 1.1"});
}

TEST_CASE("effects: a decision that binds a worker is performed with all before it") {
  Recorder recorder;
  EffectGroup group;
  group.add(grant_of(kLease), recorder);
  group.add({rows(), effect::BindWorker{}}, recorder);
  CHECK(recorder.performed == Performed{"create", "rows of 2", "grant 1.1", "bind"});
}

TEST_CASE("rows: those of leases and extents that later rows replace are left out") {
  const journal::LeaseRow live{.id = kLease, .state = LeaseState::Live};
  const journal::LeaseRow fenced{.id = kLease, .state = LeaseState::Fenced};
  const journal::LeaseRow other{.id = kOther};
  const ExtentId extent{7};
  const journal::Batch first{.rows = {live, other, journal::ExtentRow{.id = extent}},
                             .has_grants = true};
  const journal::Batch second{.rows = {fenced, journal::ExtentGone{extent}}, .durable = true};
  const journal::Batch all = journal::merged({&first, &second});
  REQUIRE(all.rows.size() == 3);
  CHECK(std::get<journal::LeaseRow>(all.rows[0]).id == kOther);
  CHECK(std::get<journal::LeaseRow>(all.rows[1]).state == LeaseState::Fenced);
  CHECK(std::get<journal::ExtentGone>(all.rows[2]).id == extent);
  CHECK(all.has_grants);
  CHECK(all.durable);
  CHECK_FALSE(all.synced_later);
}
