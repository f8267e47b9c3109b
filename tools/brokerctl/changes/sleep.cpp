#include "tools/brokerctl/changes/sleep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/views.hpp"
#include "tools/brokerctl/wait/wait.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kWakePollInterval = std::chrono::milliseconds(20);

template <class View>
wire::Json items_of(const std::vector<View>& views) {
  wire::Json items = wire::Json::array();
  for (const View& view : views) items.push_back(view.to_json());
  return items;
}

Result<wire::WorkerView> find_ready(const std::string& worker, const Dependencies& dependencies) {
  const wire::Json reply = TRY(dependencies.call("worker.list", wire::Json::object()));
  const auto listed = TRY(client::parse_items<wire::WorkerView>(reply));
  const auto found = std::ranges::find_if(listed, [&](const wire::WorkerView& each) {
    return each.worker == worker && each.state == "ready";
  });
  if (found != listed.end()) return *found;
  return fail(Errc::UnknownWorker,
              fmt::format("worker {} is not ready any more; see `brokerctl workers`", worker));
}

Result<void> check_wakes(const wire::WorkerView& worker) {
  if (worker.out_of_service) {
    return fail(Errc::MissingWeight, fmt::format("worker {} is out of service: {}", worker.worker,
                                                 printable(*worker.out_of_service)));
  }
  if (worker.drain != "asleep") return {};
  return fail(Errc::PoolExhausted,
              fmt::format("worker {} fell asleep again; its event worker_service in `brokerctl "
                          "events` says why; let another worker sleep first",
                          worker.worker));
}

/// Polls until the worker has its weights, and returns its view.
Result<wire::WorkerView> wait_until_awake(const std::string& worker, Duration timeout,
                                          const Dependencies& dependencies) {
  const TimePoint deadline = dependencies.clock->now() + timeout;
  while (true) {
    const wire::WorkerView view = TRY(find_ready(worker, dependencies));
    TRY(check_wakes(view));
    if (view.drain != "waking") return view;
    const bool is_late = dependencies.clock->now() >= deadline;
    if (!is_late && dependencies.wait(kWakePollInterval)) continue;
    return fail(Errc::TimedOut,
                fmt::format("{}; worker {} is still waking; see `brokerctl workers`",
                            is_late ? "not awake in time" : "interrupted", worker));
  }
}

}  // namespace

Result<Printed> make_change(const SleepWorker& sleep, const Dependencies& dependencies) {
  const wire::Json reply =
      TRY(dependencies.call(wire::WorkerSleep::kMethod, sleep.message.to_json()));
  const auto touched = TRY(client::parse_message<wire::LeasesTouched>(reply));
  if (!sleep.wait || touched.leases.empty()) {
    cli::Table table{.columns = {{"ASLEEP"}, {"LEASE"}}};
    for (const LeaseId lease : touched.leases)
      table.rows.push_back({sleep.message.worker, to_string(lease)});
    if (touched.leases.empty()) table.rows.push_back({sleep.message.worker, "-"});
    return Printed{.document = reply, .table = std::move(table)};
  }
  const auto leases = TRY(
      wait_until_fenced(touched.leases, std::chrono::milliseconds(sleep.timeout_ms), dependencies));
  return Printed{.document = {{"items", items_of(leases)}}, .table = leases_table(leases)};
}

Result<Printed> make_change(const WakeWorker& wake, const Dependencies& dependencies) {
  const std::string& worker = wake.message.worker;
  const wire::Json reply =
      TRY(dependencies.call(wire::WorkerWake::kMethod, wake.message.to_json()));
  if (!wake.wait)
    return Printed{.document = reply, .table = {.columns = {{"WAKING"}}, .rows = {{worker}}}};
  const std::vector<wire::WorkerView> awake{
      TRY(wait_until_awake(worker, std::chrono::milliseconds(wake.timeout_ms), dependencies))};
  return Printed{.document = {{"items", items_of(awake)}}, .table = workers_table(awake)};
}

}  // namespace leasehold::brokerctl
