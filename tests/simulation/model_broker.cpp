#include "tests/simulation/model_broker.hpp"

#include <fmt/format.h>

#include "tests/simulation/adapters/text_check.hpp"
#include "tests/simulation/agent_client.hpp"
#include "tests/simulation/model_worker.hpp"
#include "tests/simulation/reserve_check.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kMaxSharedBlocks = 3 * kExtentBytes / kBlockBytes;  // of a worker

BrokerConfig config(bool on_card, bool has_adapters) {
  return {.slot_count = has_adapters ? 10u : 5u,
          .capacity_bytes = kExtents * kExtentBytes,
          .swap_capacity_bytes = kSwapExtents * kExtentBytes,
          .weights_capacity_bytes = 8ull << 20,
          .max_shared_blocks = kMaxSharedBlocks,
          .max_shared_adapter_bytes = 2 * kExtentBytes,  // two versions of one
          .timeouts = {.fence = std::chrono::seconds(2),
                       .adopt_grace = std::chrono::seconds(3),
                       .worker = std::chrono::seconds(6)},
          .device = on_card ? "cuda:0" : "cpu",
          .device_uuid = on_card ? "GPU-1" : ""};
}

constexpr Duration kCallTimeout = std::chrono::seconds(10);
constexpr std::string_view kBootId = "this boot";

std::vector<std::unique_ptr<WorkerSegment>>& spare_segments() {
  thread_local std::vector<std::unique_ptr<WorkerSegment>> spare;
  return spare;
}

}  // namespace

std::unique_ptr<WorkerSegment> take_spare_segment() {
  if (spare_segments().empty()) {
    WorkerSegmentReader reader = WorkerSegmentReader::create().value();
    WorkerSegmentWriter writer = WorkerSegmentWriter::attach(reader.writer_fd().value()).value();
    return std::make_unique<WorkerSegment>(WorkerSegment{std::move(reader), std::move(writer)});
  }
  std::unique_ptr<WorkerSegment> segment = std::move(spare_segments().back());
  spare_segments().pop_back();
  for (std::uint32_t thread = 0; thread < Worker::kThreads; ++thread) {
    segment->writer.announce(thread).store(0);
  }
  return segment;
}

Broker::Broker(Dependencies deps)
    : Process(Role::Broker),
      state(config(deps.card != nullptr, deps.persistent.has_adapters)),
      table(LeaseTable::create(state.config.slot_count).value()),
      reader(TableReader::in_process(table)),
      deps_(deps) {
  state.extents.choose_size(kBlockBytes);
  deps_.persistent.journal.boot_id = kBootId;
  deps_.persistent.journal.extent_size_bytes = state.extents.extent_size_bytes();
  open_device();
}

Broker::~Broker() {
  for (auto& segment : segments_) spare_segments().push_back(std::move(segment));
}

Connection& Broker::connect(Process& client, Message on_closed) {
  Connection& connection = deps_.machine.connect(client, *this);
  connections_[connection.id] = &connection;
  connection.ends[Connection::kClient].on_closed = std::move(on_closed);
  connection.ends[Connection::kServer].on_closed = [this, &connection] {
    connection_closed(connection);
  };
  return connection;
}

void Broker::connection_closed(Connection& connection) {
  std::vector<Event> failures;
  for (const auto& [number, call] : pending_calls_) {
    if (call.connection != &connection || call.timed_out) continue;
    failures.push_back(call.failed({Errc::ConnectionLost, "closed"}));
  }
  std::erase_if(pending_calls_,
                [&](const auto& entry) { return entry.second.connection == &connection; });
  for (Event& failure : failures) receive(std::move(failure));
  receive(ConnectionClosed{connection.id});
  const Worker* worker = dynamic_cast<Worker*>(connection.ends[Connection::kClient].process);
  if (!deps_.planted_bugs.eof_as_proof || worker == nullptr) return;
  if (const Worker* known = worker; known->attachment != AttachmentId{}) {
    receive(WorkerExited{exit_of(known->attachment)});
  }
}

void Broker::process_exited(const Process& process) {
  for (const auto& [id, connection] : connections_) {
    const bool its = connection->ends[Connection::kClient].process == &process;
    if (its && process.role() == Role::Tenant) receive(HolderExited{id});
  }
  for (const auto& [id, watched] : watched_) {
    if (watched != &process) continue;
    receive(WorkerExited{exit_of(id)});
  }
}

Caller Broker::caller_of(const Connection* from, std::string request, std::string_view method) {
  return {.call = CallId{next_call_++},
          .connection = from == nullptr ? ConnectionId{1} : from->id,
          .pid = from == nullptr ? 1 : from->ends[Connection::kClient].process->pid,
          .uid = 0,
          .request_id = {std::move(request)},
          .fingerprint = std::string(method)};
}

void Broker::answered(std::uint64_t number, Event event) {
  const auto found = pending_calls_.find(number);
  if (found == pending_calls_.end()) return;
  const bool late = found->second.timed_out;
  pending_calls_.erase(found);
  if (!late) receive(std::move(event));
}

std::uint64_t Broker::expect_answer(const Connection& connection,
                                    std::function<Event(Error)> failed) {
  const std::uint64_t number = deps_.persistent.next_call_number++;
  pending_calls_[number] = {.connection = &connection,
                            .give_up = deps_.machine.clock.now() + kCallTimeout,
                            .failed = std::move(failed)};
  return number;
}

bool Broker::is_deciding() const {
  return handling_ || !queue_.empty() || !group_.is_empty();
}

bool Broker::is_busy() const {
  const bool failing = agent_client_ && agent_client_->is_failing();
  return is_deciding() || failing;
}

void Broker::run() {
  if (is_deciding()) return fiber_->resume();
  agent_client_->fail_next();
}

void Broker::live() {
  recover();
  for (;;) {
    if (queue_.empty()) Fiber::pause();  // other events of the turn may come
    const bool flushes = queue_.empty() || deps_.machine.one_in(8);
    handling_ = true;
    if (!flushes) handle_next();
    if (flushes) group_.flush(*this);
    if (group_.is_empty()) check_words();
    handling_ = false;
  }
}

void Broker::handle_next() {
  const Event event = std::move(queue_.front());
  queue_.pop_front();
  handle(event);
}

void Broker::handle(const Event& event) {
  if (tracing) trace(fmt::format("broker decides event {}", event.index()));
  const PublishedTexts texts = published_texts(state);
  std::vector<Effect> effects = decide_with_planted_bugs(event);
  if (deps_.persistent.has_adapters) check_adapter_quotas(state, event, effects);
  check_published_texts(texts, state, event, deps_.coverage);
  check_reserves(state);
  check_swap_shares(state);
  check_replacements(state);
  check_sleepers(state);
  check_refusal(state, event, effects);
  observe_workers();
  disk_full_ = false;
  group_.add(std::move(effects), *this);
}

void Broker::perform(const effect::SendAsleep& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient,
                     [worker, asleep = effect.order.asleep] { worker->on_asleep(asleep); });
}

/// The books agree with the words in the table once the effects are done.
void Broker::check_words() const {
  state.leases.for_each([&](const LeaseRecord& record) {
    const LeaseWord expected =
        LeaseWord::make(record.id().generation, record.state(), reason_of(record.lease));
    if (table.word(record.id().slot) != expected) {
      violated("the word of " + to_string(record.id()) + " differs from the books");
    }
  });
}

std::optional<TimePoint> Broker::next_due() const {
  const auto decided = next_deadline(state);
  const auto device = agent_client_ ? agent_client_->next_due() : std::nullopt;
  if (!decided || !device) return decided ? decided : device;
  return std::min(*decided, *device);
}

void Broker::poll_timers() {
  wakeup_pending_ = false;
  if (agent_client_) agent_client_->poll_timers();
  if (auto proofs = quiet_.observe(); !proofs.empty()) receive(QuietObserved{std::move(proofs)});
  const TimePoint now = deps_.machine.clock.now();
  for (auto& [number, call] : pending_calls_) {
    if (call.give_up > now || call.timed_out || !call.failed) continue;
    call.timed_out = true;
    receive(call.failed({Errc::TimedOut, "no reply"}));
  }
  if (const auto due = next_deadline(state); due && *due <= now) receive(Tick{});
}

std::string Broker::pending_work() const {
  std::string text;
  if (!pending_calls_.empty()) text += fmt::format(" {} calls to workers", pending_calls_.size());
  if (quiet_.is_waiting()) text += " quiet";
  if (agent_client_ && agent_client_->has_pending_work()) text += " its device agent";
  if (!scrubs_.empty()) text += fmt::format(" {} scrubs", scrubs_.size());
  for (const auto& [call, waiting] : waiting_) {
    const bool gone = waiting.connection != nullptr && !waiting.connection->is_open();
    if (!gone) text += fmt::format(" a reply to call {}", call.value);
  }
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.is(LeaseState::Live)) return;
    const leasehold::Worker& worker = *state.workers.find(record.worker());
    text += fmt::format(" {}({}, worker {} in state {}{})", to_string(record.id()),
                        name(record.state()), worker.id.value, static_cast<int>(worker.state),
                        worker.killed ? ", killed" : "");
  });
  return text;
}

}  // namespace leasehold::simulation
