#include "tools/brokerctl/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "ipc/client/all_pages.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/audit.hpp"
#include "tools/brokerctl/certificate.hpp"
#include "tools/brokerctl/changes/adapter_calls.hpp"
#include "tools/brokerctl/changes/key_calls.hpp"
#include "tools/brokerctl/changes/sleep.hpp"
#include "tools/brokerctl/describe/describe.hpp"
#include "tools/brokerctl/find_lease.hpp"
#include "tools/brokerctl/named.hpp"
#include "tools/brokerctl/prefix_text.hpp"
#include "tools/brokerctl/repeated_output.hpp"
#include "tools/brokerctl/requests.hpp"
#include "tools/brokerctl/timeline.hpp"
#include "tools/brokerctl/views.hpp"
#include "tools/brokerctl/wait/wait.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

/// The error when no lease matched. Only a tenant and an adapter can be without leases, because the
/// broker refuses an unknown lease or part.
std::unexpected<Error> nothing_revoked(const wire::LeaseRevoke& revoke) {
  std::string what = revoke.tenant ? "tenant " + revoke.tenant->value : "it";
  if (revoke.adapter) what = "adapter " + revoke.adapter->value;
  return fail(
      Errc::UnknownLease,
      fmt::format("nothing was revoked: {} has no live lease; see `brokerctl leases`", what));
}

template <class View>
Json json_items(const std::vector<View>& views) {
  Json items = Json::array();
  for (const View& view : views) items.push_back(view.to_json());
  return items;
}

std::string name_of(const wire::LeaseDrain& drain) {
  if (drain.tenant) return drain.tenant->value;
  return drain.worker ? *drain.worker : to_string(*drain.lease);
}

/// Each overload runs one verb and prints the result as a table or as JSON.
class Runner {
 public:
  Runner(const Arguments& arguments, const Dependencies& dependencies)
      : output_(arguments.output),
        json_indent_(arguments.watch_ms ? -1 : 2),
        named_(arguments.named),
        dependencies_(dependencies) {}

  Result<void> operator()(const PrintText& answer) {
    const bool as_json = output_ == Output::Json && !answer.json.empty();
    *dependencies_.out << (as_json ? answer.json : answer.text);
    dependencies_.out->flush();
    if (answer.exit_code != 0 && dependencies_.set_exit_code)
      dependencies_.set_exit_code(answer.exit_code);
    return {};
  }
  Result<void> operator()(const MakeText& text) { return (*this)(TRY(text.make())); }
  Result<void> operator()(const AskCell& question) {
    const cell::Answer answer = TRY(question.ask(dependencies_.wait, dependencies_.progress_text));
    print(answer.document, answer.table);
    if (output_ != Output::Name)
      for (const std::string& note : answer.notes) print_notes(printable(note) + '\n');
    if (answer.exit_code != 0 && dependencies_.set_exit_code)
      dependencies_.set_exit_code(answer.exit_code);
    return {};
  }

  Result<void> operator()(Show query) {
    switch (query) {
      case Show::Tenants:
        return list(tenants_table);
      case Show::Extents:
        return list(extents_table);
      case Show::Quarantine:
        return list(quarantine_table);
      case Show::Workers:
        return show_workers();
      case Show::Adapters:
        return list(adapters_table);
      case Show::Prefixes:
        return show_prefixes();
      case Show::Status:
        break;
    }
    const Json reply = TRY(dependencies_.call("status", Json::object()));
    print(reply, TRY(status_table(reply)));
    return {};
  }
  Result<void> operator()(const ListOperatorActions& query) {
    const Json reply =
        TRY(dependencies_.call("operator_action.list", Json{{"limit", query.limit}}));
    print(reply, operator_actions_table(TRY(client::parse_items<wire::OperatorActionView>(reply))));
    return {};
  }
  Result<void> operator()(const ListLeases& query) {
    auto leases = TRY(client::all_pages<wire::LeaseView>(dependencies_.call));
    std::erase_if(leases, [&](const wire::LeaseView& lease) {
      return (query.tenant && lease.tenant != query.tenant->value) ||
             (query.state && lease.state != *query.state);
    });
    if (leases.empty() && query.tenant) TRY(check_is_known(*query.tenant));
    return print_list(json_items(leases), leases_table(leases));
  }
  Result<void> operator()(const ListKeys& query) {
    auto keys = TRY(client::all_pages<wire::KeyView>(dependencies_.call));
    std::erase_if(keys, [&](const wire::KeyView& key) {
      return query.tenant && key.tenant != *query.tenant;
    });
    if (keys.empty() && query.tenant) TRY(check_is_known(*query.tenant));
    return print_list(json_items(keys), keys_table(keys));
  }
  Result<void> operator()(const ListRequests& query) {
    const auto [rows, problem] = TRY(read_named_requests(query, named_.names, dependencies_));
    if (rows.requests.empty() && query.tenant) TRY(check_is_known(*query.tenant));
    if (!problem || !rows.requests.empty())
      print(requests_json(rows), requests_table(rows.requests));
    if (problem) return std::unexpected(*problem);
    if (output_ == Output::Name && !rows.silent.empty())  // stdout has names only
      return std::unexpected(silent_error(rows.silent));
    print_notes(requests_notes(rows));
    if (!rows.silent.empty() && dependencies_.set_exit_code)
      dependencies_.set_exit_code(exit_code(rows.silent.front().why.code));
    return {};
  }
  Result<void> operator()(const CancelRequests& query) {
    if (query.tenant) TRY(check_is_known(*query.tenant));
    const CancelledRequests cancelled = TRY(cancel_requests(query, dependencies_));
    if (!cancelled.requests.empty())
      print(cancelled_json(cancelled.requests), cancelled_table(cancelled.requests));
    if (cancelled.problem) return std::unexpected(*cancelled.problem);
    return {};
  }
  Result<void> operator()(const ListEvents& query) {
    return show_events(query, output_, dependencies_);
  }
  Result<void> operator()(const WatchSteps& watch) {
    return show_steps(watch, output_, dependencies_);
  }
  Result<void> operator()(const ShowTop& top) { return show_top(top, output_, dependencies_); }
  Result<void> operator()(const ListAudit& list) {
    AuditState state;
    const auto records = TRY(newest_audit_records(list.limit, dependencies_, &state));
    Json items = Json::array();
    for (const Json& record : records) items.push_back(record);
    print({{"items", std::move(items)}}, audit_table(records));
    print_notes(audit_notes(state));
    return {};
  }
  Result<void> operator()(const AnsweredByAudit auto& verb) {
    return (*this)(TRY(answer(verb, output_, dependencies_)));
  }
  Result<void> operator()(const ExportAudit& request) {
    return export_audit(request, dependencies_);
  }
  Result<void> operator()(const ShowUsage& request) {
    const auto sums = TRY(sum_usage(request, dependencies_));
    print(usage_json(sums), usage_table(sums));
    return {};
  }
  Result<void> operator()(const ShowTimeline& query) {
    const wire::LeaseView lease = TRY(find_lease(query.lease, dependencies_));
    const auto steps = timeline_of(lease);
    print(timeline_json(lease, steps), timeline_table(steps));
    return {};
  }

  Result<void> operator()(const Describe& what) { return describe(what, output_, dependencies_); }

  Result<void> operator()(const Revoke& revoke) {
    const Json reply =
        TRY(dependencies_.call(wire::LeaseRevoke::kMethod, revoke.message.to_json()));
    const auto touched = TRY(client::parse_message<wire::LeasesTouched>(reply));
    if (touched.leases.empty()) return nothing_revoked(revoke.message);
    if (!revoke.wait) return print_touched(reply, touched);
    const auto leases = TRY(wait_until_fenced(
        touched.leases, std::chrono::milliseconds(revoke.timeout_ms), dependencies_));
    print_items(leases, leases_table);
    return check_none_quarantined(leases);
  }
  Result<void> operator()(const Drain& drain) {
    const Json reply = TRY(dependencies_.call(wire::LeaseDrain::kMethod, drain.message.to_json()));
    const auto touched = TRY(client::parse_message<wire::LeasesTouched>(reply));
    // a worker may still have revoked leases
    const bool has_answer = !drain.wait || drain.message.tenant;
    if (touched.leases.empty() && has_answer)
      return print_ended(reply, "DRAINED", name_of(drain.message));
    if (!drain.wait) return print_touched(reply, touched);
    const auto leases = TRY(wait_until_drained(touched.leases, drain, dependencies_));
    print_items(leases, leases_table);
    TRY(check_all_ended_normally(std::span(leases).first(touched.leases.size())));
    if (!drain.message.worker) return {};
    return check_worker_drained(*drain.message.worker, dependencies_);
  }
  Result<void> operator()(const wire::LeaseUndrain& undrain) {
    const Json reply = TRY(dependencies_.call(wire::LeaseUndrain::kMethod, undrain.to_json()));
    return print_name(reply, "UNDRAINED", undrain.tenant ? undrain.tenant->value : *undrain.worker);
  }
  Result<void> operator()(const ReplaceWorker& replace) {
    const Json reply =
        TRY(dependencies_.call(wire::WorkerReplace::kMethod, replace.message.to_json()));
    const auto touched = TRY(client::parse_message<wire::LeasesTouched>(reply));
    const auto old = TRY(wait_until_replaced(touched.leases.size(), replace, dependencies_));
    print(old.to_json(), replaced_table(old));
    return {};
  }
  Result<void> operator()(const auto& change) {
    const Printed printed = TRY(make_change(change, dependencies_));
    print(printed.document, printed.table);
    return {};
  }
  Result<void> operator()(const WaitWorkers& wait) {
    TRY(wait_until_ready(named_.names, std::chrono::milliseconds(wait.timeout_ms), dependencies_));
    return show_workers();
  }
  Result<void> operator()(const wire::QuarantineRelease& release) {
    const Json reply = TRY(dependencies_.call(wire::QuarantineRelease::kMethod, release.to_json()));
    const auto released = TRY(client::parse_message<wire::QuarantineReleased>(reply));
    print(reply,
          {.columns = {{"RELEASED", true}}, .rows = {{cli::bytes_text(released.size_bytes)}}});
    return {};
  }
  Result<void> operator()(const PublishPrefix& publish) {
    wire::PrefixPublish message = publish.message;
    message.text = TRY(read_prefix_text(publish.file));
    const Json reply = TRY(dependencies_.call(wire::PrefixPublish::kMethod, message.to_json()));
    const auto published = TRY(client::parse_message<wire::PrefixPublished>(reply));
    print(reply, {.columns = {{"LEASE"}, {"TOKENS", true}, {"BLOCKS", true}},
                  .rows = {{to_string(published.lease),
                            published.tokens == 0 ? "-" : std::to_string(published.tokens),
                            std::to_string(published.blocks)}}});
    return {};
  }
  Result<void> operator()(const CreateKey& create) {
    const CreatedKey created = TRY(create_key(create, dependencies_));
    print(created.document, created.table);
    if (dependencies_.out->good() || !created.is_new) return {};
    return revoke_unprinted_key(created.id, {Errc::DiskFull, "it could not be written to stdout"},
                                dependencies_);
  }
  Result<void> operator()(const UpdateKey& update) {
    const wire::KeyView key = TRY(update_key(update, dependencies_));
    print(key.to_json(), keys_table({key}));
    return {};
  }
  Result<void> operator()(const wire::KeyRevoke& revoke) {
    const Json reply = TRY(dependencies_.call(wire::KeyRevoke::kMethod, revoke.to_json()));
    return print_ended(reply, "KEY REVOKED", revoke.key.value);
  }
  Result<void> operator()(const wire::TenantAdmit& admit) {
    const Json reply = TRY(dependencies_.call(wire::TenantAdmit::kMethod, admit.to_json()));
    return print_name(reply, "TENANT", admit.tenant.value);
  }
  Result<void> operator()(const wire::TenantRemove& remove) {
    const Json reply = TRY(dependencies_.call(wire::TenantRemove::kMethod, remove.to_json()));
    return print_ended(reply, "TENANT REMOVED", remove.tenant.value);
  }

 private:
  Result<void> show_workers() {
    const Json reply = TRY(dependencies_.call("worker.list", Json::object()));
    const auto workers = TRY(client::parse_items<wire::WorkerView>(reply));
    return print_list(reply.at("items"), workers_table(workers));
  }

  Result<void> show_prefixes() {
    auto leases = TRY(client::all_pages<wire::LeaseView>(dependencies_.call));
    std::erase_if(leases, [](const wire::LeaseView& lease) {
      return lease.scope != wire::LeaseScope::Shared || lease.state == LeaseState::Fenced;
    });
    return print_list(json_items(leases), prefixes_table(leases));
  }

  Result<void> check_is_known(const TenantId& tenant) {
    const auto tenants = TRY(client::all_pages<wire::TenantView>(dependencies_.call));
    const auto is_it = [&](const wire::TenantView& view) { return view.policy.tenant == tenant; };
    if (std::ranges::any_of(tenants, is_it)) return {};
    return fail(Errc::UnknownTenant,
                fmt::format("no tenant {}; see `brokerctl tenants`", tenant.value));
  }

  template <class View>
  Result<void> list(cli::Table (*table)(const std::vector<View>&)) {
    const auto views = TRY(client::all_pages<View>(dependencies_.call));
    return print_list(json_items(views), table(views));
  }

  void print(const Json& document, const cli::Table& table) {
    if (output_ == Output::Json) {
      *dependencies_.out << cli::json_text(document, json_indent_) << '\n';
    } else if (output_ == Output::Name) {
      std::set<std::string> printed;  // a worker's predecessors have its name
      for (const auto& row : table.rows)
        if (printed.insert(row.front()).second) *dependencies_.out << row.front() << '\n';
    } else {
      *dependencies_.out << cli::render(output_ == Output::Wide ? table : cli::narrow(table));
    }
    dependencies_.out->flush();
  }

  /// Prints notes for people, in whole lines, below a table.
  void print_notes(const std::string& notes) {
    if (output_ != Output::Json) *dependencies_.out << notes;
    dependencies_.out->flush();
  }

  template <class View>
  void print_items(const std::vector<View>& views, cli::Table (*table)(const std::vector<View>&)) {
    print({{"items", json_items(views)}}, table(views));
  }

  /// Prints a list, limited to the elements that the command line names. `table` has one row for
  /// each item, with its name first.
  Result<void> print_list(Json items, cli::Table table) {
    const cli::Table all = table;
    const auto missing = keep_named(named_, items, table);
    if (!missing || !items.empty()) print({{"items", std::move(items)}}, table);
    if (!missing) return {};
    if (named_.noun == "lease") {
      const LeaseId lease = TRY(LeaseId::parse(*missing));
      (void)TRY(find_lease(lease, dependencies_));
    }
    return std::unexpected(unknown_name(named_.noun, *missing, all));
  }

  Result<void> print_touched(const Json& document, const wire::LeasesTouched& touched) {
    cli::Table table{.columns = {{"LEASE"}}};
    for (const LeaseId lease : touched.leases) table.rows.push_back({to_string(lease)});
    print(document, table);
    return {};
  }

  Result<void> print_name(const Json& reply, const char* title, const std::string& name) {
    print(reply, {.columns = {{title}}, .rows = {{name}}});
    return {};
  }

  /// Prints the name of a tenant or key that was removed or drained, and the leases that the call
  /// named.
  Result<void> print_ended(const Json& reply, const char* title, const std::string& name) {
    const auto touched = TRY(client::parse_message<wire::LeasesTouched>(reply));
    cli::Table table{.columns = {{title}, {"LEASE"}}};
    for (const LeaseId lease : touched.leases) table.rows.push_back({name, to_string(lease)});
    if (touched.leases.empty()) table.rows.push_back({name, "-"});
    print(reply, table);
    return {};
  }

  Output output_;
  int json_indent_;  // -1: one line
  const Named& named_;
  const Dependencies& dependencies_;
};

/// Separates two lists for people: clears the screen of a terminal, otherwise prints an empty line.
void separate(bool is_first, Output output, const Dependencies& dependencies) {
  if (output == Output::Json) return;
  if (dependencies.screen_size) {
    *dependencies.out << cli::kClearScreen;
  } else if (!is_first) {
    *dependencies.out << '\n';
  }
}

}  // namespace

Result<void> run(const Arguments& arguments, const Dependencies& given) {
  Dependencies dependencies = given;
  // A command that repeats or follows ends when its output fails.
  dependencies.wait = [&given](Duration duration) {
    return given.out->good() && given.wait(duration);
  };
  if (!arguments.watch_ms) return std::visit(Runner(arguments, dependencies), arguments.verb);
  for (bool is_first = true;; is_first = false) {
    separate(is_first, arguments.output, dependencies);
    TRY(std::visit(Runner(arguments, dependencies), arguments.verb));
    if (!dependencies.wait(std::chrono::milliseconds(*arguments.watch_ms))) return {};
  }
}

}  // namespace leasehold::brokerctl
