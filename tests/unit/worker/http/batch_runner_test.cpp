// Which batches run at the same time, and what goes with a tenant that was removed.
#include "worker/http/batch/batch_runner.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <map>

#include "tests/support/tiny_tokenizer.hpp"
#include "tests/unit/worker/http/fake_client.hpp"

namespace leasehold::http {
namespace {

using batch::BatchRecord;
using batch::BatchStore;
using batch::Owner;

constexpr std::string_view kLine =
    R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"model":"model","prompt":"a"}})";

/// A broker that answers no acquisition, so that every batch that runs asks for one lease.
struct Runs {
  Runs() {
    world.broker.held = "lease.acquire";
    shared->deps.batch_store = store.get();
  }
  ~Runs() {
    runner->stop();
    world.run_until([this] { return shared.use_count() == 1; });
  }

  void add(const Owner& owner, const std::string& key) {
    const auto upload = store->begin_upload(owner).value();
    REQUIRE(upload->add(kLine));
    const std::string file = store->keep(*upload, "lines", 10).value().id;
    BatchRecord batch{.owner = owner,
                      .key = {key},
                      .batch_key = key,
                      .endpoint = "/v1/completions",
                      .input_file = file,
                      .expires_at = std::numeric_limits<std::int32_t>::max()};
    batch.reached_at.emplace(batch::Status::Validating, 10);
    REQUIRE(store->add_batch(batch));
  }
  std::map<std::string, int> acquired() const {
    std::map<std::string, int> by_tenant;
    for (const wire::Json& call : world.broker.calls("lease.acquire"))
      ++by_tenant[call.at("tenant").get<std::string>()];
    return by_tenant;
  }

  TemporaryDirectory directory = TemporaryDirectory::create("batches").value();
  std::unique_ptr<BatchStore> store = BatchStore::open(directory.file("dir"), {}).value();
  ServerWorld world;
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  std::shared_ptr<Shared> shared = std::make_shared<Shared>(dependencies(world, tokenizer));
  std::shared_ptr<BatchRunner> runner = std::make_shared<BatchRunner>(*shared, *store);
};

}  // namespace

TEST_CASE("batch runner: the keys of one tenant leave half of the places to other tenants") {
  Runs runs;
  for (int key = 0; key < 16; ++key) runs.add({{"ann"}, 1}, fmt::format("a{}", key));
  runs.add({{"bob"}, 1}, "b");
  runs.runner->start(runs.shared);
  runs.world.run_until([&] { return runs.acquired()["bob"] == 1 && runs.acquired()["ann"] >= 8; });
  runs.world.settle();
  CHECK(runs.acquired()["ann"] == BatchRunner::kMaxActive / 2);
}

TEST_CASE("batch runner: files of tenants that the broker names as removed twice are deleted") {
  Runs runs;
  const Owner kept{{"ann"}, 2};
  for (const Owner& owner : {Owner{{"ann"}, 1}, kept, Owner{{"bob"}, 1}})
    REQUIRE(runs.store->keep(*runs.store->begin_upload(owner).value(), "f",
                             std::numeric_limits<std::int32_t>::max()));
  wire::TenantCheck asked;
  Server::OnTenantsChecked done;
  runs.shared->deps.check_tenants = [&](const wire::TenantCheck& check, auto answer) {
    asked = check;
    done = std::move(answer);
  };
  FormerTenants former(*runs.store);
  const auto sweep = [&] {
    asked = {};
    boost::asio::co_spawn(*runs.shared->deps.io, former.sweep(runs.shared), boost::asio::detached);
    runs.world.run_until([&] { return asked.tenants.size() == 3; });
  };
  const auto name_gone = [&] {
    sweep();
    std::erase_if(asked.tenants, [](const auto& each) { return each.admitted_unix_ms == 2; });
    done(asked);
    runs.world.settle();
  };
  name_gone();
  CHECK(runs.store->owners().size() == 3);
  SECTION("those that it names twice") {
    name_gone();
    CHECK(runs.store->owners() == std::vector{kept});
  }
  SECTION("none that the next answer does not name") {
    sweep();
    done(wire::TenantCheck());
    runs.world.settle();
    name_gone();
    CHECK(runs.store->owners().size() == 3);
  }
  SECTION("none if it does not answer") {
    sweep();
    done(fail(Errc::BrokerLost, "gone"));
    runs.world.settle();
    CHECK(runs.store->owners().size() == 3);
  }
}

}  // namespace leasehold::http
