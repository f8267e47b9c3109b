// The judge must accept a correct run and find every single flaw.
#include "tests/checks/demo/observation.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace leasehold;
using namespace leasehold::demo;
using runner::all_ok;

namespace {

constexpr std::uint64_t kTenants = 4;
constexpr LeaseId kA{1, 1}, kB{2, 1}, kC{3, 1}, kD{4, 1}, kSecondB{5, 1};
constexpr ExtentId kExtentOfB{20}, kExtentOfC{30};

TenantRecord record(const std::string& name, std::vector<LeaseId> leases, int tokens) {
  TenantRecord observed{.name = name, .leases = std::move(leases), .completed = "MaxTokensReached"};
  for (int i = 0; i < tokens; ++i) {
    observed.tokens.push_back(i);
    observed.text += "t ";
  }
  return observed;
}

TenantResult result(const std::string& name, std::vector<LeaseId> leases) {
  return {.spec = {.name = name},
          .undisturbed = record(name, {}, 160),
          .observed = record(name, std::move(leases), 160),
          .recovered = record(name, {{7, 1}, {7, 2}}, 160)};
}

wire::LeaseView fenced(LeaseId lease, RevokeReason reason) {
  return {.lease = lease,
          .state = LeaseState::Fenced,
          .reason = reason,
          .proof = "LaunchQuiet",
          .clocks = {.refuse_ns = 10, .error_ns = 20, .quiet_ns = 15, .reuse_ns = 99}};
}

void put_on_record(Observation& seen, LeaseId lease, ExtentId extent) {
  std::int64_t at = 100;
  auto add = [&](events::Event event) {
    seen.brokers[0].events.push_back({std::move(event), {at += 10}});
  };
  add(events::LeaseStateChanged{.lease = lease, .state = LeaseState::Live});
  add(events::LeaseStateChanged{.lease = lease, .state = LeaseState::Revoked});
  add(events::ForwardRevoked{.lease = lease, .kernel_site = LaunchSite::KvAppend, .layer = 2});
  add(events::LeaseStateChanged{.lease = lease, .state = LeaseState::Fenced});
  add(events::RegionStateChanged{.region = extent.value, .kind = "extent", .state = "Scrubbing"});
  add(events::RegionStateChanged{.region = extent.value, .kind = "extent", .state = "Free"});
}

/// A run that keeps every promise.
Observation perfect() {
  Observation seen;
  seen.results = {result("A", {kA}), result("B", {kB, kSecondB}), result("C", {kC}),
                  result("D", {kD})};
  seen.brokers.resize(1);
  seen.results[1].observed.revocations = {{.lease = kB, .reason = "operator", .after_tokens = 40}};
  seen.results[2].observed.tokens.resize(60);
  seen.results[2].observed.completed.reset();
  seen.leases = {fenced(kA, RevokeReason::Released), fenced(kB, RevokeReason::Operator),
                 fenced(kC, RevokeReason::HolderGone), fenced(kD, RevokeReason::Released),
                 fenced(kSecondB, RevokeReason::Released)};
  put_on_record(seen, kB, kExtentOfB);
  put_on_record(seen, kC, kExtentOfC);
  seen.brokers[0].events.push_back({events::Rebind{.old_lease = kB, .new_lease = kSecondB}, {500}});
  seen.extents = {{.extent = kExtentOfB, .lease = kB, .before = {4096, 1000}},
                  {.extent = kExtentOfC, .lease = kC, .before = {4096, 1000}}};
  seen.adopted = kTenants;
  seen.brokers[0].samples = {{.capacity_bytes = 100, .free_bytes = 60, .owned_bytes = 40}};
  seen.last = wire::StatusView{.capacity_bytes = 100, .free_bytes = 100};
  return seen;
}

/// The same run on a device: its memory has no readable descriptor and is held for its worker.
Observation perfect_on_device() {
  Observation seen = perfect();
  seen.reads_memory = false;
  seen.extents.clear();
  seen.adopted = 0;
  std::erase_if(seen.brokers[0].events, [](const events::StampedEvent& one) {
    return std::holds_alternative<events::RegionStateChanged>(one.event);
  });
  seen.last = wire::StatusView{.capacity_bytes = 100, .free_bytes = 92, .held_bytes = 8};
  return seen;
}

/// The same run with adapters: that of A is revoked, D has another one.
Observation perfect_adapters() {
  Observation seen = perfect();
  constexpr LeaseId kFirst{6, 1}, kSecond{6, 2};
  seen.adapter = {.tenant = "A", .first = kFirst, .second = kSecond};
  for (TenantResult& one : seen.results) one.adapted = record(one.spec.name, {{8, 1}}, 160);
  for (const std::size_t adapted : {0, 3}) {
    seen.results[adapted].adapter = "tuned";
    seen.results[adapted].adapted_alone = seen.results[adapted].adapted;
  }
  seen.results[0].adapted.revocations = {
      {.lease = kFirst, .reason = "operator", .after_tokens = 40}};
  seen.leases.push_back(fenced(kFirst, RevokeReason::Operator));
  put_on_record(seen, kFirst, {40});
  seen.brokers[0].events.push_back({events::AdapterLoaded{.lease = kSecond}, {600}});
  seen.extents.push_back({.extent = {40}, .lease = kFirst, .before = {4096, 1000}});
  return seen;
}

/// The same run with questions.
Observation perfect_chats() {
  Observation seen = perfect();
  for (TenantResult& result : seen.results) result.spec.chat = true;
  seen.results[0].expects = "t t";
  seen.results[1].observed.completed = "EndOfSequence";
  return seen;
}

std::vector<std::string> broken_promises(const Observation& seen) {
  std::vector<std::string> promises;
  for (const Check& check : judge(seen))
    if (!check.ok) promises.push_back(check.promise);
  return promises;
}

/// How many promises are broken.
std::size_t broken(const Observation& seen) {
  return broken_promises(seen).size();
}

/// A way to spoil a perfect run, and the only promise that it breaks.
struct Flaw {
  const char* flaw;
  const char* broken_promise;
  void (*spoil)(Observation&);
};
const Flaw kFlaws[]{
    {"a wrong token of a survivor", "D's tokens are those of the undisturbed run",
     [](Observation& seen) { seen.results[3].observed.tokens[77] += 1; }},
    {"another text of a survivor with equal tokens", "A's tokens are those of the undisturbed run",
     [](Observation& seen) { seen.results[0].observed.text += "!"; }},
    {"a byte of swap counted twice", "no byte of either pool was lost or counted twice",
     [](Observation& seen) {
       seen.brokers[0].samples[0].swap = {.capacity_bytes = 4, .free_bytes = 5};
     }},
    {"swap memory that is not free at the end", "all memory is free at the end",
     [](Observation& seen) {
       seen.last->swap = {.capacity_bytes = 4, .free_bytes = 3, .owned_bytes = 1};
     }},
    {"a token lost between B's leases", "B's text under two leases is that of the undisturbed run",
     [](Observation& seen) {
       auto& tokens = seen.results[1].observed.tokens;
       tokens.erase(tokens.begin() + 40);
     }},
    {"a token repeated between B's leases",
     "B's text under two leases is that of the undisturbed run",
     [](Observation& seen) {
       auto& tokens = seen.results[1].observed.tokens;
       tokens.insert(tokens.begin() + 40, 39);
     }},
    {"a token lost with the worker",
     "C's text goes on after its worker was killed, each position once",
     [](Observation& seen) {
       auto& tokens = seen.results[2].recovered.tokens;
       tokens.erase(tokens.begin() + 50);
     }},
    {"a text that ended with the worker",
     "A's text goes on after its worker was killed, each position once",
     [](Observation& seen) { seen.results[0].recovered.completed.reset(); }},
    {"a worker that was not killed",
     "D's text goes on after its worker was killed, each position once",
     [](Observation& seen) { seen.results[3].recovered.leases.pop_back(); }},
    {"a text that was not adopted", "the worker's successor adopted the memory of every text",
     [](Observation& seen) { --seen.adopted; }},
    {"streams that end before the revocation", "A's tokens are those of the undisturbed run",
     [](Observation& seen) {
       seen.results[0].undisturbed.tokens.resize(50);
       seen.results[0].observed.tokens.resize(50);
       seen.results[0].recovered.tokens.resize(50);
     }},
    {"a C that completed its request",
     "C was killed in the middle; its tokens until then are those of the undisturbed run",
     [](Observation& seen) {
       seen.results[2].observed = seen.results[2].undisturbed;
       seen.results[2].observed.leases = {kC};
     }},
    {"a survivor with two leases", "A has exactly one lease",
     [](Observation& seen) { seen.results[0].observed.leases.push_back({9, 9}); }},
    {"memory reused before it was quiet",
     "all four clocks of B's first lease are measured, t_reuse last",
     [](Observation& seen) { seen.leases[1].clocks.reuse_ns = 12; }},
    {"a missing refusal", "the worker refused a launch under B's first lease",
     [](Observation& seen) { seen.brokers[0].events.erase(seen.brokers[0].events.begin() + 2); }},
    {"a missing rebind", "the broker recorded the rebind from B's first lease to its second",
     [](Observation& seen) { seen.brokers[0].events.pop_back(); }},
    {"a refusal before the revocation", "the worker refused a launch under B's first lease",
     [](Observation& seen) { seen.brokers[0].events[2].at = {105}; }},
    {"memory scrubbed before the fence",
     "B's first lease was granted, revoked, fenced, scrubbed and freed in this order",
     [](Observation& seen) { seen.brokers[0].events[4].at = {125}; }},
    {"memory that is not zero",
     "the memory of B's first lease held data before, and is zero and free now",
     [](Observation& seen) { seen.extents[0].after.nonzero_bytes = 1; }},
    {"memory that is still allocated",
     "the memory of C's lease held data before, and is zero and free now",
     [](Observation& seen) { seen.extents[1].after.allocated_bytes = 4096; }},
    {"memory that is still held",
     "the memory of B's first lease held data before, and is zero and free now",
     [](Observation& seen) { seen.extents[0].still_held = true; }},
    {"memory that was never used",
     "the memory of B's first lease held data before, and is zero and free now",
     [](Observation& seen) { seen.extents[0].before.nonzero_bytes = 0; }},
    {"a byte lost from the pool in one sample", "no byte of either pool was lost or counted twice",
     [](Observation& seen) {
       seen.brokers[0].samples.push_back(
           {.capacity_bytes = 100, .free_bytes = 60, .owned_bytes = 39});
     }},
    {"no samples", "no byte of either pool was lost or counted twice",
     [](Observation& seen) { seen.brokers[0].samples.clear(); }},
    {"memory that is not free at the end", "all memory is free at the end",
     [](Observation& seen) { seen.last->free_bytes = 98; }},
};

const Flaw kAdapterFlaws[]{
    {"another token under the revoked adapter",
     "A's text under an adapter that is revoked is that of the undisturbed run",
     [](Observation& seen) { seen.results[0].adapted.tokens[77] += 1; }},
    {"a second lease of the adapter's tenant",
     "A's text under an adapter that is revoked is that of the undisturbed run",
     [](Observation& seen) { seen.results[0].adapted.leases.push_back({9, 9}); }},
    {"a neighbour under another adapter that was interrupted",
     "D's text under another adapter is that of the undisturbed run",
     [](Observation& seen) { seen.results[3].adapted.revocations = {{}}; }},
    {"another token of a neighbour without an adapter",
     "B's text beside adapters is that of the undisturbed run",
     [](Observation& seen) { seen.results[1].adapted.tokens[77] += 1; }},
    {"the adapter's memory that is not zero",
     "the memory of the adapter's first lease held data before, and is zero and free now",
     [](Observation& seen) { seen.extents.back().after.nonzero_bytes = 1; }},
    {"an adapter that was not loaded again", "the adapter was loaded again under a fresh lease",
     [](Observation& seen) { seen.adapter->second.reset(); }},
};

}  // namespace

TEST_CASE("demo judge: a run with adapters passes, and each flaw breaks its promise alone") {
  CHECK(broken_promises(perfect_adapters()) == std::vector<std::string>{});
  for (const Flaw& flaw : kAdapterFlaws) {
    CAPTURE(flaw.flaw);
    Observation seen = perfect_adapters();
    flaw.spoil(seen);
    CHECK(broken_promises(seen) == std::vector<std::string>{flaw.broken_promise});
  }
}

TEST_CASE("demo judge: a correct run passes every check") {
  for (const Check& check : judge(perfect())) {
    INFO(check.promise << ": " << check.seen);
    CHECK(check.ok);
  }
  CHECK(all_ok(judge(perfect())));
}

TEST_CASE("demo judge: a correct run on a device passes, and its flaws are found") {
  CHECK(broken(perfect_on_device()) == 0);
  Observation lent = perfect_on_device();
  lent.last =
      wire::StatusView{.capacity_bytes = 100, .free_bytes = 92, .owned_bytes = 4, .held_bytes = 4};
  CHECK(broken(lent) == 1);
  Observation never_fenced = perfect_on_device();
  std::erase_if(never_fenced.brokers[0].events, [](const events::StampedEvent& one) {
    const auto* changed = std::get_if<events::LeaseStateChanged>(&one.event);
    return changed != nullptr && changed->lease == kC && changed->state == LeaseState::Fenced;
  });
  CHECK(broken(never_fenced) == 1);
}

TEST_CASE("demo judge: a short run needs as many tokens as its scenario says") {
  Observation seen = perfect();
  seen.enough_tokens = 161;
  CHECK(broken(seen) == 3);  // A, B and D end before
}

TEST_CASE("demo judge: no checks do not count as passed") {
  CHECK_FALSE(all_ok({}));
}

TEST_CASE("demo judge: finds every single flaw, and names the broken promise alone") {
  for (const Flaw& flaw : kFlaws) {
    CAPTURE(flaw.flaw);
    Observation seen = perfect();
    flaw.spoil(seen);
    CHECK(broken_promises(seen) == std::vector<std::string>{flaw.broken_promise});
  }
}

TEST_CASE("demo judge: a text that ended before the kill says what to raise") {
  Observation seen = perfect();
  seen.results[3].recovered.leases.pop_back();
  const std::vector<Check> checks = judge(seen);
  const auto failed = std::ranges::find(checks, false, &Check::ok);
  REQUIRE(failed != checks.end());
  CHECK(failed->seen.contains("raise --slow-motion-us or --max-tokens"));
}

TEST_CASE("demo judge: a correct run of chats passes every check, also those of its answers") {
  CHECK(broken(perfect_chats()) == 0);
  CHECK(judge(perfect_chats()).size() == judge(perfect()).size() + 8);
}

TEST_CASE("demo judge: finds an answer that does not read like one") {
  using Spoil = void (*)(TenantResult&);
  const auto [flaw, spoil] = GENERATE(table<const char*, Spoil>({
      {"another end", [](TenantResult& chat) { chat.observed.completed = "StopSequence"; }},
      {"a missing word", [](TenantResult& chat) { chat.expects = "Paris"; }},
      {"a control token", [](TenantResult& chat) { chat.undisturbed.text += "<|im_end|>"; }},
      {"invalid UTF-8", [](TenantResult& chat) { chat.undisturbed.text += "\xEF\xBF\xBD"; }},
      {"a cut character", [](TenantResult& chat) { chat.undisturbed.text += "\xC3"; }},
      {"an empty answer", [](TenantResult& chat) { chat.undisturbed.text.clear(); }},
  }));
  CAPTURE(flaw);
  Observation seen = perfect_chats();
  TenantResult& chat = seen.results[0];
  spoil(chat);
  if (chat.undisturbed.text.empty()) chat.expects.clear();
  chat.observed.text = chat.recovered.text = chat.undisturbed.text;
  CHECK(broken(seen) == 1);
}

TEST_CASE("demo judge: finds a lease without proof, or with a wrong state or reason") {
  for (std::size_t i = 0; i < 5; ++i) {
    auto no_proof = perfect();
    no_proof.leases[i].proof.clear();
    CHECK(broken(no_proof) == 1);
    auto not_fenced = perfect();
    not_fenced.leases[i].state = LeaseState::Revoked;
    CHECK(broken(not_fenced) == 1);
    auto other_reason = perfect();
    other_reason.leases[i].reason = RevokeReason::TtlExpired;
    CHECK(broken(other_reason) == 1);
  }
}

TEST_CASE("demo judge: finds a clock without a value") {
  for (auto clock : {&wire::RevokeClocks::refuse_ns, &wire::RevokeClocks::error_ns,
                     &wire::RevokeClocks::quiet_ns, &wire::RevokeClocks::reuse_ns}) {
    auto seen = perfect();
    seen.leases[1].clocks.*clock = -1;
    CHECK(broken(seen) == 1);
  }
}

TEST_CASE("demo judge: a killed tenant needs no t_error") {
  auto seen = perfect();
  seen.leases[2].clocks.error_ns = -1;
  seen.leases[2].clocks.refuse_ns = -1;
  CHECK(broken(seen) == 0);
}
