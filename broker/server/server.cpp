#include "broker/server/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "broker/decide/deciders.hpp"
#include "broker/server/connections/operators.hpp"
#include "broker/server/lists.hpp"
#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

/// Timeout for a worker's reply, as a multiple of the fence timeout.
constexpr int kCallTimeoutFactor = 5;

LentMemory& lent_memory(AgentMemory* device, HostMemory& host) {
  if (device != nullptr) return *device;
  return host;
}

}  // namespace

BrokerServer::BrokerServer(boost::asio::io_context& io, StartupState startup,
                           ServerDependencies dependencies, const BrokerOptions& options)
    : startup_(std::move(startup)),
      host_(io, startup_.memory),
      log_(EventLog::kCapacity, std::move(dependencies.event_file)),
      spill_(io, std::move(dependencies.spill)),
      quiet_(io, dependencies.clock, [this](Event event) { loop_.post(std::move(event)); }),
      links_(io, {.on_exit = [this](ProcessExit proof) { loop_.post(WorkerExited{proof}); },
                  .on_wakeup = [this] { quiet_.observe(); }}),
      replies_(startup_.table, lent_memory(dependencies.device_memory, host_), links_,
               LeaseWaits(io, state(), dependencies.clock, [this] { loop_.flush(); })),
      effects_({.io = io,
                .table = startup_.table,
                .memory = lent_memory(dependencies.device_memory, host_),
                .host = host_,
                .spill = spill_,
                .links = links_,
                .quiet = quiet_,
                .replies = replies_,
                .log = log_,
                .journal = *startup_.journal,
                .fd_store = dependencies.fd_store,
                .call_timeout = kCallTimeoutFactor * options.fence_timeout,
                .find_peer = [this](ConnectionId id) { return connections_.find(id); }},
               [this](Event event) { loop_.post(std::move(event)); }),
      loop_(io, state(), dependencies.clock, effects_),
      ahead_clearing_(io, state(), host_, options.clear_ahead_bytes),
      connections_(io, std::move(dependencies.acceptor), connection_handlers(), dependencies.clock,
                   options.worker_uids),
      previous_holders_(
          io, [this](const ProcessIdentity& it) { loop_.post(PreviousHolderExited{it}); }),
      dispatch_(dispatch_hooks(io, dependencies.clock, options.allow_memory_check),
                {options.worker_uids, options.observer_uids}),
      timers_({.state = state(),
               .clock = dependencies.clock,
               .loop = loop_,
               .table = startup_.table,
               .connections = connections_},
              startup_.table_kept && std::ranges::any_of(options.worker_uids, is_operator)),
      signals_({.io = io, .state = state(), .loop = loop_, .connections = connections_},
               std::move(dependencies.reload), options.config) {
  loop_.on_idle = [this] { after_events(); };
  if (dependencies.agent != nullptr) watch_device(*dependencies.agent, *dependencies.device_memory);
}

/// When the agent ends, the memory objects are dropped before DeviceLost is decided.
void BrokerServer::watch_device(DeviceAgentLink& agent, AgentMemory& memory) {
  agent.set_handlers({.on_lost =
                          [this, &memory](const Error& why) {
                            loop_.flush();
                            memory.forget_all();
                            loop_.post(DeviceLost{why.detail});
                          },
                      .on_recovered = [this] { loop_.post(DeviceRecovered{}); }});
}

/// Order: first worker segments, then lease words, then the effects of recovery, then new
/// connections.
Result<void> BrokerServer::start(boost::asio::io_context& io, KeptDescriptors kept) {
  TRY(timers_.create(io));
  restore_workers(kept);
  for (const auto& word : startup_.recovered.words) {
    startup_.table.restore(word.lease, word.to, word.reason);
  }
  loop_.begin(startup_.recovered.effects);
  timers_.watch_clock();
  watch_previous_holders();
  signals_.watch();
  timers_.arm_wakeup();
  connections_.start();
  notify_service_manager("READY=1");
  return {};
}

void BrokerServer::restore_workers(KeptDescriptors& kept) {
  for (const auto& [id, worker] : state().workers.all()) {
    if (!startup_.kept_workers.contains(id)) {
      links_.watch_orphan(id, {worker.pid, worker.start_ticks});
      continue;
    }
    // This precedes the link, whose restore may find that the worker has exited.
    restore_spill(worker);
    const auto restored = links_.restore(id, {.segment = kept.take(kept::segment(id.value)),
                                              .wakeup_fd = kept.take(kept::wakeup_fd(id.value)),
                                              .pidfd = kept.take(kept::pidfd(id.value))});
    if (restored) continue;
    spdlog::warn("could not restore a worker's descriptors attachment={} detail=\"{}\"", id.value,
                 restored.error().detail);
    links_.watch_orphan(id, {worker.pid, worker.start_ticks});
  }
}

void BrokerServer::restore_spill(const Worker& worker) {
  auto node = startup_.kept_spills.extract(worker.id);
  if (node.empty()) return;
  const auto restored = spill_.restore(worker.id, worker.uid, std::move(node.mapped()));
  if (restored) return;
  spdlog::warn("could not restore a spill file attachment={} detail=\"{}\"", worker.id.value,
               restored.error().detail);
}

void BrokerServer::watch_previous_holders() {
  state().leases.for_each_open([this](const LeaseRecord& record) {
    const bool unclaimed = record.is(LeaseState::Live) && record.holder_process.pid != 0 &&
                           record.scope == wire::LeaseScope::Tenant;
    if (unclaimed) previous_holders_.watch(record.holder_process);
  });
}

Connections::Handlers BrokerServer::connection_handlers() {
  return {.on_call =
              [this](ConnectionId id, const std::string& method, control::Payload params,
                     control::Responder respond) {
                const auto peer = connections_.find(id);
                dispatch_.call(method,
                               {id, peer->credentials(), std::move(params), std::move(respond)});
                links_.drop_prepared(id);
              },
          .on_notification =
              [this](ConnectionId id, const std::string& method, control::Payload params) {
                const auto peer = connections_.find(id);
                dispatch_.notification(method, id, peer->credentials(), params);
              },
          .on_closed =
              [this](ConnectionId id) {
                replies_.lease_waits().forget(id);
                loop_.post(ConnectionClosed{id});
              },
          .on_holder_exit = [this](ConnectionId id) { loop_.post(HolderExited{id}); },
          .on_change = [this] { timers_.arm_wakeup(); }};
}

DispatchHooks BrokerServer::dispatch_hooks(boost::asio::io_context& io, const Clock& clock,
                                           bool allow_memory_check) {
  const ListSources sources{.io = io,
                            .state = state(),
                            .log = log_,
                            .memory = startup_.memory,
                            .spill = spill_,
                            .table = startup_.table,
                            .journal = *startup_.journal,
                            .effects = effects_,
                            .clock = clock,
                            .started = clock.now(),
                            .allow_memory_check = allow_memory_check};
  return {
      .wait_for_answer =
          [this](control::Responder respond) { return replies_.add(std::move(respond)); },
      .watch_holder = [this](ConnectionId id) { return connections_.watch_holder(id); },
      .start_ticks = [this](ConnectionId id) { return connections_.start_ticks(id); },
      .prepare_worker =
          [this](ConnectionId id, const wire::WorkerAttach& attach) {
            return prepare_worker(id, attach);
          },
      .take_memory =
          [this](ConnectionId id, const wire::LeaseRedeliver& redeliver,
                 std::vector<UniqueFd> fds) { return take_memory(id, redeliver, std::move(fds)); },
      .open_spill = [this](ConnectionId id,
                           control::Responder respond) { open_spill(id, std::move(respond)); },
      .query =
          [this, sources](const Query& query, const control::Json& params,
                          control::Responder respond) {
            loop_.flush();
            query.answer(sources, params, std::move(respond));
          },
      .count_touched =
          [this](std::move_only_function<void()> then) { host_.count_touched(std::move(then)); },
      .pass_to_worker =
          [this](const std::string& worker, const std::string& method, const control::Json& params,
                 auto on_reply) { pass_to_worker(worker, method, params, std::move(on_reply)); },
      .wait_for_leases =
          [this](ConnectionId id, wire::LeaseWait wait, control::Responder& respond) {
            loop_.flush();
            return replies_.lease_waits().add(id, std::move(wait), respond);
          },
      .post = [this](Event event) { loop_.post(std::move(event)); },
      .admit_events =
          [this](ConnectionId id, std::size_t reported) {
            return connections_.admit_events(id, reported);
          }};
}

/// Lends the worker a spill file. The file is stored for a restart before the worker gets it. If
/// the call fails, the worker serves without a file.
void BrokerServer::open_spill(ConnectionId id, control::Responder respond) {
  const Worker* worker = state().workers.find_by_connection(id);
  if (worker == nullptr || worker->state > WorkerState::Ready)
    return respond(fail(Errc::PermissionDenied, "call worker.attach first"));
  const bool is_new = spill_.find(worker->id) == nullptr;
  spill_.lend(
      worker->id, worker->uid,
      [this, is_new, worker = worker->id,
       respond = std::move(respond)](Result<SpillSpace::File> file) mutable {
        if (!file) {
          spdlog::warn("worker gets no spill file attachment={} error={} detail=\"{}\"",
                       worker.value, name(file.error().code), file.error().detail);
          return respond(std::unexpected(std::move(file).error()));
        }
        control::Payload reply{.body = wire::SpillOpened{.size_bytes = file->size_bytes}.to_json()};
        if (file->fd) {
          if (is_new) effects_.keep(kept::spill(worker.value), file->fd);
          spdlog::info("spill file lent attachment={} size_bytes={}", worker.value,
                       file->size_bytes);
          reply.fds.push_back(std::move(file->fd));
        }
        respond(std::move(reply));
      });
}

void BrokerServer::pass_to_worker(const std::string& worker_name, const std::string& method,
                                  const control::Json& params, PassedCalls::OnReply on_reply) {
  const Worker* worker = state().workers.find_serving(worker_name);
  if (worker == nullptr) {
    return on_reply(fail(Errc::UnknownWorker,
                         fmt::format("no worker {} serves; see `brokerctl workers`", worker_name)));
  }
  const WorkerLink* link = links_.find(worker->id);
  links_.passed_calls().pass({worker->id, link == nullptr ? nullptr : link->peer.get()}, method,
                             params, std::move(on_reply));
}

Result<void> BrokerServer::prepare_worker(ConnectionId id, const wire::WorkerAttach& attach) {
  if (!attach.resume) return links_.prepare(id, connections_.find(id));
  links_.prepare_resume(id, connections_.find(id));
  return {};
}

/// Takes redelivered memory. Accepts only extents that the state lists for this worker, and only
/// the objects that were granted.
Result<void> BrokerServer::take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                                       std::vector<UniqueFd> fds) {
  TRY(check_redelivery(state(), id, redeliver));
  if (fds.size() != redeliver.extents.size()) {
    return fail(Errc::BadRequest, fmt::format("{} extents came with {} descriptors; send one for "
                                              "each extent",
                                              redeliver.extents.size(), fds.size()));
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    TRY(startup_.memory.redeliver(redeliver.extents[i], std::move(fds[i])));
  }
  return {};
}

/// Runs when the effects of all decided events are performed.
void BrokerServer::after_events() {
  quiet_.observe();
  replies_.lease_waits().poll();
  connections_.bound_output();
  ahead_clearing_.poll();
  timers_.after_event();
  signals_.stop_if_fenced();
}

}  // namespace leasehold
