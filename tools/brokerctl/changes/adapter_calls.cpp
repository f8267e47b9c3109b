#include "tools/brokerctl/changes/adapter_calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

/// "w1 loaded, w2 loading (version 1)": where the adapter has memory.
std::string leases_text(const wire::AdapterView& adapter) {
  std::vector<std::string> texts;
  for (const wire::AdapterLeaseView& lease : adapter.leases) {
    std::string state = lease.filled ? "loaded" : "loading";
    if (lease.state != LeaseState::Live) state = "ending";
    const bool is_newest = lease.version == adapter.version;
    const std::string version = is_newest ? "" : fmt::format(" (version {})", lease.version);
    texts.push_back(fmt::format("{} {}{}", lease.worker, state, version));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::uint64_t bytes_of(const wire::AdapterView& adapter) {
  std::uint64_t bytes = 0;
  for (const wire::AdapterLeaseView& lease : adapter.leases) bytes += lease.size_bytes;
  return bytes;
}

std::string state_text(const wire::AdapterView& adapter) {
  if (adapter.removed) return "removed";
  return adapter.pinned ? "pinned" : "registered";
}

Result<Printed> acknowledged(const Dependencies& dependencies, std::string_view method,
                             const wire::Json& params, cli::Table table) {
  return Printed{.document = TRY(dependencies.call(method, params)), .table = std::move(table)};
}

}  // namespace

cli::Table adapters_table(const std::vector<wire::AdapterView>& adapters) {
  cli::Table table{.columns = {{"ADAPTER"},
                               {"VERSION", true},
                               {"TENANT"},
                               {"STATE"},
                               {"MEMORY", true},
                               {"WORKERS"},
                               {"FILE", false, true},
                               {"SHA-256", false, true}}};
  for (const wire::AdapterView& view : adapters) {
    table.rows.push_back({view.adapter.value, std::to_string(view.version),
                          view.tenant ? view.tenant->value : "(shared)", state_text(view),
                          cli::bytes_text(bytes_of(view)), cli::or_dash(leases_text(view)),
                          printable(view.file), view.digest.value_or("-")});
  }
  return table;
}

Result<Printed> make_change(const wire::AdapterAdd& add, const Dependencies& dependencies) {
  const wire::Json reply = TRY(dependencies.call(wire::AdapterAdd::kMethod, add.to_json()));
  const auto added = TRY(client::parse_message<wire::AdapterAdded>(reply));
  return Printed{.document = reply,
                 .table = {.columns = {{"ADAPTER"}, {"VERSION", true}},
                           .rows = {{add.adapter.value, std::to_string(added.version)}}}};
}

Result<Printed> make_change(const wire::AdapterRemove& remove, const Dependencies& dependencies) {
  return acknowledged(dependencies, wire::AdapterRemove::kMethod, remove.to_json(),
                      {.columns = {{"ADAPTER REMOVED"}}, .rows = {{remove.adapter.value}}});
}

Result<Printed> make_change(const wire::AdapterLoad& load, const Dependencies& dependencies) {
  return acknowledged(
      dependencies, wire::AdapterLoad::kMethod, load.to_json(),
      {.columns = {{"LOADED"}, {"WORKER"}}, .rows = {{load.adapter.value, load.worker}}});
}

Result<Printed> make_change(const wire::AdapterUnload& unload, const Dependencies& dependencies) {
  return acknowledged(
      dependencies, wire::AdapterUnload::kMethod, unload.to_json(),
      {.columns = {{"UNLOADS"}, {"WORKER"}}, .rows = {{unload.adapter.value, unload.worker}}});
}

}  // namespace leasehold::brokerctl
