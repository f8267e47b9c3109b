#include "tools/cell/decide/host_facts.hpp"

#include <fmt/format.h>

#include <map>

namespace leasehold::cell {
namespace {

constexpr std::size_t kHeadDigits = 32;

/// A sleeping worker serves: a request wakes it.
bool is_serving(const wire::WorkerView& worker) {
  return worker.state == "ready" && !worker.out_of_service &&
         (worker.drain == "serving" || worker.drain == "asleep" || worker.drain == "waking");
}

bool is_drained(const wire::WorkerView& worker) {
  return worker.drain == "draining" || worker.drain == "drained";
}

}  // namespace

std::vector<OfferedModel> models_of(const std::vector<wire::WorkerView>& workers) {
  std::map<std::string, TextIdentity> named;
  for (const wire::WorkerView& worker : workers) {
    if (!is_serving(worker) || !worker.text_identity) continue;
    named.emplace(worker.model, *worker.text_identity);
    for (const std::string& alias : worker.aliases) named.emplace(alias, *worker.text_identity);
  }
  std::vector<OfferedModel> models;
  for (const auto& [name, identity] : named) models.push_back({name, identity});
  return models;
}

std::string audit_head_of(const wire::AuditPage& page) {
  if (page.head_sequence == 0) return {};
  return fmt::format("{}:{}", page.head_sequence, page.head_hash.substr(0, kHeadDigits));
}

std::vector<std::string> workers_to_change(const std::vector<wire::WorkerView>& workers,
                                           bool is_draining) {
  std::vector<std::string> names;
  for (const wire::WorkerView& worker : workers) {
    const bool is_there = worker.state == "attached" || worker.state == "ready";
    if (is_there && (is_draining ? is_serving(worker) : is_drained(worker)))
      names.push_back(worker.worker);
  }
  return names;
}

}  // namespace leasehold::cell
