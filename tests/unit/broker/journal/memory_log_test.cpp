// Audit records about leased memory in the journal: the chain of each tenant, the tree, the signed
// head and its keys, and what a full disk leaves.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/hex.hpp"
#include "ipc/control/tokens/audit_statement.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;
using testing::FileSizeLimit;
using wire::ErasureState;
using wire::MemoryFate;

namespace {

LeaseGrantedRow granted(std::uint32_t slot, const std::string& tenant = "a",
                        std::uint32_t extents = 2) {
  wire::LeaseGrantedRecord record{.lease = {slot, 3}, .tenant = tenant, .worker = "w1"};
  record.opens = true;
  record.granted.push_back({.extents = extents, .bytes = extents * 4096ull});
  return {.record = record, .at_boottime_ns = 5};
}

LeaseErasedRow erased(std::uint32_t slot, const std::string& tenant = "a",
                      std::uint32_t extents = 2) {
  wire::LeaseErasedRecord record{.lease = {slot, 3}, .tenant = tenant};
  record.scope = wire::LeaseScope::Tenant;
  record.reason = "operator";
  record.proof = "LaunchQuiet";
  record.settled.push_back({.extents = extents, .bytes = extents * 4096ull});
  record.state = ErasureState::Erased;
  return {.record = record, .revoked_boottime_ns = 7, .fenced_boottime_ns = 8};
}

std::vector<wire::Json> records(Journal& journal) {
  std::vector<wire::Json> all;
  const wire::AuditPage page = journal.audit_page({}).value();
  for (const wire::AuditRecordView& each : page.records)
    all.push_back(wire::Json::parse(each.content));
  return all;
}

wire::AuditHead head(Journal& journal, const std::optional<std::string>& tenant = std::nullopt) {
  const auto envelope = signed_head(journal, {.tenant = tenant}).value();
  return audit::parse_head(audit::payload_of(envelope).value()).value();
}

/// The root over all records of the chain. Precondition: none was removed.
std::string root_of(Journal& journal) {
  audit::MerkleFrontier tree;
  const wire::AuditPage page = journal.audit_page({}).value();
  for (const wire::AuditRecordView& each : page.records)
    tree.append(audit::leaf_of(audit::hash_from_hex(each.hash).value()));
  return to_hex(tree.root());
}

audit::KeyLinks keys(Journal& journal) {
  return audit::KeyLinks::check(journal.audit_keys().value().keys).value();
}

}  // namespace

TEST_CASE("memory log: a grant and an erasure are records with times since 1970") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {granted(4), erased(4)}}).value();

  const auto all = records(*journal);

  REQUIRE(all.size() == 2);
  CHECK(all[0]["record"] == "lease_granted");
  CHECK(all[1]["record"] == "lease_erased");
  CHECK(all[1]["proof"] == "LaunchQuiet");
  CHECK(all[1]["fenced_unix_ms"] > 1'700'000'000'000);
  const auto read = wire::LeaseErasedRecord::from_json(all[1]).value();
  CHECK(read.settled.at(0).to == MemoryFate::VerifiedZero);
  CHECK(read.state == ErasureState::Erased);
}

TEST_CASE("memory log: each tenant's records form a chain, also over restarts and retention") {
  const StateDir dir;
  opened(dir)->write({.rows = {granted(1, "a"), granted(2, "b"), granted(3, "")}}).value();
  const auto journal = opened(dir, {.records = 3});
  journal->write({.rows = {erased(1, "a"), erased(2, "b"), erased(3, "")}}).value();

  const auto page = journal->audit_page({}).value();

  REQUIRE(page.records.size() == 3);  // the first three were removed
  const auto erased_a = wire::Json::parse(page.records[0].content);
  CHECK(erased_a["tenant_record"] == 2);
  CHECK(erased_a["tenant_previous"] != std::string(64, '0'));
  CHECK(erased_a["tenant_previous_unix_ms"] > 1'700'000'000'000);
  const wire::AuditHead shared = head(*journal, "");
  CHECK(shared.tenant->records == 2);
  CHECK(shared.tenant->hash == page.records[2].hash);
  CHECK(shared.size == 6);
  CHECK(shared.removed_size == 3);
  CHECK(audit::MerkleFrontier::from_text(page.removed_tree)->size() == 3);
  CHECK(signed_head(*journal, {.tenant = "never"}).error().code == Errc::UnknownTenant);
}

TEST_CASE("memory log: the head counts the tenant's leases by what became of them") {
  const StateDir dir;
  LeaseErasedRow kept = erased(2);
  kept.record.state = ErasureState::Held;
  kept.record.settled[0].to = MemoryFate::Held;
  opened(dir)->write({.rows = {granted(1), granted(2), granted(3), erased(1), kept}}).value();
  const auto journal = opened(dir);
  wire::LeaseCounts leases = head(*journal, "a").tenant->leases;
  CHECK(leases.granted == 3);
  CHECK(leases.open == 1);
  CHECK(leases.held == 1);
  CHECK(leases.erased == 1);
  LeaseErasedRow late = erased(2);
  late.before = ErasureState::Held;
  journal->write({.rows = {late}}).value();
  leases = head(*journal, "a").tenant->leases;
  CHECK(leases.held == 0);
  CHECK(leases.erased == 2);
}

TEST_CASE("memory log: the state of the chain counts the leases of all tenants, also at a start") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {granted(1, "a"), granted(2, "b"), granted(3, "")}}).value();
  journal->write({.rows = {erased(1, "a"), erased(3, "")}}).value();
  for (const auto& each : {journal->audit_state(), opened(dir)->audit_state()}) {
    REQUIRE(each);
    CHECK(each->leases.granted == 3);
    CHECK(each->leases.open == 1);
    CHECK(each->leases.erased == 2);
    CHECK(each->gaps == 0);
    CHECK_FALSE(each->key_is_unlinked);
  }
  CHECK_FALSE(NullJournal().audit_state());
}

TEST_CASE("memory log: a transaction that fails changes no tenant's chain and not the tree") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {granted(1)}}).value();
  const std::string root = head(*journal).root;
  {
    const FileSizeLimit limit(std::filesystem::file_size(dir.file("journal.db-wal")));
    REQUIRE_FALSE(journal->write({.rows = {erased(1)}}));
    CHECK(head(*journal).root == root);
    CHECK(head(*journal, "a").tenant->records == 1);
    CHECK(head(*journal).waiting == 1);
  }
  journal->write({.rows = {granted(2)}}).value();
  CHECK(head(*journal, "a").tenant->records == 3);
  CHECK(head(*journal).root == root_of(*journal));
}

TEST_CASE("memory log: the root is that of all records, also after restarts") {
  const StateDir dir;
  for (std::uint32_t round = 0; round < 3; ++round) {
    const auto journal = opened(dir);
    for (std::uint32_t slot = 0; slot < 10; ++slot)
      journal->write({.rows = {granted(100 * round + slot)}}).value();
    CHECK(head(*journal).root == root_of(*journal));
    CHECK(head(*journal).size == 10 * (round + 1));
  }
}

TEST_CASE("memory log: a start computes the same tree from a stored one") {
  const StateDir dir;
  std::string root;
  {
    const auto journal = opened(dir);
    Batch batch;
    for (std::uint32_t slot = 0; slot < 1500; ++slot) batch.rows.emplace_back(granted(slot));
    journal->write(batch).value();
    journal->write({.rows = {granted(2000)}}).value();
    root = head(*journal).root;
  }
  CHECK(head(*opened(dir)).root == root);
  const auto short_log = opened(dir, {.records = 1});  // removes what the stored tree needed
  for (std::uint32_t slot = 3000; slot < 3040; ++slot)
    short_log->write({.rows = {granted(slot)}}).value();
  CHECK(head(*opened(dir)).root == head(*short_log).root);
  CHECK(head(*opened(dir)).size == 1541);
}

TEST_CASE("memory log: records of refused grants are dropped, and a gap is recorded") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {worker_row(1), lease_row(1), granted(1)}, .has_grants = true}).value();
  {
    const FileSizeLimit limit(std::filesystem::file_size(dir.file("journal.db-wal")));
    for (std::uint32_t slot = 2; slot < 50; ++slot) {
      REQUIRE_FALSE(journal->write({.rows = {lease_row(slot), granted(slot)}, .has_grants = true}));
      REQUIRE_FALSE(journal->write({.rows = {LeaseGone{{slot, 3}}, erased(slot)}}));
    }
    CHECK(journal->waiting() == 0);
    REQUIRE_FALSE(journal->write({.rows = {LeaseGone{{1, 3}}, erased(1)}}));
  }
  journal->write({.rows = {granted(60)}}).value();

  const auto all = records(*journal);

  REQUIRE(all.size() == 4);
  CHECK(all[1]["record"] == "audit_gap");
  CHECK(all[1]["grants"] == 48);
  CHECK(all[1]["erasures"] == 49);
  CHECK(all[1]["since_unix_ms"] > 1'700'000'000'000);
  CHECK(all[1]["until_unix_ms"] >= all[1]["since_unix_ms"]);
  CHECK(all[2]["record"] == "lease_erased");
  CHECK(all[2]["lease"] == "1.3");
  CHECK(all[3]["lease"] == "60.3");
  CHECK(head(*journal).gaps == 1);
  CHECK(head(*opened(dir)).gaps == 1);
  journal->write({.rows = {granted(61)}}).value();
  CHECK(head(*journal).gaps == 1);
}

TEST_CASE("memory log: refused growths of a lease leave one granted and one erased row") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {worker_row(1), lease_row(1), granted(1)}, .has_grants = true}).value();
  {
    const FileSizeLimit limit(std::filesystem::file_size(dir.file("journal.db-wal")));
    LeaseGrantedRow grown = granted(1, "a", 1);
    grown.record.opens = false;
    LeaseErasedRow shrunk = erased(1, "a", 1);
    shrunk.record.state = ErasureState::Open;
    for (int i = 0; i < 20; ++i) {
      REQUIRE_FALSE(journal->write({.rows = {grown}, .has_grants = true}));
      REQUIRE_FALSE(journal->write({.rows = {shrunk}}));
    }
    CHECK(journal->waiting() == 2);
  }
  journal->write({.rows = {}}).value();
  const auto all = records(*journal);
  REQUIRE(all.size() == 4);
  CHECK(all[2]["granted"][0]["extents"] == 20);
  CHECK(all[3]["settled"][0]["extents"] == 20);
}

TEST_CASE("memory log: the head is signed by a key that only the broker's user can read") {
  const StateDir dir;
  const auto journal = opened(dir);
  struct stat status{};
  REQUIRE(::stat(dir.file("audit-key").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto chain = keys(*journal);
  REQUIRE(chain.keys().size() == 1);
  const auto envelope = signed_head(*journal).value();
  CHECK(audit::is_signed_by(envelope, chain.keys()[0].key));
  CHECK(head(*journal).log == chain.log());
  CHECK(records(*journal).empty());  // the first key needs no record
  CHECK(keys(*opened(dir)).log() == chain.log());
}

TEST_CASE("memory log: a rotated key is signed by the one before, and recorded once") {
  const StateDir dir;
  const auto journal = opened(dir);
  const audit::PublicKey first = keys(*journal).keys()[0].key;
  const auto rotated = journal->rotate_audit_key({.key = first.id()}).value();
  CHECK(journal->rotate_audit_key({.key = first.id()}).value().to_json() == rotated.to_json());

  const auto chain = keys(*opened(dir));

  REQUIRE(chain.keys().size() == 2);
  CHECK(chain.keys()[1].is_linked);
  CHECK(chain.leads(first, chain.keys()[1].key));
  CHECK(audit::is_signed_by(signed_head(*journal).value(), chain.keys()[1].key));
  CHECK(head(*journal).log == first.id());
  const auto all = records(*opened(dir));
  REQUIRE(all.size() == 1);
  CHECK(all[0]["record"] == "audit_key");
  CHECK(all[0]["previous_key"] == first.id());
  CHECK(all[0]["key"] == chain.keys()[1].key.text());
}

TEST_CASE("memory log: after the loss of the key another signs, which no other vouches for") {
  const StateDir dir;
  const audit::PublicKey first = keys(*opened(dir)).keys()[0].key;
  std::filesystem::remove(dir.file("audit-key"));

  const auto chain = keys(*opened(dir));

  REQUIRE(chain.keys().size() == 2);
  CHECK_FALSE(chain.keys()[1].is_linked);
  CHECK_FALSE(chain.leads(first, chain.keys()[1].key));
  CHECK(chain.log() == first.id());
  CHECK(records(*opened(dir)).size() == 1);
  const auto journal = opened(dir);
  CHECK(journal->audit_state()->key_is_unlinked);
  (void)journal->rotate_audit_key({.key = journal->signer().key_id()}).value();
  CHECK_FALSE(journal->audit_state()->key_is_unlinked);
}

TEST_CASE("memory log: a head is signed when its records survive a power cut") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {granted(1)}}).value();
  REQUIRE(eventually([&] { return journal->log_syncs() == 1; }));  // for the file audit_head
  (void)signed_head(*journal).value();
  CHECK(journal->log_syncs() == 2);
}

TEST_CASE("memory log: a clock that is set back does not lower the time of a tenant's records") {
  const StateDir dir;
  (void)opened(dir);
  Database database = Database::open(dir.file("journal.db")).value();
  TenantChains chains = TenantChains::create(database).value();
  chains.append("a", {.hash = std::string(64, 'a'), .unix_ms = 200});
  chains.append("a", {.hash = std::string(64, 'b'), .unix_ms = 100});
  CHECK(chains.next_place("a").tenant_previous_unix_ms == 200);
}

TEST_CASE("memory log: a key is rotated at most until all keys fill the file") {
  const StateDir dir;
  (void)opened(dir);
  wire::AuditKeys all;
  audit::SigningKey key = audit::SigningKey::create();
  all.keys.push_back(audit::introduce(key, nullptr, 1));
  while (all.keys.size() < 1000) {
    const audit::SigningKey next = audit::SigningKey::create();
    all.keys.push_back(audit::introduce(next, &key, 1));
    key = next;
  }
  wire::Json file = all.to_json();
  file["secret"] = key.secret_text();
  std::ofstream(dir.file("audit-key")) << file.dump() << "\n";

  const auto journal = opened(dir);

  const auto refused = journal->rotate_audit_key({.key = key.public_key().id()});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK(audit::is_signed_by(signed_head(*journal).value(), key.public_key()));
  CHECK(head(*journal).log == keys(*journal).log());
}

TEST_CASE("memory log: a key file that is older than the journal stops the start") {
  const StateDir dir;
  const auto first = keys(*opened(dir)).keys()[0].key;
  const std::string old_file = file_bytes(dir.file("audit-key"));
  (void)opened(dir)->rotate_audit_key({.key = first.id()}).value();
  std::ofstream(dir.file("audit-key")) << old_file;
  const auto refused = SqliteJournal::open(dir.path());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::FileCorrupt);
  CHECK(refused.error().detail.contains("lacks keys that the journal names"));
}

TEST_CASE("memory log: a key file that others may read, or that is damaged, stops the start") {
  const StateDir dir;
  (void)opened(dir);
  SECTION("readable") {
    ::chmod(dir.file("audit-key").c_str(), 0640);
    const auto refused = SqliteJournal::open(dir.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::PermissionDenied);
    CHECK(refused.error().detail.contains("set mode 0600"));
  }
  SECTION("damaged") {
    const char* text = GENERATE("", "{}", R"({"keys":[],"secret":"ed25519-secret:AA=="})");
    std::ofstream(dir.file("audit-key")) << text;
    const auto refused = SqliteJournal::open(dir.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::FileCorrupt);
  }
}

TEST_CASE("memory log: without a state directory there is no head and no key") {
  NullJournal journal;
  CHECK(signed_head(journal).error().code == Errc::BadRequest);
  CHECK(journal.audit_keys().error().detail.contains("--state-dir"));
  CHECK(journal.rotate_audit_key({}).error().code == Errc::BadRequest);
}
