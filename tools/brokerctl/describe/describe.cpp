#include "tools/brokerctl/describe/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ipc/client/all_pages.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/changes/adapter_calls.hpp"
#include "tools/brokerctl/describe/history.hpp"
#include "tools/brokerctl/describe/next_steps.hpp"
#include "tools/brokerctl/find_lease.hpp"
#include "tools/brokerctl/named.hpp"
#include "tools/brokerctl/timeline.hpp"
#include "tools/brokerctl/views.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

/// The columns of a table with one row as lines "column  value".
cli::Table transposed(const cli::Table& table) {
  cli::Table fields{.columns = {{"FIELD"}, {"VALUE"}}};
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    fields.rows.push_back({table.columns[i].title, table.rows.front()[i]});
  return fields;
}

/// Collects the parts of the description as text and as JSON.
class Description {
 public:
  Description(const Describe& what, const Dependencies& dependencies)
      : what_(what), dependencies_(dependencies) {}

  template <class View>
  void add_item(const View& view, cli::Table (*table)(const std::vector<View>&)) {
    text_ = cli::render(transposed(table({view})));
    document_ = {{"noun", what_.noun}, {"name", what_.name}, {"item", view.to_json()}};
    steps_ = next_steps(view);
  }

  void add_timeline(const wire::LeaseView& lease) {
    if (lease.state == LeaseState::Live) return;
    const auto steps = timeline_of(lease);
    text_ += "\nTimeline\n" + cli::render(timeline_table(steps));
    document_["timeline"] = timeline_json(lease, steps).at("steps");
  }

  template <class View>
  void add_list(const std::string& title, const char* field, const std::vector<View>& views,
                cli::Table (*table)(const std::vector<View>&)) {
    Json items = Json::array();
    for (const View& view : views) items.push_back(view.to_json());
    document_[field] = std::move(items);
    if (!views.empty())
      text_ +=
          fmt::format("\n{} ({})\n{}", title, views.size(), cli::render(cli::narrow(table(views))));
  }

  Result<void> add_history() {
    const auto events = TRY(newest_events(what_.noun, what_.name, dependencies_));
    document_["events"] = events;
    if (!events.empty()) text_ += "\nNewest events\n";
    for (const Json& event : events) text_ += event_line(event) + "\n";
    const auto actions = TRY(newest_actions(what_.noun, what_.name, dependencies_));
    add_list("Operator actions", "actions", actions, operator_actions_table);
    return {};
  }

  Result<void> finish(Output output) {
    TRY(add_history());
    cli::Table next{.columns = {{"NEXT"}, {"PURPOSE"}}};
    Json commands = Json::array();
    for (const NextStep& step : steps_) {
      next.rows.push_back({step.command, step.purpose});
      commands.push_back({{"command", step.command}, {"purpose", step.purpose}});
    }
    document_["next"] = std::move(commands);
    text_ += "\n" + cli::render(next);
    *dependencies_.out << (output == Output::Json ? cli::json_text(document_, 2) + "\n" : text_);
    dependencies_.out->flush();
    return {};
  }

 private:
  const Describe& what_;
  const Dependencies& dependencies_;
  std::string text_;
  Json document_;
  std::vector<NextStep> steps_;
};

/// Returns the last of `views` whose first column is the name: a worker is listed after its
/// predecessors.
template <class View>
Result<View> find_named(const Describe& what, const std::vector<View>& views,
                        cli::Table (*table)(const std::vector<View>&)) {
  const cli::Table all = table(views);
  for (std::size_t i = views.size(); i-- > 0;)
    if (all.rows[i].front() == what.name) return views[i];
  return std::unexpected(unknown_name(what.noun, what.name, all));
}

template <class View>
Result<View> find_in_pages(const Describe& what, const Dependencies& dependencies,
                           cli::Table (*table)(const std::vector<View>&)) {
  const auto views = TRY(client::all_pages<View>(dependencies.call));
  return find_named(what, views, table);
}

template <class Holds>
Result<std::vector<wire::LeaseView>> leases_where(const Dependencies& dependencies, Holds holds) {
  auto leases = TRY(client::all_pages<wire::LeaseView>(dependencies.call));
  std::erase_if(leases, [&](const wire::LeaseView& lease) { return !holds(lease); });
  return leases;
}

Result<void> add_lease(const Describe& what, const Dependencies& dependencies,
                       Description& description) {
  const LeaseId id = TRY(LeaseId::parse(what.name));
  const wire::LeaseView lease = TRY(find_lease(id, dependencies));
  description.add_item(lease, leases_table);
  description.add_timeline(lease);
  auto extents = TRY(client::all_pages<wire::ExtentView>(dependencies.call));
  std::erase_if(extents, [&](const wire::ExtentView& extent) { return extent.lease != id; });
  description.add_list("Extents", "extents", extents, extents_table);
  return {};
}

Result<void> add_tenant(const Describe& what, const Dependencies& dependencies,
                        Description& description) {
  const auto tenant = TRY(find_in_pages(what, dependencies, tenants_table));
  description.add_item(tenant, tenants_table);
  const auto leases = TRY(leases_where(
      dependencies, [&](const wire::LeaseView& lease) { return lease.tenant == what.name; }));
  description.add_list("Leases", "leases", leases, leases_table);
  auto keys = client::all_pages<wire::KeyView>(dependencies.call);
  // an observer may not list keys
  if (!keys && keys.error().code == Errc::PermissionDenied) return {};
  if (!keys) return std::unexpected(keys.error());
  std::erase_if(*keys, [&](const wire::KeyView& key) { return key.tenant.value != what.name; });
  description.add_list("API keys", "keys", *keys, keys_table);
  return {};
}

Result<void> add_worker(const Describe& what, const Dependencies& dependencies,
                        Description& description) {
  const Json reply = TRY(dependencies.call("worker.list", Json::object()));
  const auto workers = TRY(client::parse_items<wire::WorkerView>(reply));
  description.add_item(TRY(find_named(what, workers, workers_table)), workers_table);
  const auto leases = TRY(leases_where(dependencies, [&](const wire::LeaseView& lease) {
    return lease.worker == what.name && lease.state != LeaseState::Fenced;
  }));
  description.add_list("Leases", "leases", leases, leases_table);
  return {};
}

Result<void> add_extent(const Describe& what, const Dependencies& dependencies,
                        Description& description) {
  const auto extent = TRY(find_in_pages(what, dependencies, extents_table));
  description.add_item(extent, extents_table);
  auto quarantined = TRY(client::all_pages<wire::QuarantineView>(dependencies.call));
  std::erase_if(quarantined, [&](const auto& memory) { return memory.extent != extent.extent; });
  description.add_list("Quarantined", "quarantine", quarantined, quarantine_table);
  const auto leases = TRY(leases_where(
      dependencies, [&](const wire::LeaseView& lease) { return extent.lease == lease.lease; }));
  description.add_list("Lease", "leases", leases, leases_table);
  return {};
}

Result<void> add_adapter(const Describe& what, const Dependencies& dependencies,
                         Description& description) {
  const auto adapter = TRY(find_in_pages(what, dependencies, adapters_table));
  description.add_item(adapter, adapters_table);
  const std::string every_version = adapter.adapter.value + "@";
  const auto leases = TRY(leases_where(dependencies, [&](const wire::LeaseView& lease) {
    return lease.scope == wire::LeaseScope::Adapter && lease.part.starts_with(every_version) &&
           lease.state != LeaseState::Fenced;
  }));
  description.add_list("Leases", "leases", leases, leases_table);
  return {};
}

Result<void> add_thing(const Describe& what, const Dependencies& dependencies,
                       Description& description) {
  if (what.noun == "lease") return add_lease(what, dependencies, description);
  if (what.noun == "tenant") return add_tenant(what, dependencies, description);
  if (what.noun == "worker") return add_worker(what, dependencies, description);
  if (what.noun == "adapter") return add_adapter(what, dependencies, description);
  if (what.noun == "extent") return add_extent(what, dependencies, description);
  description.add_item(TRY(find_in_pages(what, dependencies, keys_table)), keys_table);
  return {};
}

}  // namespace

Result<void> describe(const Describe& what, Output output, const Dependencies& dependencies) {
  Description description(what, dependencies);
  TRY(add_thing(what, dependencies, description));
  return description.finish(output);
}

}  // namespace leasehold::brokerctl
