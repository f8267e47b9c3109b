/// Several processes die in one recovery, in each order. Every text is the undisturbed one; a
/// tenant's record takes the next position only, so each arrived once.
#include <signal.h>

#include <catch2/catch.hpp>

#include "common/process.hpp"
#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kReadBefore = 40;

TenantSpec resumable() {
  TenantSpec spec = kEndless;
  spec.max_tokens = 240;
  spec.rebind = true;
  spec.more = {"--resumable", "--request-id", "story"};
  return spec;
}

const std::vector<std::int32_t>& undisturbed() {
  static const std::vector<std::int32_t> text = System::alone(resumable());
  return text;
}

void kill_worker(System& system) {
  REQUIRE(system.worker().signal(SIGKILL));
  REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));
}

void start_successor(System& system, const std::string& fault = {}) {
  system.remove_worker("w1");
  system.start_worker("w1", fault);
}

void check_text(Tenant& tenant) {
  const int code = tenant.finish();
  INFO(tenant.record().failed.value_or("it did not fail"));
  CHECK(code == 0);
  CHECK((tenant.record().tokens == undisturbed()));
}

}  // namespace

TEST_CASE("deaths: broker and worker killed together cost no text a token") {
  const bool has_store = GENERATE(true, false);
  CAPTURE(has_store);
  Restartable fixture;
  const auto tenant = fixture.system.start_streaming(resumable(), kReadBefore);

  fixture.restart_broker([&] {
    kill_worker(fixture.system);
    if (!has_store) fixture.store.drop_all();
  });
  start_successor(fixture.system);

  check_text(*tenant);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("deaths: a broker killed between a worker's death and its successor costs no token") {
  Restartable fixture;
  const auto tenant = fixture.system.start_streaming(resumable(), kReadBefore);

  kill_worker(fixture.system);
  REQUIRE(eventually([&] { return fixture.system.status().retained_bytes > 0; }));
  fixture.restart_broker();
  start_successor(fixture.system);

  check_text(*tenant);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("deaths: a broker killed while a worker adopts memory costs no token") {
  Restartable fixture;
  const auto tenant = fixture.system.start_streaming(resumable(), kReadBefore);

  kill_worker(fixture.system);
  start_successor(fixture.system, "worker.extents.mapped:stop");
  REQUIRE(eventually([&] { return is_stopped(fixture.system.worker().pid()); }));
  fixture.restart_broker();
  REQUIRE(fixture.system.worker().signal(SIGCONT));

  check_text(*tenant);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("deaths: broker and adopting worker killed together cost no token") {
  Restartable fixture;
  const auto tenant = fixture.system.start_streaming(resumable(), kReadBefore);

  kill_worker(fixture.system);
  start_successor(fixture.system, "worker.extents.mapped:kill");
  REQUIRE(eventually([&] { return has_exited(fixture.system.worker().pidfd()); }));
  fixture.restart_broker();
  start_successor(fixture.system);

  check_text(*tenant);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("deaths: a tenant killed while it resumes leaves the text to the next one") {
  Restartable fixture;
  const auto first = fixture.system.start_streaming(resumable(), kReadBefore);
  REQUIRE(first->child().signal(SIGKILL));
  TenantSpec dying = resumable();
  dying.fault = "tenant.request.submitted:kill";

  const auto second = fixture.system.start_tenant(dying);
  CHECK(second->finish() == 128 + SIGKILL);
  CHECK(second->record().tokens.empty());
  const auto third = fixture.system.start_tenant(resumable());

  check_text(*third);
  CHECK(fixture.system.pool_is_fully_free());
}

TEST_CASE("deaths: a tenant and its worker killed together leave the text to the next tenant") {
  Restartable fixture;
  const auto first = fixture.system.start_streaming(resumable(), kReadBefore);
  REQUIRE(first->child().signal(SIGKILL));
  kill_worker(fixture.system);
  start_successor(fixture.system);

  const auto second = fixture.system.start_tenant(resumable());

  check_text(*second);
  CHECK(fixture.system.pool_is_fully_free());
}

}  // namespace leasehold::testing
