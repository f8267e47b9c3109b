#include "tools/brokerctl/run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/brokerctl/views.hpp"
#include "tools/brokerctl/wait_fenced.hpp"
#include "tools/cli/all_leases.hpp"
#include "tools/cli/answer.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

/// One visit per verb; each either prints a table or the document the table was made from.
class Runner {
 public:
  Runner(Output output, const Surroundings& around) : output_(output), around_(around) {}

  Result<void> operator()(const ShowStatus&) {
    const Json reply = TRY(around_.call("status", Json::object()));
    print(reply, status_table(TRY(cli::read_answer<wire::StatusView>(reply))));
    return {};
  }
  Result<void> operator()(const ListTenants&) {
    return list<wire::TenantView>("tenant.list", tenants_table);
  }
  Result<void> operator()(const ListExtents&) {
    return list<wire::ExtentView>("extent.list", extents_table);
  }
  Result<void> operator()(const ListWorkers&) {
    return list<wire::WorkerView>("worker.list", workers_table);
  }

  Result<void> operator()(const ListLeases& wanted) {
    auto leases = TRY(cli::all_leases(around_.call));
    std::erase_if(leases, [&](const wire::LeaseView& lease) {
      return (wanted.tenant && lease.tenant != wanted.tenant->value) ||
             (wanted.state && lease.state != *wanted.state);
    });
    print_leases(leases);
    return {};
  }

  Result<void> operator()(const ListEvents& wanted) {
    ListEvents next = wanted;
    do {
      const Json reply =
          TRY(around_.call("event.list", {{"after", next.after}, {"limit", next.limit}}));
      TRY(show_events(reply, wanted.follow));
      next.after = TRY(last_sequence(reply, next.after));
    } while (wanted.follow && around_.wait(std::chrono::milliseconds(100)));
    return {};
  }

  Result<void> operator()(const Revoke& revoke) {
    const Json reply = TRY(around_.call(wire::LeaseRevoke::kMethod, revoke.message.to_json()));
    const auto touched = TRY(cli::read_answer<wire::LeasesTouched>(reply));
    if (!revoke.wait) return print_touched(reply, touched);
    print_leases(TRY(
        wait_until_fenced(touched.leases, std::chrono::milliseconds(revoke.timeout_ms), around_)));
    return {};
  }
  Result<void> operator()(const wire::LeaseDrain& drain) {
    const Json reply = TRY(around_.call(wire::LeaseDrain::kMethod, drain.to_json()));
    return print_touched(reply, TRY(cli::read_answer<wire::LeasesTouched>(reply)));
  }
  Result<void> operator()(const wire::TenantAdmit& admit) {
    const Json reply = TRY(around_.call(wire::TenantAdmit::kMethod, admit.to_json()));
    print(reply, {.columns = {{"TENANT"}}, .rows = {{admit.tenant.value}}});
    return {};
  }

 private:
  template <class View>
  Result<void> list(const char* method, cli::Table (*table)(const std::vector<View>&)) {
    const Json reply = TRY(around_.call(method, Json::object()));
    print(reply, table(TRY(items_of<View>(reply))));
    return {};
  }

  void print(const Json& document, const cli::Table& table) {
    if (output_ == Output::Json) {
      *around_.out << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
      *around_.out << cli::render(table);
    }
    around_.out->flush();
  }

  void print_leases(const std::vector<wire::LeaseView>& leases) {
    Json items = Json::array();
    for (const wire::LeaseView& lease : leases) items.push_back(lease.to_json());
    print({{"items", std::move(items)}}, leases_table(leases));
  }

  Result<void> print_touched(const Json& document, const wire::LeasesTouched& touched) {
    cli::Table table{.columns = {{"LEASE"}}};
    for (const LeaseId lease : touched.leases) table.rows.push_back({to_string(lease)});
    print(document, table);
    return {};
  }

  Result<void> show_events(const Json& reply, bool follow) {
    const auto items = reply.find("items");
    if (items == reply.end() || !items->is_array()) {
      return fail(Errc::MalformedMessage, "the broker's answer has no list of events");
    }
    if (output_ == Output::Json && !follow) {
      print(reply, {});
      return {};
    }
    for (const Json& event : *items) {
      if (!event.is_object()) return fail(Errc::MalformedMessage, "an event is not an object");
      *around_.out << (output_ == Output::Json
                           ? event.dump(-1, ' ', false, Json::error_handler_t::replace)
                           : event_line(event))
                   << '\n';
    }
    around_.out->flush();
    return {};
  }

  static Result<std::uint64_t> last_sequence(const Json& reply, std::uint64_t before) {
    for (const Json& event : reply.at("items")) {
      const auto sequence = event.find("sequence");
      if (sequence == event.end() || !sequence->is_number_unsigned()) {
        return fail(Errc::MalformedMessage, "an event has no sequence number");
      }
      before = std::max(before, sequence->get<std::uint64_t>());
    }
    return before;
  }

  Output output_;
  const Surroundings& around_;
};

}  // namespace

Result<void> run(const Arguments& arguments, const Surroundings& around) {
  return std::visit(Runner(arguments.output, around), arguments.verb);
}

}  // namespace leasehold::brokerctl
