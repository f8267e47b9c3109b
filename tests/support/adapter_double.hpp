/// A source of adapters that a test controls. Threads: one (the engine's).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "worker/schedule/adapter_use.hpp"

namespace leasehold::testing {

class AdapterDouble : public AdapterService {
 public:
  std::vector<LeaseId> leases() const override {
    std::vector<LeaseId> all;
    for (const auto& [name, use] : loaded) all.push_back(use->lease);
    return all;
  }
  void use(const TenantId&, const std::string& name, OnReady on_ready) override {
    ++asked;
    if (const auto found = loaded.find(name); found != loaded.end()) return on_ready(found->second);
    waiting.push_back(std::move(on_ready));
  }
  /// Answers everything that waits.
  void answer(const Result<AdapterUse>& use) {
    for (OnReady& on_ready : std::exchange(waiting, {})) on_ready(use);
  }

  std::map<std::string, AdapterUse> loaded;
  std::vector<OnReady> waiting;
  int asked = 0;
};

}  // namespace leasehold::testing
