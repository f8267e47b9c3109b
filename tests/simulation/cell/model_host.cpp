#include "tests/simulation/cell/model_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::cell::simulation {

ModelHost::ModelHost(Network& network, const Terms& terms, Machine machine, Links links)
    : network_(network),
      machine_(std::move(machine)),
      agent_machine_(machine_),
      broker_machine_(machine_),
      broker_{.machine = broker_machine_,
              .core = std::make_unique<HostBroker>(HostBroker::Links{
                  .send = [this](ToWorker message) { worker_.receive(std::move(message)); },
                  .notify =
                      [this](ConnectionId connection, const wire::CellPartChanged& changed) {
                        agent_.notify(connection, changed);
                      }})},
      agent_(network, terms, agent_machine_, broker_),
      worker_(network, terms, machine_, broker_,
              {.resolve =
                   [this](std::size_t tenant, std::optional<HostName> moved_from,
                          HostWorker::OnResolved done) {
                     agent_.resolve(tenant, moved_from, std::move(done));
                   },
               .want =
                   [this](std::size_t tenant, const std::optional<HostName>& moved_from) {
                     agent_.wants_more(tenant, moved_from);
                   },
               .send_news =
                   [this, send = std::move(links.send_news)](std::vector<TextNews> news) {
                     if (!is_unlinked_) send(std::move(news));
                   },
               .committed = std::move(links.committed)}) {}

void ModelHost::start() {
  agent_.start();
  worker_.start();
}

void ModelHost::stop(TimePoint until) {
  machine_.stopped_until = std::max(machine_.stopped_until, until);
  stop_agent(until);
  stop_broker(until);
}

void ModelHost::stop_agent(TimePoint until) {
  agent_machine_.stopped_until = std::max(agent_machine_.stopped_until, until);
}

void ModelHost::stop_broker(TimePoint until) {
  broker_machine_.stopped_until = std::max(broker_machine_.stopped_until, until);
  broker_.core->stop(network_.clock_of(machine_));
}

void ModelHost::restart_broker() {
  network_.trace(fmt::format("{} broker starts again", machine_.name));
  network_.count(Counted::BrokerRestarts);
  ++broker_.life;
  broker_machine_.stopped_until = machine_.stopped_until;
  broker_.core = std::make_unique<HostBroker>(*broker_.core, network_.clock_of(machine_));
  agent_.broker_restarted();
  worker_.broker_restarted();
}

void ModelHost::begin(StartText text) {
  network_.at(network_.between(1, 40), &machine_,
              [this, text = std::move(text)] { worker_.begin(text); });
}

void ModelHost::cancel(std::uint64_t attempt) {
  network_.at(network_.between(1, 40), &machine_, [this, attempt] { worker_.cancel(attempt); });
}

}  // namespace leasehold::cell::simulation
