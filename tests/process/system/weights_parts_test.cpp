/// Weights, whole and in parts: what is revoked from a running worker returns alone.
#include <catch2/catch.hpp>
#include <fstream>

#include "common/machine/process.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

SystemSpec scoped(const std::string& scope) {
  return {.worker_arguments = {"--slow-motion-us", "30", "--weights-scope", scope}};
}

/// Weights read from a file and engine leases granted since the start of the broker.
struct Counts {
  int loads = 0;
  int leases = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& to, const Counts& counts) {
  return to << counts.loads << " loads, " << counts.leases << " engine leases";
}

Counts counts(System& system) {
  Counts counted;
  for (const auto& region : system.recorded<events::RegionStateChanged>())
    counted.loads += region.kind == "weights" && region.state == "Loading" ? 1 : 0;
  for (const auto& lease : system.recorded<events::LeaseStateChanged>())
    counted.leases += lease.tenant.empty() && lease.state == LeaseState::Live ? 1 : 0;
  return counted;
}

std::vector<wire::LeaseView> live(std::vector<wire::LeaseView> leases) {
  std::erase_if(leases, [](const auto& lease) { return lease.state != LeaseState::Live; });
  return leases;
}

LeaseId lease_of_part(System& system, const std::string& part) {
  for (const wire::LeaseView& lease : live(system.engine_leases())) {
    if (lease.part == part) return lease.lease;
  }
  FAIL("no live engine lease covers " << part);
  return {};
}

void copy_model(const std::string& to) {
  fs::copy_file(bundled_model_path(), to + ".new", fs::copy_options::overwrite_existing);
  fs::rename(to + ".new", to);  // replaces the file, as an operator would
}

/// A copy of the model with one tensor renamed.
void write_model_without(const std::string& tensor, const std::string& to) {
  std::string bytes = file_bytes(bundled_model_path());
  const std::size_t at = bytes.find(tensor);
  REQUIRE(at != std::string::npos);
  bytes[at + tensor.size() - 1] = '_';
  std::ofstream(to + ".new", std::ios::binary) << bytes;
  fs::rename(to + ".new", to);
}

/// Starts brokerctl while the worker is stopped; the worker resumes once the lease is revoked.
Child start_revoking(System& system, LeaseId lease, std::vector<std::string> arguments) {
  std::optional<Child> revoking;
  system.while_worker_stopped([&] {
    revoking.emplace(system.start_brokerctl(std::move(arguments)));
    REQUIRE(eventually([&] { return system.lease(lease).state != LeaseState::Live; }));
  });
  return *std::move(revoking);
}

/// Revokes the lease of `part`, by id or by name, while two tenants decode; both texts must stay
/// the same.
void revoke_part(System& system, const std::string& part, bool by_name) {
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  const TenantSpec ann_spec{.tenant = "ann", .prompt = "Once upon a time", .max_tokens = 100};
  const TenantSpec bob_spec{.tenant = "bob", .prompt = "The little fox", .max_tokens = 100};
  const auto ann_alone = system.undisturbed(ann_spec);
  const auto bob_alone = system.undisturbed(bob_spec);
  const auto ann = system.start_tenant(ann_spec);
  const auto bob = system.start_tenant(bob_spec);
  REQUIRE(ann->read_tokens(20));
  REQUIRE(bob->read_tokens(20));
  const LeaseId lease = lease_of_part(system, part);
  const auto before = live(system.engine_leases());
  const Counts counted = counts(system);

  std::vector<std::string> revoke{"revoke", to_string(lease)};
  if (by_name) revoke = {"revoke", "--part", part, "--worker", "w1", "--wait"};
  Child revoking = start_revoking(system, lease, revoke);

  REQUIRE(system.eventually_fenced(lease));
  CHECK(exit_status_of(revoking) == 0);
  CHECK(system.brokerctl({"revoke", "--part", part + ".x"}) == exit_code(Errc::UnknownLease));
  check_whole(*ann, ann_alone);
  check_whole(*bob, bob_alone);
  // No weights are read again, and only one lease is new.
  CHECK(counts(system) == Counts{counted.loads, counted.leases + 1});
  CHECK(live(system.engine_leases()).size() == before.size());
  CHECK(lease_of_part(system, part) != lease);
  for (const wire::LeaseView& view : before) {
    if (view.part != part) CHECK(system.lease(view.lease).state == LeaseState::Live);
  }
  CHECK_FALSE(has_exited(system.worker().pidfd()));
}

}  // namespace

TEST_CASE("weights revoked mid-decode return under a new lease; every text is unchanged") {
  System system;
  const auto engine = system.engine_leases();
  REQUIRE(engine.size() == 1);
  revoke_part(system, engine.front().part, false);
  CHECK(system.engine_leases().size() == 2);
}

TEST_CASE("one tensor revoked mid-decode returns alone; every text is unchanged") {
  System system(scoped("tensor"));
  revoke_part(system, "blk.1.ffn_up.weight", false);
}

TEST_CASE("one layer revoked mid-decode returns alone; every text is unchanged") {
  System system(scoped("layer"));
  revoke_part(system, "blk.1", true);
}

TEST_CASE("a second worker shares the published weights") {
  System system;
  system.start_ready_worker("w2");
  CHECK(system.engine_leases().size() == 2);
  CHECK(counts(system) == Counts{.loads = 1, .leases = 2});
}

TEST_CASE("a second worker shares the weights part by part") {
  System system(scoped("tensor"));
  const Counts one = counts(system);
  REQUIRE(one.loads > 10);
  CHECK(one.leases == one.loads);
  system.start_ready_worker("w2");
  CHECK(counts(system) == Counts{one.loads, 2 * one.leases});
}

TEST_CASE("two workers that load one model at the same time load each part once") {
  SystemSpec spec = scoped("tensor");
  spec.start_worker = false;
  System system(spec);
  system.start_worker("w1");
  system.start_worker("w2");
  for (const char* worker : {"w1", "w2"}) {
    REQUIRE(eventually([&] { return system.worker_is_ready(worker); }));
  }
  const Counts both = counts(system);
  CHECK(both.leases == 2 * both.loads);
}

TEST_CASE("a part is read again from the model's path, if the file has the same content") {
  const std::string part = "blk.0.attn_q.weight";
  SystemSpec spec = scoped("tensor");
  spec.model_name = "model.gguf";
  System system(spec);
  const std::string model = system.directory() / spec.model_name;
  system.admit("ann");
  const TenantSpec ann_spec{.tenant = "ann", .prompt = "Once upon a time", .max_tokens = 100};
  const auto alone = system.undisturbed(ann_spec);
  const auto ann = system.start_streaming(ann_spec, 20);
  const Counts counted = counts(system);

  SECTION("the same weights in another file: one part is read, and the text goes on") {
    copy_model(model);
    system.revoke_mid_request(lease_of_part(system, part));
    check_whole(*ann, alone);
    CHECK(counts(system) == Counts{counted.loads + 1, counted.leases + 1});
  }
  SECTION("a file without that tensor: the request ends and says so, until there is one with it") {
    write_model_without(part, model);
    system.revoke_mid_request(lease_of_part(system, part));
    CHECK(ann->finish() != 0);
    CHECK((ann->record().tokens.size() < alone.size()));
    REQUIRE(ann->record().failed.has_value());
    CHECK_THAT(*ann->record().failed,
               Contains("MissingWeight") && Contains(part) && Contains("engine scope"));
    CHECK_FALSE(has_exited(system.worker().pidfd()));
    CHECK(counts(system) == counted);

    copy_model(model);
    // The worker tries again at an interval, and gets no request until the part is there.
    REQUIRE(eventually([&] { return system.start_tenant(ann_spec)->finish() == 0; }));
    CHECK((system.undisturbed(ann_spec) == alone));
    CHECK(counts(system) == Counts{counted.loads + 1, counted.leases + 1});
  }
}

}  // namespace leasehold::testing
