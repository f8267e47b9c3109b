// Requests and their texts: what a worker generates, keeps, continues and sends.
#include <bit>

#include "tests/simulation/adapters/worker_adapters.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kDiesInRecord = 64;  // one commit in 64 writes torn records
constexpr Duration kResultGrace = std::chrono::seconds(1);

/// True if `other` continues the text; it is the longer one then.
bool take_longer(Text& text, const Text& other) {
  const bool is_same = other.id == text.id && text.may_go_on_under(other.adapter);
  if (!is_same || other.size <= text.size) return false;
  text = other;
  return true;
}

}  // namespace

std::optional<std::uint32_t> Worker::free_stop_slot() const {
  std::uint32_t used = 0;
  for (const auto& [lease, held] : held_) {
    if (held.running) used |= 1u << held.running->stop_slot;
  }
  for (std::uint32_t stop_slot = 0; stop_slot < 4; ++stop_slot) {
    if ((used >> stop_slot & 1) == 0) return stop_slot;
  }
  return std::nullopt;
}

void Worker::cancel(const Request& request) {
  if (is_resumable(request.text.id)) return;
  for (auto& [lease, held] : held_) {
    if (held.running && held.running->request == &request) {
      stops_.stop(held.running->stop_slot, LocalStop::Cancelled);
    }
  }
}

void Worker::on_submit(Request& request, Connection& stream, StreamReader& reader) {
  posted_.push_back([this, &request, &stream, &reader] { begin(request, stream, reader); });
}

void Worker::on_move(Request& request, LeaseId to) {
  posted_.push_back([this, &request, to] { move(request, to); });
}

bool Worker::may_run(LeaseId lease) const {
  const auto found = held_.find(lease);
  return found != held_.end() && !found->second.running &&
         table_->drain_deadline(lease) == TimePoint{} && !is_expired(lease) &&
         state_of(lease) == LeaseState::Live;
}

/// The longest of what the reader has, what was kept and what came with adopted memory goes on.
void Worker::begin(Request& request, Connection& stream, StreamReader& reader) {
  if (join(request, stream, reader)) return;
  Running running{.request = &request, .stream = &stream, .reader = &reader, .text = request.text};
  if (request.resumes) {
    deps_.coverage.happened(TextEvent::UnknownWhenResumed);
    if (forgotten_.contains(request.text.id))
      deps_.coverage.happened(TextEvent::ResumedAfterItsGrace);
    return send_end(running, StreamEnd::Unknown);
  }
  request.adapter.empty() ? start(running) : load_adapter(running);
}

/// The request waits until its adapter is loaded.
void Worker::load_adapter(const Running& running) {
  if (!adapters_) return send_end(running, StreamEnd::AdapterRefused);
  adapters_->use(running.request->tenant, running.request->adapter,
                 [this, running](const Result<AdapterUse>& use) {
                   if (!use) return refuse_adapter(running, use.error());
                   if (!is_live((*use)->lease)) return send_end(running, StreamEnd::AdapterOver);
                   Running loaded = running;
                   loaded.adapter = *use;
                   start(std::move(loaded));
                 });
}

void Worker::refuse_adapter(const Running& running, const Error& why) {
  const Request& request = *running.request;
  const bool is_unknown = why.code == Errc::UnknownAdapter;
  if (is_unknown) deps_.coverage.happened(AdapterEvent::Unknown);
  const State& state = deps_.persistent.broker->state;
  const bool is_visible =
      state.adapters.find_for(TenantId{request.tenant}, {request.adapter}) != nullptr;
  const bool is_wrong = is_unknown ? is_visible : why.code == Errc::FileCorrupt;
  if (deps_.persistent.is_finishing && is_wrong)
    violated("adapter " + request.adapter + " is not loaded: " + why.detail);
  const bool is_final = is_unknown || why.code == Errc::FileCorrupt;
  send_end(running, is_final ? StreamEnd::AdapterRefused : StreamEnd::AdapterLater);
}

/// It may have waited for its adapter.
void Worker::start(Running running) {
  Request& request = *running.request;
  if (!running.stream->is_open() && !is_resumable(request.text.id)) return;  // cancelled
  if (running.adapter && join(request, *running.stream, *running.reader)) return;
  const auto stop_slot = free_stop_slot();
  if (!stop_slot || !may_run(request.lease)) return send_end(running, StreamEnd::LeaseOver);
  const std::uint64_t content = running.adapter ? content_of(running.adapter->digest) : 0;
  Held& held = held_.at(request.lease);
  if (held.reported_drained) {
    violated("a worker accepted a request under a lease that it had reported as drained");
  }
  const auto kept = kept_.find(request.text.id);
  if (kept != kept_.end()) take_longer(running.text, kept->second.text);
  const bool compares = !deps_.planted_bugs.adapter_version_ignored;
  if (compares && !running.text.may_go_on_under(content)) {
    deps_.coverage.happened(AdapterEvent::OtherVersion);
    return send_end(running, StreamEnd::AdapterRefused);
  }
  const bool is_adopted = held.adopted && held.adopted->id == request.text.id &&
                          (!compares || held.adopted->adapter == content) &&
                          held.adopted->size >= running.text.size;
  if (is_adopted) take_longer(running.text, *held.adopted);
  if (is_adopted && held.adopted_from_torn) deps_.coverage.happened(TextEvent::RecordWasTorn);
  held.adopted.reset();
  running.text.adapter = content;
  request.accepted = true;
  deps_.judge.accepted(request.lease);
  deps_.judge.text_runs(request, *this, running.text, is_adopted);
  stops_.clear(*stop_slot);
  running.stop_slot = *stop_slot;
  running.shared = published_for(running.adapter);
  note_published(running);
  if (running.adapter) deps_.adapters->text_began(running.adapter->lease);
  held.running = running;
  const bool repeats = deps_.planted_bugs.position_repeated && request.text.size > 0;
  send_tokens(running, request.text.size - (repeats ? 1 : 0));
  if (running.text.is_whole()) end(held, StreamEnd::Whole);
}

/// The reader before, if it is still there, loses the text.
bool Worker::join(Request& request, Connection& stream, StreamReader& reader) {
  if (!is_resumable(request.text.id)) return false;
  for (auto& [lease, held] : held_) {
    if (!held.running || held.running->text.id != request.text.id) continue;
    Running& running = *held.running;
    if (!request.text.may_go_on_under(running.text.adapter)) {
      send_end({.request = &request, .stream = &stream, .reader = &reader},
               StreamEnd::AdapterRefused);
      return true;
    }
    deps_.judge.ended(*running.request);
    send_end(running, StreamEnd::LeaseOver);
    running.request = &request;
    running.stream = &stream;
    running.reader = &reader;
    request.lease = lease;
    request.accepted = true;
    deps_.coverage.happened(TextEvent::Joined);
    send_tokens(running, request.text.size);
    return true;
  }
  const auto kept = kept_.find(request.text.id);
  if (kept == kept_.end() || !(kept->second.text.is_whole() || request.resumes)) return false;
  const Running ended{
      .request = &request, .stream = &stream, .reader = &reader, .text = kept->second.text};
  if (!request.text.may_go_on_under(ended.text.adapter)) {
    send_end(ended, StreamEnd::AdapterRefused);
    return true;
  }
  send_tokens(ended, request.text.size);
  send_end(ended, kept->second.text.is_whole() ? StreamEnd::Whole : StreamEnd::LeaseOver);
  return true;
}

void Worker::move(Request& request, LeaseId to) {
  const auto from = std::ranges::find_if(held_, [&](const auto& entry) {
    return entry.second.running && entry.second.running->request == &request;
  });
  if (from == held_.end()) return;  // it has ended, and its reader knows
  const bool moves =
      may_run(to) && !is_expired(from->first) && state_of(from->first) == LeaseState::Live;
  if (moves) {
    held_.at(to).running = std::exchange(from->second.running, std::nullopt);
    request.lease = to;
    deps_.judge.accepted(to);
    deps_.coverage.happened(TextEvent::Moved);
  }
  const Running& running = moves ? *held_.at(to).running : *from->second.running;
  deps_.machine.send(
      *running.stream, Connection::kClient,
      [reader = running.reader, &request, moves] { reader->on_moved(request, moves); });
}

void Worker::send_tokens(const Running& running, std::uint32_t from) {
  for (std::uint32_t position = from; position < running.text.size; ++position) {
    deps_.machine.send(
        *running.stream, Connection::kClient,
        [reader = running.reader, request = running.request,
         token = StreamReader::Token{position, running.text.tokens[position],
                                     running.text.adapter}] { reader->on_token(*request, token); });
  }
}

void Worker::send_end(const Running& running, StreamEnd end) {
  deps_.machine.send(
      *running.stream, Connection::kClient,
      [reader = running.reader, request = running.request, end] { reader->on_end(*request, end); });
}

/// Sends the typed end immediately; the step may still run.
void Worker::end(Held& held, StreamEnd why) {
  const Running running = *std::exchange(held.running, std::nullopt);
  deps_.judge.ended(*running.request);
  if (running.adapter) deps_.adapters->text_ended(running.adapter->lease);
  if (running.adapter && why == StreamEnd::Whole) deps_.coverage.happened(AdapterEvent::WholeText);
  if (why == StreamEnd::AdapterOver) deps_.coverage.happened(AdapterEvent::RevokedInText);
  if (is_resumable(running.text.id))
    kept_[running.text.id] = {running.text, deps_.machine.clock.now() + kResultGrace};
  send_end(running, why);
}

void Worker::emit(Held& held) {
  Running& running = *held.running;
  running.text.append(running.text.next());
  send_tokens(running, running.text.size - 1);
  if (running.text.is_whole()) end(held, StreamEnd::Whole);
}

void Worker::forget_kept_texts() {
  const TimePoint now = deps_.machine.clock.now();
  std::erase_if(kept_, [&](const auto& entry) {
    const bool is_over = entry.second.until <= now;
    if (is_over) forgotten_.insert(entry.first);
    return is_over;
  });
}

/// In the first extent of the lease, which is returned last; nothing on a card. The worker may die
/// while it writes.
void Worker::write_records(SequenceMask live) {
  std::vector<std::pair<ExtentId, Text>> records;
  for (SequenceMask todo = live; todo != 0; todo &= todo - 1) {
    const Part& part = in_step_[static_cast<std::size_t>(std::countr_zero(todo))];
    const auto held = held_.find(part.lease);
    if (held == held_.end() || !held->second.running || held->second.extents.empty()) continue;
    Text committed = held->second.running->text;
    committed.append(committed.next());
    records.emplace_back(held->second.extents.front(), committed);
  }
  if (records.empty()) return;
  for (const auto& [extent, text] : records) deps_.judge.begins_record(extent, text);
  kill_pending = kill_pending || deps_.machine.one_in(kDiesInRecord);
  do {
    Fiber::pause();
  } while (kill_pending);
  for (const auto& [extent, text] : records) deps_.judge.wrote_record(extent, text);
}

}  // namespace leasehold::simulation
