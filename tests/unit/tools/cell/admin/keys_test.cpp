// `brokerctl cell keys`, against a modelled etcd.
#include <utility>

#include "tests/unit/tools/cell/admin/modelled_cell.hpp"
#include "tools/cell/admin/show.hpp"
#include "tools/cell/decide/revoked_key.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("cell admin: a key has name, expiry and limits, which an update changes on every host") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a");
  cell.set_parts({a});
  cell.on_wait = [&] {
    CHECK(cell.value(cell.keys.mail({"a"}, kAnn)) != "");
    cell.set_parts({a});
  };
  const KeyChange limited{.name = "batch",
                          .expires_unix_ms = 2'000'000,
                          .limits = {.max_concurrent = 3, .rates = {.tokens_per_minute = 500}}};
  const auto updated = update_key(cell.calls, key, limited, Wait(seconds(60)));
  REQUIRE(updated);
  CHECK(why_of(*updated, 0) == "applied");
  CHECK(cell.waits == 1);
  CHECK(cell.read(key).name == "batch");
  CHECK(cell.read(key).created_unix_ms == 1'000'000);
  CHECK(cell.read(key).expires_unix_ms == 2'000'000);
  CHECK(cell.read(key).limits == limited.limits);

  const KeyChange lifted{.never_expires = true, .removes = {"max_concurrent"}};
  REQUIRE(update_key(cell.calls, key, lifted, {}));
  CHECK(cell.read(key).name == "batch");
  CHECK(!cell.read(key).expires_unix_ms);
  CHECK(!cell.read(key).limits.max_concurrent);
  CHECK(cell.read(key).limits.rates.tokens_per_minute == 500u);
}

TEST_CASE("cell admin: keys are listed with their expiry and limits, all or those of a tenant") {
  Cell cell;
  (void)cell.create_key();
  REQUIRE(admit_tenant(cell.calls, {"bob"}, {}, {}));
  const KeyChange values{.expires_unix_ms = 1'500'000, .limits = {.max_concurrent = 1}};
  REQUIRE(create_key(cell.calls, {"bob"}, values, "lh-" + std::string(64, '1')));
  CHECK(show_keys(cell.calls)->table.rows.size() == 2);
  cell.calls.unix_ms = 1'500'000;
  const Answer bobs = show_keys(cell.calls, TenantId{"bob"}).value();
  REQUIRE(bobs.table.rows.size() == 1);
  const nlohmann::json item = bobs.document.at("items").at(0);
  CHECK(item.at("expired") == true);
  CHECK(item.at("max_concurrent") == 1);
  CHECK(item.at("created_unix_ms") == 1'000'000);
  CHECK(show_keys(cell.calls, TenantId{"eve"}).error().code == Errc::UnknownTenant);
}

TEST_CASE(
    "cell admin: a key with an expiry that has passed or limits above its tenant's is not made") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const CellKey before = cell.read(key);
  const std::pair<KeyChange, const char*> wrong[] = {
      {{.expires_unix_ms = 1'000'000}, "has passed"},
      {{.limits = {.max_concurrent = 5}}, "max_concurrent is 5, but the tenant has 4"}};
  for (const auto& [change, why] : wrong) {
    for (const auto& answer :
         {cell.create_key_with(change), update_key(cell.calls, key, change, {})}) {
      REQUIRE(!answer);
      CHECK(answer.error().code == Errc::BadRequest);
      CHECK_THAT(answer.error().detail, Contains(why));
    }
  }
  CHECK(cell.read(key) == before);
}

TEST_CASE("cell admin: a revocation whose reply is lost ends as if it had arrived") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a");
  cell.set_parts({a});
  cell.on_wait = [&] { cell.set_parts({a}); };
  const auto commit = cell.calls.commit;
  bool is_lost = false;
  cell.calls.commit = [&](const etcd::Transaction& transaction) -> Result<etcd::TransactionReply> {
    const auto reply = commit(transaction);
    if (transaction.conditions.empty() || std::exchange(is_lost, true)) return reply;
    return fail(Errc::ConnectionLost, "the connection has ended");
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(60)));
  REQUIRE(is_lost);
  REQUIRE(revoked);
  CHECK(why_of(*revoked, 0) == "applied");
  CHECK(cell.value(cell.keys.key(key)).empty());
}

TEST_CASE("cell admin: a revocation that was interrupted is repeated with the same result") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a"), b = cell.join("b");
  cell.set_parts({a, b});
  cell.calls.wait = [](Duration) { return false; };  // the user interrupts
  REQUIRE(!revoke_key(cell.calls, key, Wait(seconds(60))));
  REQUIRE(cell.value(cell.keys.key(key)).empty());
  const etcd::Revision revoked = cell.etcd.revision();

  cell.calls.wait = [&](Duration time) {
    cell.clock.advance(time);
    cell.set_parts({a});
    return ++cell.waits < 10;
  };
  for (int round = 0; round < 2; ++round) {
    const auto again = revoke_key(cell.calls, key, Wait(seconds(60)));
    REQUIRE(again);
    CHECK(again->document.at("key") == key.value);
    REQUIRE(again->table.rows.size() == 2);
    CHECK(why_of(*again, 0) == "applied");
    CHECK(why_of(*again, 1) == "returned its part");
  }
  CHECK(cell.waits == 1);
  CHECK(cell.etcd.read(etcd::KeyRange::one(cell.keys.tenant(kAnn))).front().modified == revoked);
}

TEST_CASE("cell admin: records of revoked keys are deleted after days, by later revocations") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const ApiKeyId old{key.value.substr(0, 2) + "00000000000000"};
  const ApiKeyId young{key.value.substr(0, 2) + "00000000000001"};
  cell.calls.unix_ms = milliseconds(std::chrono::days(8)).count();
  cell.put(cell.keys.revoked(old), text_of(RevokedKey{.tenant = kAnn, .revoked_unix_ms = 1}));
  cell.put(cell.keys.revoked(young),
           text_of(RevokedKey{.tenant = kAnn, .revoked_unix_ms = cell.calls.unix_ms - 1}));
  REQUIRE(revoke_key(cell.calls, key, {}));
  CHECK(cell.value(cell.keys.revoked(old)).empty());
  CHECK(!cell.value(cell.keys.revoked(young)).empty());
}
