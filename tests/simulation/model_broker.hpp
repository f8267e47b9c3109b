/// The broker of the simulated machine: the real core, the real table, the real witnesses; in place
/// of sockets, connections of the machine. It is one fiber that may stand still between any two
/// effects and between any two stores of a revocation.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "broker/core.hpp"
#include "broker/supervise/exit_observer.hpp"
#include "broker/supervise/quiet_observer.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "tests/simulation/coverage.hpp"
#include "tests/simulation/fiber.hpp"
#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

inline constexpr std::uint64_t kExtentBytes = 2ull << 20;
inline constexpr std::uint64_t kBlockBytes = 256 * 1024;  // 8 in an extent
inline constexpr std::uint64_t kExtents = 9;

/// Planted violations, each of which the judge must find.
struct Plants {
  bool eof_is_proof = false;        ///< A closed socket is taken for an exit.
  bool ack_before_drain = false;    ///< A worker gives extents back while its step uses them.
  bool unmap_before_quiet = false;  ///< A worker unmaps as soon as a word is down.
  bool commit_unread = false;       ///< A worker lets tokens out without asking the gate again.
};

struct Surroundings {
  Machine& machine;
  Judge& judge;
  Coverage& coverage;
  Plants plants;
};

/// A worker line that outlives schedules: making one is slow.
struct Line {
  LineReader reader;
  LineWriter writer;
};

class Broker : public Process, private EffectPerformer {
 public:
  explicit Broker(Surroundings around);
  ~Broker() override;

  using ReplyHandler = std::function<void(const Result<Answer>&)>;

  State state;
  LeaseTable table;
  TableReader reader;

  /// A call has arrived on this connection; the answer goes back on it.
  template <class Sent>
  void call(Connection& from, Sent message, ReplyHandler on_reply);
  /// The same by an operator, who does not wait for the answer.
  template <class Sent>
  void call(Sent message);
  void receive(Event event) { queue_.push_back(std::move(event)); }
  /// The reply to the broker's own call `number` has arrived.
  void answered(std::uint64_t number, Event event);
  void connection_closed(Connection& connection);
  void process_exited(const Process& process, const Connection& connection);

  bool is_busy() const { return handling_ || !queue_.empty(); }
  bool accepts() const override { return !is_busy(); }
  void on_death() override {}
  /// One stretch up to the next place where it may stand still.
  void run() { fiber_.resume(); }
  /// Looks at worker lines and clocks, as its bell and its timers would make it do.
  void look_around();
  bool hears_bell() const { return bell_; }
  void ring() { bell_ = true; }
  /// Something is owed that only time or another process can bring.
  bool owes() const { return !debts().empty(); }
  std::string debts() const;

  const Line& line_of(AttachmentId worker) const { return *links_.at(worker).line; }
  Connection& connect(Process& client, Message on_closed);

 private:
  struct Link {
    Connection* connection = nullptr;
    std::unique_ptr<Line> line;
  };
  struct Waiting {
    Connection* connection = nullptr;  ///< An operator's otherwise.
    ReplyHandler on_reply;
  };
  struct Outstanding {
    const Connection* connection = nullptr;
    TimePoint give_up;
    bool timed_out = false;
    std::function<Event(Error)> failed;
  };

  void live();
  void handle(const Event& event);
  void observe_workers();
  void check_words() const;
  void met(const Transition& transition);
  void saw(const events::LeaseStateChanged& changed);
  void saw(const events::RegionStateChanged& changed);
  void saw(const auto&) {}
  void saw_extent(const events::RegionStateChanged& changed, ExtentState to);
  void saw_region(const events::RegionStateChanged& changed);
  Caller caller_of(ConnectionId from, std::string request, std::string_view method);
  std::uint64_t expect_answer(const Connection& connection, std::function<Event(Error)> failed);

  void perform(const effect::Journal& effect) override;
  void perform(const effect::PublishGrant& effect) override;
  void perform(const effect::TakeAway& effect) override;
  void perform(const effect::SetDeadline& effect) override;
  void perform(const effect::SetDrainDeadline& effect) override;
  void perform(const effect::BindWorker& effect) override;
  void perform(const effect::ResumeWorker&) override {}  // no broker is started again here
  void perform(const effect::ForgetWorker& effect) override;
  void perform(const effect::SendGrant& effect) override;
  void perform(const effect::SendUnmap& effect) override;
  void perform(const effect::SendPing&) override {}  // liveness is no part of the model
  void perform(const effect::SendReclaim& effect) override;
  void perform(const effect::BeginQuietWatch& effect) override;
  void perform(const effect::PunchExtents& effect) override;
  void perform(const effect::VerifyExtents& effect) override;
  void perform(const effect::CreateRegion& effect) override;
  void perform(const effect::SealRegion& effect) override;
  void perform(const effect::ScrubRegion& effect) override;
  void perform(const effect::CloseRegion& effect) override;
  void perform(const effect::KillWorker& effect) override;
  void perform(const effect::Reply& effect) override;
  void perform(const effect::AppendEvent& effect) override;
  void perform(const effect::Warn&) override {}

  Surroundings around_;
  QuietObserver quiet_;
  std::deque<Event> queue_;
  bool handling_ = false;
  bool bell_ = false;
  bool disk_full_ = false;  ///< The decision at work could not be written down.
  std::map<AttachmentId, Link> links_;
  std::map<ConnectionId, Connection*> connections_;
  std::map<CallId, Waiting> waiting_;
  std::map<std::uint64_t, Outstanding> outstanding_;
  std::map<std::uint64_t, ExtentState> extents_;  ///< As the events told.
  std::map<std::uint64_t, RegionState> regions_;
  std::map<AttachmentId, WorkerState> workers_;
  std::uint64_t next_call_ = 1;
  std::uint64_t next_outstanding_ = 1;
  Fiber fiber_{[this] { live(); }};
};

template <class Sent>
void Broker::call(Connection& from, Sent message, ReplyHandler on_reply) {
  std::string request;
  if constexpr (requires { message.request_id; }) request = message.request_id.value;
  Caller caller = caller_of(from.id, std::move(request), Sent::kMethod);
  waiting_[caller.call] = {&from, std::move(on_reply)};
  receive(Call<Sent>{std::move(caller), std::move(message)});
}

template <class Sent>
void Broker::call(Sent message) {
  Caller caller = caller_of(ConnectionId{1}, {}, Sent::kMethod);
  waiting_[caller.call] = {};
  receive(Call<Sent>{std::move(caller), std::move(message)});
}

std::unique_ptr<Line> take_spare_line();

}  // namespace leasehold::simulation
