/// An AdapterBook with a clock, and a test that acts as its loader and its broker.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "worker/adapter/adapter_book.hpp"
#include "worker/model/adapter_matrices.hpp"

namespace leasehold::testing {

inline ResolvedAdapter own(const std::string& name, const std::string& tenant,
                           std::uint32_t version = 1) {
  return {.name = name,
          .version = version,
          .file = name + ".gguf",
          .owner = TenantId{tenant},
          .is_pinned = false};
}

inline Error error(Errc code, std::int64_t retry_after_ms = 0) {
  return {code, "as the test wants", failure_scope(code), retry_after_ms};
}

class BookFixture {
 public:
  static constexpr std::uint64_t kSize = 1'000;

  AdapterTicket use(const std::string& tenant, const std::string& name) {
    return book.use(TenantId{tenant}, name, clock.now());
  }
  void resolved(const std::string& tenant, const std::string& name,
                const Result<ResolvedAdapter>& answer) {
    book.resolved({TenantId{tenant}, name}, answer, clock.now());
  }
  void opened_file(AdapterLoadId load) {
    book.file_opened(load,
                     AdapterContent{.digest = {}, .size_bytes = kSize, .memory_bytes = kSize});
  }
  void opened_lease(AdapterLoadId load, const Result<LeaseId>& lease) {
    book.lease_opened(load, lease, clock.now());
  }
  void copied(AdapterLoadId load) {
    book.copied(load, std::make_shared<const AdapterMatrices>(1), clock.now());
  }
  void confirmed(AdapterLoadId load, const Result<void>& answer = {}) {
    book.confirmed(load, answer, clock.now());
  }
  TimePoint tick() { return book.tick(clock.now()); }

  /// The actions of one kind since the last call; the others are lost.
  template <class Action>
  std::vector<Action> take() {
    std::vector<Action> taken;
    for (AdapterAction& action : book.take_actions())
      if (auto* found = std::get_if<Action>(&action)) taken.push_back(std::move(*found));
    return taken;
  }
  template <class Action>
  Action only() {
    std::vector<Action> taken = take<Action>();
    REQUIRE(taken.size() == 1);
    return std::move(taken.front());
  }

  /// Loads the adapter and returns the use of the only waiter.
  AdapterUse load(const ResolvedAdapter& adapter, LeaseId lease, const std::string& tenant) {
    use(tenant, adapter.name);
    resolved(tenant, adapter.name, adapter);
    return finish(only<OpenAdapterFile>().load, lease);
  }
  AdapterUse finish(AdapterLoadId load, LeaseId lease) {
    opened_file(load);
    opened_lease(load, lease);
    copied(load);
    book.take_actions();
    confirmed(load);
    const auto answer = only<AnswerAdapterUse>();
    REQUIRE(answer.use);
    return *answer.use;
  }

  AdapterBook book;
  ManualClock clock;
};

}  // namespace leasehold::testing
