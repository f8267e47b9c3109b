#include "tools/gateway/gateway_metrics.hpp"

#include "common/metrics/exposition.hpp"
#include "tools/gateway/hosts.hpp"

namespace leasehold::gateway {
namespace {

void add_hosts(const Hosts& hosts, TimePoint now, metrics::Exposition& page) {
  const HostTable& table = hosts.table();
  for (const HostId host : hosts.all()) {
    page.gauge({"leasehold_gateway_host_ready", "1 if new texts may go to the host"},
               hosts.state(host) == HostState::Ready ? 1 : 0, {{"host", table.address(host)}});
  }
  for (const HostId host : hosts.all()) {
    page.gauge(
        {"leasehold_gateway_host_load", "Requests that the host runs, or this gateway there"},
        table.load(host, now), {{"host", table.address(host)}});
  }
  for (const auto& [model, identities] : hosts.identities()) {
    page.gauge({"leasehold_gateway_model_identities",
                "Ways in which the hosts compute the model; texts move between equal ones only"},
               static_cast<double>(identities.size()), {{"model", model}});
  }
}

void add_cell(const CellMetrics& cell, TimePoint now, metrics::Exposition& page) {
  page.gauge({"leasehold_gateway_cell_hosts", "Hosts of the cell, as etcd has them"},
             static_cast<double>(cell.members));
  page.counter({"leasehold_gateway_expired_hosts_total", "Silent hosts that this gateway expired"},
               static_cast<double>(cell.expired));
  if (cell.reached_at == TimePoint{}) return;
  page.gauge({"leasehold_gateway_etcd_age_seconds", "Time since the newest answer of etcd"},
             std::chrono::duration<double>(now - cell.reached_at).count());
}

}  // namespace

std::string GatewayMetrics::page(const Hosts& hosts, TimePoint now) const {
  metrics::Exposition page;
  for (const auto& [status, count] : requests) {
    page.counter({"leasehold_gateway_requests_total",
                  "Answered requests by status; 0: the client left first"},
                 static_cast<double>(count), {{"status", std::to_string(status)}});
  }
  for (std::size_t cause = 1; cause < moves.size(); ++cause) {
    page.counter({"leasehold_gateway_moves_total", "Hosts that were asked to continue a text"},
                 static_cast<double>(moves[cause]),
                 {{"cause", std::string(name(static_cast<MoveCause>(cause)))}});
  }
  for (const auto& [code, count] : failed_texts) {
    page.counter({"leasehold_gateway_failed_texts_total", "Texts that ended with an error"},
                 static_cast<double>(count), {{"code", code}});
  }
  page.counter({"leasehold_gateway_not_replayable_total",
                "Texts that could not continue elsewhere, because memory for bodies was short"},
               static_cast<double>(not_replayable));
  page.counter({"leasehold_gateway_answer_bytes_total", "Bytes of texts sent to clients"},
               static_cast<double>(bytes));
  page.gauge({"leasehold_gateway_running_texts", "Texts in progress"}, running);
  page.gauge({"leasehold_gateway_running_uploads", "Uploads in progress"}, uploads);
  page.gauge({"leasehold_gateway_connections", "Connections of clients"}, connections);
  if (cell) add_cell(*cell, now, page);
  add_hosts(hosts, now, page);
  return page.text();
}

}  // namespace leasehold::gateway
