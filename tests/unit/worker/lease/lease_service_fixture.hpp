/// A LeaseService beside an engine, whose threads the test runs by hand.
#pragma once

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ipc/region/memory_object.hpp"
#include "ipc/region/on_use_mapper.hpp"
#include "tests/support/engine_rig.hpp"
#include "worker/lease/lease_service.hpp"

namespace leasehold::testing {

class LeaseServiceFixture {
 public:
  enum class SettleMode { BetweenSteps, Manual };
  explicit LeaseServiceFixture(SettleMode settle_mode = SettleMode::BetweenSteps,
                               const RegionMapper& swap_regions = host_mapper())
      : service_(dependencies(settle_mode, swap_regions)) {}

  void call(const auto& message, std::vector<UniqueFd> fds = {}) {
    answer.reset();
    service_.on_call(std::string(message.kMethod), {message.to_json(), std::move(fds)},
                     [this, mine = ++calls_](Result<control::Payload> reply) {
                       if (mine != calls_) return;
                       answer = reply ? Result<void>{} : std::unexpected(reply.error());
                     });
    poll(io_);
  }

  void run_mapper() {
    poll(mapper_);
    poll(io_);
  }

  /// Runs the commands posted to the engine, as between two steps.
  void run_engine() {
    EngineLoop& loop = loop_;
    loop.post([&loop](Engine&) { loop.stop(); });
    loop.run();
    poll(io_);
  }

  /// Grants one extent.
  void grant(LeaseId lease, wire::MemoryPool pool = wire::MemoryPool::Kv) {
    grant(lease, {ExtentId{1'000}}, pool);
  }
  void grant(LeaseId lease, std::vector<ExtentId> extents,
             wire::MemoryPool pool = wire::MemoryPool::Kv,
             std::optional<LeaseId> adopted_from = std::nullopt) {
    const wire::LeaseGrant grant{.lease = lease,
                                 .tenant = TenantId{"t"},
                                 .extent_size_bytes = 2u << 20,
                                 .extents = std::move(extents),
                                 .pool = pool,
                                 .adopted_from = adopted_from};
    send(grant);
  }
  void grant_adapter(LeaseId lease, std::vector<ExtentId> extents) {
    send({.lease = lease,
          .tenant = TenantId{"t"},
          .extent_size_bytes = 2u << 20,
          .extents = std::move(extents),
          .scope = wire::LeaseScope::Adapter,
          .adapter = AdapterName{"law"},
          .adapter_version = 1});
  }
  void send(const wire::LeaseGrant& grant) {
    std::vector<UniqueFd> fds;
    for ([[maybe_unused]] const ExtentId extent : grant.extents) {
      auto object =
          MemoryObject::create({.name = "granted", .size_bytes = grant.extent_size_bytes});
      fds.push_back(object->fd().duplicate().value());
    }
    call(grant, std::move(fds));
  }

  void when_installed(std::move_only_function<void()> then) {
    service_.when_installed(std::move(then));
  }
  std::vector<LeaseService::Redelivery> redeliveries() const {
    return service_.redeliveries().value();
  }

  /// All granted memory of one lease.
  std::map<ExtentId, MemoryObject> granted_memory() {
    std::map<ExtentId, MemoryObject> granted;
    std::vector<LeaseService::Redelivery> all = redeliveries();
    for (LeaseService::Redelivery& redelivery : all)
      for (std::size_t i = 0; i < redelivery.fds.size(); ++i)
        granted.emplace(redelivery.message.extents[i],
                        MemoryObject::adopt(std::move(redelivery.fds[i])).value());
    return granted;
  }
  /// The bytes of its pages.
  std::map<ExtentId, std::uint64_t> touched_bytes() {
    std::map<ExtentId, std::uint64_t> touched;
    for (const auto& [extent, object] : granted_memory())
      touched[extent] = object.allocated_bytes().value();
    return touched;
  }

  void say_settled() {
    std::exchange(settled_, nullptr)();
    poll(io_);
  }

  EngineRig rig;
  std::optional<Result<void>> answer;
  std::optional<SettleScope> settle_scope;
  std::vector<LeaseId> fenced;    ///< As reported by the service.
  std::vector<LeaseId> adapters;  ///< As reported by the service.

  /// Checks that the last call was answered without an error.
  void check_done() const {
    REQUIRE(answer);
    CHECK(answer->has_value());
  }
  /// Checks that the last call was refused because of the state of the lease.
  void check_refused() const {
    REQUIRE(answer);
    REQUIRE_FALSE(answer->has_value());
    CHECK(answer->error().code == Errc::IllegalTransition);
  }

 private:
  static void poll(boost::asio::io_context& io) {
    io.restart();
    io.poll();
  }

  LeaseService::Dependencies dependencies(SettleMode settle_mode,
                                          const RegionMapper& swap_regions) {
    LeaseService::Dependencies dependencies{
        .io = &io_,
        .mapper = mapper_.get_executor(),
        .unmapper = io_.get_executor(),
        .loop = &loop_,
        .engine = &rig.engine(),
        .table = &rig.table(),
        .clock = &rig.clock(),
        .first_regions = &on_use_mapper(),
        .swap_regions = &swap_regions,
        .on_fenced = [this](LeaseId lease) { fenced.push_back(lease); },
        .on_adapter_granted =
            [this](const wire::LeaseGrant& grant) { adapters.push_back(grant.lease); }};
    if (settle_mode == SettleMode::Manual) {
      dependencies.when_settled = [this](SettleScope scope,
                                         std::move_only_function<void()> settled) {
        settle_scope = scope;
        settled_ = std::move(settled);
      };
    }
    return dependencies;
  }

  int calls_ = 0;
  boost::asio::io_context io_;
  boost::asio::io_context mapper_;
  EngineLoop loop_{rig.engine(),
                   {.on_report = [](auto) {},
                    .on_growth = [](auto) {},
                    .on_drained = [](auto) {},
                    .on_weights_lost = [](Engine&) { return Result<void>{}; }}};
  std::move_only_function<void()> settled_;
  LeaseService service_;
};

}  // namespace leasehold::testing
