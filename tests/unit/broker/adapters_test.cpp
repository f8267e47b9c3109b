#include <catch2/catch.hpp>

#include "broker/server/views/adapter_views.hpp"
#include "broker/server/views/tenant_views.hpp"
#include "broker/server/views/views.hpp"
#include "tests/unit/broker/adapter_world.hpp"

using namespace leasehold;

TEST_CASE("adapters: each add of a name makes a new version, also after a removal") {
  AdapterWorld world;
  CHECK(world.add("support") == 1);
  CHECK(world.add("support") == 2);
  (void)world.answer<wire::Empty>(world.remove("support"));
  CHECK(world.refusal(world.remove("support")) == Errc::UnknownAdapter);
  CHECK(world.add("support", "b") == 3);
}

TEST_CASE("adapters: a name belongs to one owner until it is removed") {
  AdapterWorld world;
  world.add("support", "a");
  const wire::AdapterAdd foreign{.adapter = {"support"}, .file = "x.gguf", .tenant = TenantId{"b"}};
  CHECK(world.refusal(world.call(kOperator, foreign)) == Errc::BadRequest);
  const wire::AdapterAdd shared{.adapter = {"support"}, .file = "x.gguf", .shared = true};
  CHECK(world.refusal(world.call(kOperator, shared)) == Errc::BadRequest);
  const wire::AdapterAdd unowned{.adapter = {"x"}, .file = "x.gguf", .tenant = TenantId{"c"}};
  CHECK(world.refusal(world.call(kOperator, unowned)) == Errc::UnknownTenant);
}

TEST_CASE("adapters: an adapter has no name under which a worker serves a model") {
  AdapterWorld world;
  Worker& worker = *world.state.workers.find(world.worker);
  worker.model = "stories";
  worker.aliases = {"tales"};
  for (const char* name : {"stories", "tales"}) {
    const wire::AdapterAdd add{.adapter = {name}, .file = "x.gguf", .shared = true};
    CHECK(world.refusal(world.call(kOperator, add)) == Errc::BadRequest);
  }
  CHECK(world.add("story") == 1);
}

TEST_CASE("adapters: a worker that would serve its model under an adapter's name is refused") {
  AdapterWorld world;
  world.add("story");
  world.add("gone");
  world.remove("gone");
  constexpr ConnectionId kLater{70};
  world.call(kLater, wire::WorkerAttach{.worker = "w1"});
  wire::WorkerReady ready{.address = "/run/w1",
                          .model = "story",
                          .kv_block_size_bytes = kTestBlockBytes,
                          .max_extents = 64};
  CHECK(world.refusal(world.call(kLater, ready)) == Errc::BadRequest);
  ready.model = "tales";
  ready.aliases = {"story"};
  CHECK(world.refusal(world.call(kLater, ready)) == Errc::BadRequest);
  ready.aliases = {"gone"};
  (void)world.answer<wire::ExtentShape>(world.call(kLater, ready));
}

TEST_CASE("adapters: an owner has at most 64") {
  AdapterWorld world;
  for (int i = 0; i < 64; ++i) world.add("n" + std::to_string(i));
  const wire::AdapterAdd more{.adapter = {"more"}, .file = "x.gguf", .tenant = TenantId{"a"}};
  CHECK(world.refusal(world.call(kOperator, more)) == Errc::QuotaAdapters);
  CHECK(world.add("n0") == 2);
  CHECK(world.add("more", "b") == 1);
}

TEST_CASE("adapters: a tenant sees its own and the shared ones") {
  AdapterWorld world;
  world.add("own", "a");
  world.add("foreign", "b");
  world.add("tone", "");
  world.add("gone", "a");
  world.remove("gone");
  const auto seen = visible_adapters(world.state, {"a"}).adapters;
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == wire::VisibleAdapter{.adapter = {"own"}, .version = 1});
  CHECK(seen[1] == wire::VisibleAdapter{.adapter = {"tone"}, .version = 1});
  CHECK(world.state.adapters.find_for(TenantId{"a"}, {"foreign"}) == nullptr);
  CHECK(world.state.adapters.find_for(std::nullopt, {"own"}) == nullptr);
  CHECK(world.state.adapters.find_for(std::nullopt, {"tone"}) != nullptr);
}

TEST_CASE("adapters: every change of the registry is journaled and sent to the workers") {
  AdapterWorld world;
  world.forget_effects();
  world.add("support");
  CHECK(world.performed<effect::NotifyAdapters>().size() == 1);
  CHECK(world.journal.adapters.at({"support"}).version == 1);
  world.filled("support");
  CHECK(world.journal.adapters.at({"support"}).digest == kDigest);
  world.forget_effects();
  world.remove("support");
  CHECK(world.performed<effect::NotifyAdapters>().size() == 1);
  CHECK(world.journal.adapters.at({"support"}).removed);

  World next(world, {});
  CHECK(next.state.adapters.find({"support"}) == nullptr);
  CHECK(next.state.adapters.all().at({"support"}).version == 1);
}

TEST_CASE("adapters: the list shows a removed one until its last lease has ended") {
  AdapterWorld world;
  world.add("support");
  const LeaseId lease = world.filled("support");
  world.remove("support");
  auto views = adapter_views(world.state, {});
  REQUIRE(views.size() == 1);
  CHECK(views[0].removed);
  REQUIRE(views[0].leases.size() == 1);
  CHECK(views[0].leases[0].lease == lease);
  CHECK(views[0].leases[0].filled);
  CHECK(views[0].leases[0].size_bytes == kExtentBytes);
  world.close(lease);
  CHECK(adapter_views(world.state, {}).empty());
}

TEST_CASE("adapters: the status and the tenant show their leases until the fence") {
  AdapterWorld world;
  world.add("own");
  world.add("tone", "");
  const LeaseId own = world.filled("own", {.size_bytes = 2 * kExtentBytes});
  world.opened("tone", {.tenant = "b"});
  wire::StatusView status = status_view(world.state, world.clock.now());
  CHECK(status.adapters_loaded == 1);
  CHECK(status.adapters_loading == 1);
  CHECK(status.adapter_bytes == 3 * kExtentBytes);
  const auto tenant = view_of_tenant(world.state, {"a"}, world.clock.now()).front();
  CHECK(tenant.adapter_leases == 1);
  CHECK(tenant.adapter_bytes == 2 * kExtentBytes);
  CHECK(view_of_tenant(world.state, {"b"}, world.clock.now()).front().adapter_leases == 0);

  world.begin_unit(world.worker, Touches::TenantMemory);
  world.close(own);
  status = status_view(world.state, world.clock.now());
  CHECK(status.adapters_loaded == 0);
  CHECK(status.adapters_ending == 1);
  world.end_unit(world.worker);
  world.post(Tick{});
  CHECK(status_view(world.state, world.clock.now()).adapters_ending == 0);
  CHECK(world.state.leases.index().adapters_of({"a"}).empty());
  CHECK(world.state.leases.index().adapters_of({}).size() == 1);
}

TEST_CASE("adapters: refusals of a lease are counted by their error") {
  AdapterWorld world;
  world.add("own");
  (void)world.refusal(world.open("nothing"));
  (void)world.refusal(world.open("own", {.size_bytes = 64 * kExtentBytes}));
  (void)world.refusal(world.open("own", {.tenant = "b"}));
  CHECK(world.state.adapters.refusals() ==
        std::map<Errc, std::uint64_t>{{Errc::UnknownAdapter, 2}, {Errc::QuotaAdapters, 1}});
}

TEST_CASE("adapters: an order goes to the worker with the owner, and its reply to the operator") {
  AdapterWorld world;
  world.add("support");
  world.forget_effects();
  const CallId loading = world.call(
      kOperator,
      wire::AdapterLoad{.adapter = {"support"}, .worker = "w0", .tenant = TenantId{"b"}});
  const auto orders = world.performed<effect::SendAdapterOrder>();
  REQUIRE(orders.size() == 1);
  CHECK(std::get<wire::AdapterLoad>(orders[0].order).tenant == TenantId{"a"});
  CHECK_FALSE(world.answers.contains(loading));
  world.post(AdapterOrderAnswered{orders[0].call, Error{Errc::FileNotFound, "no file"}});
  CHECK(world.refusal(loading) == Errc::FileNotFound);
  const wire::AdapterUnload unknown{.adapter = {"x"}, .worker = "w0"};
  CHECK(world.refusal(world.call(kOperator, unknown)) == Errc::UnknownAdapter);
  const wire::AdapterUnload nowhere{.adapter = {"support"}, .worker = "w9"};
  CHECK(world.refusal(world.call(kOperator, nowhere)) == Errc::UnknownWorker);
}

TEST_CASE("adapters: an order to a worker that has not loaded its model is refused") {
  AdapterWorld world;
  world.add("support");
  world.state.workers.find(world.worker)->state = WorkerState::Attached;
  const wire::AdapterLoad early{.adapter = {"support"}, .worker = "w0"};
  CHECK(world.refusal(world.call(kOperator, early)) == Errc::NoModelLoaded);
}

TEST_CASE("adapters: the removal of a tenant removes its adapters and revokes their leases") {
  AdapterWorld world;
  world.add("support");
  const LeaseId lease = world.filled("support");
  (void)world.answer<wire::LeasesTouched>(
      world.call(kOperator, wire::TenantRemove{.tenant = {"a"}}));
  CHECK(world.reason(lease) == RevokeReason::PolicyChanged);
  CHECK(world.state.adapters.find({"support"}) == nullptr);
}
