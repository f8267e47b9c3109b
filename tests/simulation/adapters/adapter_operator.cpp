#include "tests/simulation/adapters/adapter_operator.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kMaxExtents = 2;  // of one adapter

std::string path_of(const KnownAdapter& adapter) {
  return std::string(adapter.owner) + "/" + adapter.name;
}

}  // namespace

/// Only the agent admits a tenant of the cell. A broker that lost its journal would take that
/// tenant for one of its own, without a ceiling.
void AdapterOperator::admit(const char* tenant, std::uint32_t adapters, std::uint64_t extents) {
  if (deps_.judge.is_of_cell(tenant)) return;
  broker().call(wire::TenantAdmit{
      .tenant = {tenant}, .max_adapters = adapters, .max_adapter_bytes = extents * kExtentBytes});
}

void AdapterOperator::overwrite(const KnownAdapter& adapter) {
  const bool is_shared = *adapter.owner == '\0';  // one extent, as the limit of a worker
  deps_.persistent.disk.write(path_of(adapter), adapter.owner,
                              is_shared ? 1 : 1 + deps_.machine.pick(kMaxExtents));
}

void AdapterOperator::add(const KnownAdapter& adapter) {
  const bool is_known = deps_.persistent.disk.find(path_of(adapter)) != nullptr;
  if (!is_known || deps_.machine.pick(4) != 0) overwrite(adapter);
  const bool is_shared = *adapter.owner == '\0';
  broker().call(
      wire::AdapterAdd{.adapter = {adapter.name},
                       .file = path_of(adapter),
                       .tenant = is_shared ? std::nullopt : std::optional(TenantId{adapter.owner}),
                       .shared = is_shared,
                       .pinned = deps_.machine.one_in(4)},
      [coverage = &deps_.coverage](const Result<Answer>& answer) {
        if (!answer) return;
        const bool is_first = std::get<wire::AdapterAdded>(answer->body).version == 1;
        coverage->happened(is_first ? AdapterEvent::Registered : AdapterEvent::Replaced);
      });
}

void AdapterOperator::begin() {
  for (const KnownAdapter& adapter : kAdapters) {
    if (*adapter.owner != '\0') admit(adapter.owner, 2, kMaxExtents);
    add(adapter);
  }
}

void AdapterOperator::publish(const std::string& worker) {
  const bool is_any = deps_.machine.one_in(8);
  const char* adapter =
      is_any ? kAdapters[deps_.machine.pick(kAdapters.size())].name : kSharedAdapter;
  broker().call(
      wire::PrefixPublish{.worker = worker, .text = "a text", .adapter = AdapterName{adapter}});
}

void AdapterOperator::replace_while_published() {
  const State& state = broker().state;
  for (const LeaseId id : state.leases.index().adapters_of({})) {
    const LeaseRecord& record = *state.leases.find_open(id);
    if (!record.is(LeaseState::Live) || record.part != kSharedAdapter) continue;
    broker().call(wire::PrefixPublish{.worker = state.workers.find(record.worker())->name,
                                      .text = "another text",
                                      .adapter = AdapterName{kSharedAdapter}});
  }
  add(kAdapters[2]);
}

void AdapterOperator::change_quotas() {
  const char* tenant = kAdapters[deps_.machine.pick(2)].owner;
  admit(tenant, deps_.machine.pick(3), deps_.machine.pick(kMaxExtents + 2));
}

void AdapterOperator::act(const std::string& worker) {
  const KnownAdapter& known = kAdapters[deps_.machine.pick(kAdapters.size())];
  switch (deps_.machine.pick(12)) {
    case 0:
    case 1:
      return add(known);
    case 2:  // refused unless its owner lost it
      return add({known.name, kAdapters[deps_.machine.pick(kAdapters.size())].owner});
    case 3:
      broker().call(wire::AdapterRemove{.adapter = {known.name}},
                    [coverage = &deps_.coverage](const Result<Answer>& answer) {
                      if (answer) coverage->happened(AdapterEvent::Removed);
                    });
      return;
    case 4:
    case 5:
      return broker().call(wire::AdapterLoad{.adapter = {known.name}, .worker = worker});
    case 6:
      return broker().call(wire::AdapterUnload{.adapter = {known.name}, .worker = worker});
    case 7:
      return overwrite(known);
    case 8:
      return change_quotas();
    case 9:
      return publish(worker);
    case 10:
      return replace_while_published();
    default:
      return broker().call(wire::LeaseRevoke{.adapter = AdapterName{known.name}});
  }
}

/// Registered, by any owner, and its file is the one that the broker knows.
bool AdapterOperator::is_sound(const KnownAdapter& adapter) const {
  const journal::AdapterRow* row = broker().state.adapters.find({adapter.name});
  if (row == nullptr) return false;
  const AdapterFile& file = *deps_.persistent.disk.find(row->file);
  return row->digest.empty() || row->digest == digest_of(file.content).hex();
}

void AdapterOperator::finish() {
  for (const KnownAdapter& adapter : kAdapters) {
    if (*adapter.owner != '\0') admit(adapter.owner, 2, kMaxExtents);
    if (is_sound(adapter)) continue;
    broker().call(wire::AdapterRemove{.adapter = {adapter.name}});
    add(adapter);
  }
}

void AdapterOperator::make_room(const std::string& worker) {
  for (const KnownAdapter& adapter : kAdapters)
    broker().call(wire::AdapterUnload{.adapter = {adapter.name}, .worker = worker});
  const State& state = broker().state;
  for (const LeaseId id : state.leases.open_leases()) {
    const LeaseRecord& record = *state.leases.find_open(id);
    const bool is_text = record.scope == wire::LeaseScope::Shared && record.is(LeaseState::Live);
    if (is_text && state.workers.find(record.worker())->name == worker)
      broker().call(wire::LeaseRevoke{.lease = id});
  }
}

}  // namespace leasehold::simulation
