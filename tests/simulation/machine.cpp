#include "tests/simulation/machine.hpp"

#include <fmt/format.h>

#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

Connection& Machine::connect(Process& client, Process& server) {
  auto made = std::make_unique<Connection>();
  made->id = ConnectionId{next_connection_++};
  made->ends[Connection::kClient].process = &client;
  made->ends[Connection::kServer].process = &server;
  connections_.push_back(std::move(made));
  Connection& connection = *connections_.back();
  if (server.is_dead()) close(connection, Connection::kServer);
  return connection;
}

void Machine::send(Connection& connection, int to, Message message) {
  if (connection.is_open()) connection.ends[to].inbox.push_back(std::move(message));
}

void Machine::close(Connection& connection, int side) {
  Connection::End& mine = connection.ends[side];
  Connection::End& other = connection.ends[1 - side];
  if (!mine.open) return;
  mine.open = false;
  mine.inbox.clear();
  if (other.open) {
    other.inbox.push_back([&other] {
      other.open = false;
      if (other.on_closed) other.on_closed();
    });
  }
}

/// What the dead process handed to the kernel still arrives; its own buffers are lost.
void Machine::close_dead_end(Connection& connection, int side) {
  Connection::End& other = connection.ends[1 - side];
  if (connection.ends[side].open && other.open && !other.inbox.empty()) {
    other.inbox.resize(other.inbox.size() - pick(other.inbox.size() + 1));
  }
  close(connection, side);
}

bool Machine::deliver() {
  const auto count = static_cast<std::uint32_t>(connections_.size() * 2);
  const std::uint32_t first = pick(count + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = (first + i) % count;
    Connection::End& end = connections_[index / 2]->ends[index % 2];
    if (!end.open || end.inbox.empty()) continue;
    if (!end.process->is_running() || !end.process->accepts()) continue;
    const Message message = std::move(end.inbox.front());
    end.inbox.pop_front();
    message();
    return true;
  }
  return false;
}

bool Machine::reach(FaultSite site, Process& process) {
  if (!fault || fault->triggered != nullptr || fault->site != site) return false;
  if (--fault->arrivals_left > 0) return false;
  fault->triggered = &process;
  if (tracing) {
    trace(fmt::format("{} {}", name(site), fault->action == FaultAction::Kill ? "kills" : "stops"));
  }
  process.stopped_at = clock.now();
  process.life = Life::Stopped;  // a killed process, too, takes no further step
  process.kill_pending = process.kill_pending || fault->action == FaultAction::Kill;
  return true;
}

void Machine::reach_then(FaultSite site, Process& process, Message rest) {
  if (!reach(site, process)) return rest();
  process.unfinished.push_back(std::move(rest));
}

void Machine::kill(Process& process) {
  process.kill_pending = false;
  if (process.is_dead()) return;
  process.life = Life::Dead;
  if (tracing) trace(fmt::format("a process with role {} dies", static_cast<int>(process.role())));
  process.unfinished.clear();
  process.on_death();
  for (const auto& connection : connections_) {
    for (const int side : {Connection::kClient, Connection::kServer}) {
      if (connection->ends[side].process == &process) close_dead_end(*connection, side);
    }
  }
}

}  // namespace leasehold::simulation
