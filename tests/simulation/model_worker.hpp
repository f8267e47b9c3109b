/// A worker process of the simulated machine. Its gates, stop flags and gate sets are the real
/// ones; the model around them may pause between any two accesses.
///
/// Thread 0 is the engine (forms steps, runs units, commits); thread 1 runs units of its steps.
/// Socket messages are handled between their accesses, as by the I/O thread.
#pragma once

#include <array>
#include <optional>

#include "ipc/segment/thread_gate.hpp"
#include "tests/simulation/card_stream.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/model_broker.hpp"
#include "worker/kv/prefix_index.hpp"
#include "worker/lease/reconnect_state.hpp"

namespace leasehold::simulation {

class CardLauncher;
class WorkerAdapters;

enum class StreamEnd : std::uint8_t {
  Whole,
  LeaseOver,
  Unknown,         ///< Nothing is kept of the text that was resumed.
  AdapterOver,     ///< The lease of its adapter is; the text's own is not.
  AdapterRefused,  ///< The tenant may not use it, or not the version that began the text.
  AdapterLater,    ///< It cannot be loaded now.
};

/// What a worker sends on a stream. Each call arrives as a message.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  /// `adapter`: see Text.
  struct Token {
    std::uint32_t position = 0;
    std::uint32_t token = 0;
    std::uint64_t adapter = 0;
  };
  virtual void on_token(const Request& request, const Token& token) = 0;
  virtual void on_end(const Request& request, StreamEnd end) = 0;
  virtual void on_moved(const Request& request, bool moved) = 0;
};

class Worker final : public Process, private RefusalListener {
 public:
  static constexpr std::uint32_t kThreads = 2;

  Worker(Dependencies deps, std::string name);
  ~Worker() override;

  AttachmentId attachment;

  // Calls of the broker, on its connection.
  void on_grant(const wire::LeaseGrant& grant, std::uint64_t number);
  void on_unmap(LeaseId lease, std::uint64_t number);
  void on_settle(LeaseId lease, std::uint64_t number);
  void on_ping(AttachmentId called);
  void on_draining();
  void on_asleep(bool asleep);
  void on_reclaim(const effect::SendReclaim& asked, std::uint64_t number);
  void on_fill(const wire::PrefixFill& asked, std::uint64_t number);
  void on_adapters_notice(const wire::AdaptersChanged& changed);
  void on_adapters_notice(const wire::AdaptersYield& asked);
  void on_adapter_order(const effect::SendAdapterOrder& effect, std::uint64_t number);

  // What its adapters need (worker_adapter_units.cpp). Answers run between two steps.
  bool is_live(LeaseId lease) const { return state_of(lease) == LeaseState::Live; }
  void post(Message message) { posted_.push_back(std::move(message)); }
  void resolve(const TenantId& tenant, const std::string& adapter,
               const Broker::ResolveHandler& on_reply);
  template <class Sent>
  void ask(Sent message, const Broker::ReplyHandler& on_reply);
  /// Writes one extent in a unit of its own. False: the lease is revoked.
  bool fill(LeaseId lease, ExtentId extent, std::uint64_t content);

  // Calls of a holder, on a stream of its own.
  void on_submit(Request& request, Connection& stream, StreamReader& reader);
  /// The request goes on under another lease of its tenant, if this worker has that one.
  void on_move(Request& request, LeaseId to);
  /// The stream is closed. A resumable text is generated on.
  void cancel(const Request& request);

  /// Runs one step of the thread; false when it has nothing to do.
  bool run(std::uint32_t thread);
  /// Its card does one thing, whether the process runs or is stopped; false when there is nothing
  /// to do.
  bool run_card();
  /// Reports to the judge what the admitted unit touches.
  void open_unit(UnitState& unit, Touches touches, SequenceMask live);
  /// One store leaves the thread's store buffer; false when none waits.
  bool drain(std::uint32_t thread);
  /// Fires timers: deadlines of running requests, a retry of refused calls.
  void poll_timers();
  /// Its socket to the broker breaks; the process goes on.
  void lose_socket();

  const std::string& worker_name() const { return name_; }
  Connection& link() const { return *link_; }
  /// Reconnecting to a broker, and not refused.
  bool is_reconnecting() const {
    return path_.phase() != ReconnectState::Phase::Attached &&
           path_.phase() != ReconnectState::Phase::Lost;
  }
  std::array<const UnitState*, kThreads> units() const {
    return {&threads_[0].unit, &threads_[1].unit};
  }
  void on_death() override;

 private:
  struct Thread {
    std::unique_ptr<BasicThreadGate<SimulatedMemory>> gate;
    std::unique_ptr<Fiber> fiber;
    StoreBuffer buffer;
    UnitState unit;
    bool busy = false;
  };
  struct Running {
    Request* request = nullptr;
    Connection* stream = nullptr;
    StreamReader* reader = nullptr;
    Text text;
    std::uint32_t stop_slot = 0;
    std::optional<LeaseId> shared = {};  ///< The published text that it reads.
    AdapterUse adapter = {};             ///< Null: the base model.
  };
  /// A text to publish; the next steps compute it.
  struct Fill {
    std::uint64_t number = 0;  ///< Of the broker's call.
    wire::PrefixFill asked;
    AdapterUse adapter = {};  ///< Null: the base model.
  };
  struct Held {
    std::vector<ExtentId> extents;
    std::vector<ExtentId> swap;
    std::optional<Running> running;
    std::optional<Text> adopted;     ///< The longest record that came with the memory.
    bool adopted_from_torn = false;  ///< The newer slot of that record was torn.
    std::optional<Fill> fill;
    PrefixIndex published;                   ///< Of a shared lease: its text, once it was computed.
    std::optional<LeaseId> published_under;  ///< Of the adapter that computed it.

    std::vector<ExtentId>& of(MemoryPool pool) { return pool == MemoryPool::Kv ? extents : swap; }
    bool reported_drained = false;
  };

  /// A sequence in a step.
  struct Part {
    LeaseId lease;
    std::vector<ExtentId> extents;
    std::optional<LeaseId> shared;
    std::vector<ExtentId> shared_extents;
    Request* request = nullptr;  ///< Null for a text to publish.
    std::optional<LeaseId> adapter;
    std::vector<ExtentId> adapter_extents;
    std::uint64_t content = 0;  ///< Of the adapter; 0: the base model.
  };

  // worker_return.cpp: reconnecting to a broker
  void broker_lost();
  void reconnect();
  void try_to_return();
  void ask_to_resume();
  void deliver();
  void settle();
  void failed(Errc code);
  bool leases_are_over() const;
  bool is_connected() const { return link_->is_open() && !is_reconnecting(); }

  // model_worker.cpp: the I/O side
  void connect();
  void attach();
  void attached(const Result<Answer>& answer);
  /// Before the worker is ready, only its own timer notices that its engine lease is over.
  void retry_start();
  wire::WorkerReady readiness() const;
  void report_weights();
  void wake_up();
  void open_weights();
  void weights_opened(const Result<Answer>& answer);
  void publish_weights();
  void report_ready();
  void reply(std::uint64_t number, Event event);
  void map(const wire::LeaseGrant& grant);
  void read_record(Held& held, const TextRecord& record);
  void grow_swap();
  void unmap_all(LeaseId lease);
  void drop(LeaseId lease);
  LeaseState state_of(LeaseId lease) const;
  void report_drained();
  void report_falsely();
  void stop_expired();
  bool is_expired(LeaseId lease) const;
  /// Of a published text or an adapter.
  void end_readers(LeaseId lease);

  // worker_publications.cpp: texts that it publishes
  void load_for_fill(const wire::PrefixFill& asked, std::uint64_t number);
  void begin_fill(Fill fill);
  void add_fill(LeaseId lease, const Held& held);
  void publish(LeaseId lease, Held& held);
  void end_fill(LeaseId lease, Held& held, Result<wire::PrefixFilled> filled);
  void refuse_fill(LeaseId lease, Held& held);
  void give_up_fills();
  OwnedText published_text(const AdapterUse& adapter, std::size_t tokens) const;
  std::optional<LeaseId> published_for(const AdapterUse& adapter) const;
  void note_published(const Running& reader) const;

  // worker_texts.cpp: requests and their texts
  std::optional<std::uint32_t> free_stop_slot() const;
  void begin(Request& request, Connection& stream, StreamReader& reader);
  void load_adapter(const Running& running);
  void start(Running running);
  void refuse_adapter(const Running& running, const Error& why);
  bool join(Request& request, Connection& stream, StreamReader& reader);
  bool may_run(LeaseId lease) const;
  /// Forgets the texts whose grace has ended.
  void forget_kept_texts();
  void move(Request& request, LeaseId to);
  void send_tokens(const Running& running, std::uint32_t from);
  void send_end(const Running& running, StreamEnd end);
  void emit(Held& held);
  void write_records(SequenceMask live);
  void end(Held& held, StreamEnd why = StreamEnd::LeaseOver);

  // worker_card.cpp: memory and launches on a card
  void open_card();
  Launch make_launch(Touches touches) const;
  void run_step_on_card();
  SequenceMask commit_on_card();

  // worker_engine.cpp: the threads
  void engine();
  void helper();
  bool has_work() const;
  void form_step();
  void run_step();
  void run_units(Thread& thread, std::uint32_t count);
  SequenceMask run_unit(Thread& thread, UnitLabel label);
  void read_adapter(const Part& part, const UnitState& unit);
  void note_shared_adapters() const;
  void note_version(const LoadedAdapter* adapter) const;
  void touch_memory(Thread& thread, SequenceMask live);
  void commit();
  void refused(const GateRefusal& refusal) noexcept override;
  void refusing_unit_ended() noexcept override;

  Dependencies deps_;
  Broker* broker_;
  std::string name_;
  Connection* link_ = nullptr;
  const WorkerSegment* segment_ = nullptr;
  const TableReader* table_ = nullptr;  ///< Mapped once, for the life of the process.
  ReconnectState path_;
  std::size_t undelivered_ = 0;
  WorkerId index_;
  StopFlags stops_;
  std::array<Thread, kThreads> threads_;
  std::unique_ptr<WorkerAdapters> adapters_;
  std::unique_ptr<CardLauncher> launcher_;  ///< Null where it computes on the CPU.
  std::map<LeaseId, Held> held_;
  std::map<LeaseId, std::set<ExtentId>> objects_;  ///< Objects whose descriptors it has.
  std::map<LeaseId, int> grants_in_flight_;
  struct Kept {
    Text text;
    TimePoint until;  ///< The end of its grace.
  };
  std::map<std::uint64_t, Kept> kept_;  ///< Resumable texts that do not run.
  std::set<std::uint64_t> forgotten_;   ///< Texts whose grace ended.
  std::deque<Message> posted_;          ///< For the engine, between two steps.

  RegionId region_;
  std::optional<LeaseId> engine_lease_;
  bool weights_ready_ = false;
  bool asleep_ = false;        ///< It restores no weights before it has called weights.wake.
  bool call_pending_ = false;  ///< A call about weights is under way.
  bool ready_ = false;

  std::uint64_t step_ = 0;
  std::optional<GateSet> set_;
  std::vector<Part> in_step_;
  LeaseId step_engine_;
  std::uint32_t helper_units_ = 0;
};

template <class Sent>
void Worker::ask(Sent message, const Broker::ReplyHandler& on_reply) {
  if (!is_connected())
    return post([on_reply] { on_reply(fail(Errc::ConnectionLost, "no broker")); });
  broker_->ask(*link_, std::move(message), [this, on_reply](const Result<Answer>& answer) {
    post([on_reply, answer] { on_reply(answer); });
  });
}

}  // namespace leasehold::simulation
