#include "worker/http/batch/batch_runner.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <ctime>
#include <utility>

#include "common/metrics/batch_lines.hpp"
#include "worker/batch/batch_lines.hpp"
#include "worker/http/answers/answer_driver.hpp"
#include "worker/http/answers/embeddings_driver.hpp"
#include "worker/http/batch/batch_input.hpp"
#include "worker/http/batch/former_tenants.hpp"
#include "worker/http/batch/line_stream.hpp"
#include "worker/http/on_pool.hpp"

namespace leasehold::http {
namespace {

using batch::BatchRecord;
using batch::BatchStore;
using batch::LineEnd;
using batch::LineSpan;
using batch::Status;
using boost::asio::awaitable;

constexpr Duration kDiskPause = std::chrono::seconds(2);
constexpr Duration kSweepInterval = std::chrono::minutes(10);
constexpr std::int64_t kMostPause_s = 30;

/// The message of an answer that is an error.
std::string message_of(const Answer& answer) {
  const auto json = nlohmann::json::parse(answer.body, nullptr, false);
  const auto error = json.is_object() ? json.find("error") : json.end();
  return json.is_object() && error != json.end() ? error->value("message", "") : "";
}

}  // namespace

struct BatchRunner::Active {
  explicit Active(boost::asio::io_context& io) : finished(io) {}

  BatchRecord record;
  std::vector<LineSpan> lines;
  std::unordered_set<std::string> answered;
  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;
  std::size_t next = 0;  // of the lines; those before it are answered or in flight
  std::set<LineStream*> in_flight;
  std::set<boost::asio::steady_timer*> pauses;
  int running = 0;  // coroutines that run lines
  std::uint64_t lines_running = 0;
  boost::asio::steady_timer finished;  // cancelled by the last of them
  bool is_cancelled = false;
  bool is_paused = false;  // logged once
  std::optional<Error> failed;

  bool ends() const { return is_cancelled || failed || record.has_expired; }
  /// Ends what waits and runs. The callbacks may change the sets.
  void end_lines() {
    for (LineStream* stream : std::set(in_flight)) stream->leave();
    for (boost::asio::steady_timer* timer : std::set(pauses)) timer->cancel();
  }
};

// ------------------------------------------------------------------------------------- the queue

void BatchRunner::start(std::weak_ptr<Shared> keep_alive) {
  keep_alive_ = std::move(keep_alive);
  for (BatchRecord& batch : store_.unfinished()) queued_.push_back(std::move(batch));
  sweep();
  begin_next();
}

/// Removes what has reached its age, and what belongs to tenants that were removed.
void BatchRunner::sweep() {
  store_.remove_expired(std::time(nullptr));
  sweep_timer_ = shared_.timers.after(kSweepInterval, [this] { sweep(); });
  const auto shared = keep_alive_.lock();
  if (shared && shared_.deps.check_tenants)
    boost::asio::co_spawn(*shared_.deps.io, former_tenants_.sweep(shared), boost::asio::detached);
}

void BatchRunner::add(BatchRecord batch) {
  queued_.push_back(std::move(batch));
  begin_next();
}

/// A batch that waits for its turn ends at once. The cancellation is on disk before the client
/// reads of it.
awaitable<std::optional<BatchRecord>> BatchRunner::cancel(std::string id) {
  ActivePtr active = find(id);
  const auto queued = std::ranges::find(queued_, id, &BatchRecord::id);
  const bool is_queued = queued != queued_.end();
  if (is_queued) {
    active = std::make_shared<Active>(*shared_.deps.io);
    active->record = *queued;
  }
  if (!active || !batch::advance(active->record, Status::Cancelling, std::time(nullptr)))
    co_return std::nullopt;
  if (is_queued) queued_.erase(queued);  // a batch that ends anyway keeps its turn
  active->is_cancelled = true;
  BatchRecord shown = active->record;
  co_await persist(active);
  active->end_lines();
  if (is_queued) co_await finish(active);
  co_return shown;
}

void BatchRunner::stop() {
  is_stopped_ = true;
  queued_.clear();
  for (const auto& [key, active] : std::map(active_)) active->end_lines();
}

BatchRunner::ActivePtr BatchRunner::find(const std::string& id) const {
  const auto found = std::ranges::find_if(
      active_, [&id](const auto& each) { return each.second->record.id == id; });
  return found == active_.end() ? nullptr : found->second;
}

BatchRecord BatchRunner::as_running(const BatchRecord& stored) const {
  const ActivePtr active = find(stored.id);
  return active ? batch::as_seen(stored, active->record) : stored;
}

/// Starts every batch whose key runs none, as long as there are places for its tenant.
void BatchRunner::begin_next() {
  for (auto next = queued_.begin(); !is_stopped_ && next != queued_.end();) {
    if (active_.contains(next->key) || !places_.may_take_more(next->owner.tenant)) {
      ++next;
      continue;
    }
    const auto shared = keep_alive_.lock();
    if (!shared) return;
    auto active = std::make_shared<Active>(*shared_.deps.io);
    active->record = std::move(*next);
    active->is_cancelled = active->record.status == Status::Cancelling;
    next = queued_.erase(next);
    active_.emplace(active->record.key, active);
    places_.take(active->record.owner.tenant);
    boost::asio::co_spawn(*shared_.deps.io, drive(shared, active),
                          [id = active->record.id](const std::exception_ptr& failed) {
                            if (failed) spdlog::error("a batch ended unexpectedly batch={}", id);
                          });
  }
}

void BatchRunner::ended(const ActivePtr& active) {
  active_.erase(active->record.key);
  places_.give_back(active->record.owner.tenant);
  publish_counts();
  begin_next();
}

void BatchRunner::publish_counts() {
  if (shared_.deps.batch_lines == nullptr) return;
  std::uint64_t left = 0;
  std::uint64_t running = 0;
  for (const auto& [key, active] : active_) {
    left += active->lines.size() - std::min(active->lines.size(), active->answered.size());
    running += active->lines_running;
  }
  shared_.deps.batch_lines->running = running;
  shared_.deps.batch_lines->waiting = left - std::min(left, running);
}

bool BatchRunner::goes_on(const Active& active) const {
  return !is_stopped_ && !shared_.closing && !active.ends();
}

// ------------------------------------------------------------------------------------- one batch

awaitable<void> BatchRunner::drive(std::shared_ptr<Shared> shared, ActivePtr active) {
  const bool is_ready = co_await prepare(active);
  if (is_ready) co_await run_lines(shared, active);
  if (!is_stopped_ && !shared_.closing) co_await finish(active);
  ended(active);
}

/// Returns true if lines can run.
awaitable<bool> BatchRunner::prepare(ActivePtr active) {
  BatchRecord& record = active->record;
  std::optional<Result<PreparedBatch>> prepared;
  do {
    if (prepared) co_await pause(active, kDiskPause);
    std::shared_ptr<const ApiModel> model = co_await shared_.models.of(record.owner.tenant);
    std::move_only_function<Result<PreparedBatch>()> work = [this, record, model] {
      return PreparedBatch::from(store_, record, *model);
    };
    prepared =
        co_await on_pool<Result<PreparedBatch>>(shared_, record.owner.tenant, std::move(work));
    if (!prepared) co_return false;
  } while (!*prepared && prepared->error().code == Errc::DiskFull && goes_on(*active));
  if (!*prepared) {
    active->failed = prepared->error();
    co_return false;
  }
  PreparedBatch& found = **prepared;
  record.counts = found.counts;
  if (!found.checked.errors.empty()) {
    record.errors = std::move(found.checked.errors);
    active->failed = Error{Errc::BadRequest, "the input file has lines that cannot run"};
    co_return false;
  }
  active->lines = std::move(found.checked.lines);
  active->answered = std::move(found.answered);
  active->input = std::move(found.input);
  active->output = std::move(found.output);
  active->errors = std::move(found.errors);
  if (!goes_on(*active)) co_return false;
  if (batch::advance(record, Status::InProgress, std::time(nullptr))) co_await persist(active);
  record.has_expired = record.has_expired || record.expires_at <= std::time(nullptr);
  spdlog::info("batch runs batch={} tenant={} lines={} answered={}", record.id,
               record.owner.tenant.value, record.counts.total, active->answered.size());
  co_return goes_on(*active);
}

/// Waits until every line has a result, or the batch ends before that.
awaitable<void> BatchRunner::run_lines(std::shared_ptr<Shared> shared, ActivePtr active) {
  const std::int64_t left_s = active->record.expires_at - std::time(nullptr);
  active->finished.expires_after(std::chrono::seconds(std::max<std::int64_t>(0, left_s)));
  active->running = kLinesInFlight;
  for (int i = 0; i < kLinesInFlight; ++i) {
    boost::asio::co_spawn(*shared_.deps.io, run_until_empty(active),
                          [active, shared](const std::exception_ptr& failed) {
                            if (failed)
                              active->failed =
                                  Error{Errc::SystemError, "a line ended unexpectedly"};
                            if (--active->running == 0) active->finished.cancel();
                          });
  }
  if (active->running > 0) co_await active->finished.async_wait(kAwait);
  if (active->running > 0) {
    active->record.has_expired = !is_stopped_;
    active->end_lines();
    active->finished.expires_at(boost::asio::steady_timer::time_point::max());
    if (active->running > 0) co_await active->finished.async_wait(kAwait);
  }
}

awaitable<void> BatchRunner::run_until_empty(ActivePtr active) {
  while (goes_on(*active) && active->next < active->lines.size()) {
    const std::size_t line = active->next++;
    if (active->answered.contains(active->lines[line].custom_id)) continue;
    ++active->lines_running;
    publish_counts();
    co_await run_line(active, line);
    --active->lines_running;
  }
}

awaitable<void> BatchRunner::run_line(ActivePtr active, std::size_t line) {
  std::string request_id;
  for (;;) {
    std::optional<Answer> answer = co_await answer_line(active, line, request_id);
    if (!answer) co_return;
    const LineEnd end = batch::line_end(answer->status);
    const bool is_result = end == LineEnd::Completed || end == LineEnd::Failed;
    if (!is_result && !goes_on(*active)) co_return;  // a later worker runs it again
    if (end == LineEnd::KeyEnded) {
      active->failed =
          Error{Errc::BadToken, "the key of the batch is no longer valid: " + message_of(*answer)};
      active->end_lines();
      co_return;
    }
    if (is_result) {
      batch::LineAnswer result{
          .status = answer->status, .request_id = request_id, .body = std::move(answer->body)};
      std::string text = batch::result_line(active->lines[line].custom_id, result);
      co_return co_await append(active, line, end == LineEnd::Failed, std::move(text));
    }
    const std::int64_t wait_s = std::clamp<std::int64_t>(answer->retry_after_s, 1, kMostPause_s);
    spdlog::debug("a line of a batch waits batch={} status={} wait_s={}", active->record.id,
                  answer->status, wait_s);
    co_await pause(active, std::chrono::seconds(wait_s));
    if (!goes_on(*active)) co_return;
  }
}

/// Returns nothing if the line was left, or the server stops.
awaitable<std::optional<Answer>> BatchRunner::answer_line(ActivePtr active, std::size_t line,
                                                          std::string& request_id) {
  const RequestDefaults defaults{
      .request_id = RequestId{fmt::format("{}-{}", active->record.id, line + 1)},
      .created_unix_s = active->record.created_at()};
  std::shared_ptr<const ApiModel> model = co_await shared_.models.of(active->record.owner.tenant);
  std::move_only_function<Read<LineRequest>()> work = [active, line, defaults, model] {
    return read_request(active->input.get(), active->lines[line], active->record.endpoint, defaults,
                        *model);
  };
  auto request =
      co_await on_pool<Read<LineRequest>>(shared_, active->record.owner.tenant, std::move(work));
  if (!request || !goes_on(*active)) co_return std::nullopt;
  if (!*request) co_return error_answer(request->error());
  LineStream stream;
  request_id = stream.labels().x_request_id;
  Caller caller;
  caller.tenant = active->record.owner.tenant;
  caller.key = active->record.batch_key;
  caller.key_id = active->record.key;
  caller.is_batch = true;
  active->in_flight.insert(&stream);
  LineRequest parsed = **std::move(request);
  awaitable<void> answered = std::visit(
      [&](auto& each) { return answer_request(shared_, caller, std::move(each), stream); }, parsed);
  co_await std::move(answered);
  active->in_flight.erase(&stream);
  co_return stream.take_answer();
}

/// Waits until there is room for the result.
awaitable<void> BatchRunner::append(ActivePtr active, std::size_t line, bool is_failed,
                                    std::string text) {
  for (;;) {
    const UniqueFd& results = is_failed ? active->errors : active->output;
    const auto appended = store_.append_result(active->record.owner, results, text);
    if (appended) break;
    if (!std::exchange(active->is_paused, true)) {
      spdlog::warn("batch paused batch={} tenant={} code={} reason=\"{}\"", active->record.id,
                   active->record.owner.tenant.value, name(appended.error().code),
                   appended.error().detail);
    }
    co_await pause(active, kDiskPause);
    if (!goes_on(*active)) co_return;
  }
  active->is_paused = false;
  active->answered.insert(active->lines[line].custom_id);
  ++(is_failed ? active->record.counts.failed : active->record.counts.completed);
  if (shared_.deps.batch_lines != nullptr)
    (is_failed ? shared_.deps.batch_lines->failed : shared_.deps.batch_lines->completed).add();
  publish_counts();
}

awaitable<void> BatchRunner::pause(ActivePtr active, Duration wait) {
  boost::asio::steady_timer timer(*shared_.deps.io, wait);
  active->pauses.insert(&timer);
  co_await timer.async_wait(kAwait);
  active->pauses.erase(&timer);
}

/// Writes what is left of the results, and the state in which the batch ends.
awaitable<void> BatchRunner::finish(ActivePtr active) {
  BatchRecord& record = active->record;
  const std::int64_t now = std::time(nullptr);
  if (active->failed && record.errors.empty()) {
    record.errors.push_back(
        {.code = std::string(name(active->failed->code)), .message = active->failed->detail});
  }
  if (record.has_expired && !active->failed && !active->is_cancelled) {
    for (std::size_t line = 0; line < active->lines.size(); ++line) {
      const std::string& id = active->lines[line].custom_id;
      if (active->answered.contains(id)) continue;
      std::string text =
          batch::unrun_line(id, "batch_expired", "the batch has expired before this line ran");
      co_await append(active, line, true, std::move(text));
    }
  }
  if (active->is_cancelled) (void)batch::advance(record, Status::Cancelling, now);
  if (!active->is_cancelled && !active->failed)
    (void)batch::advance(record, Status::Finalizing, now);
  co_await persist(active);
  if (active->failed) (void)batch::advance(record, Status::Failed, now);
  (void)batch::advance(record, Status::Cancelled, now);
  (void)batch::advance(record, record.has_expired ? Status::Expired : Status::Completed, now);
  co_await persist(active);
  spdlog::info("batch ended batch={} tenant={} status={} completed={} failed={} lines={}",
               record.id, record.owner.tenant.value, batch::name(record.status),
               record.counts.completed, record.counts.failed, record.counts.total);
}

/// Stores the record, once its results are readable if it has ended. Waits while the disk is full.
awaitable<void> BatchRunner::persist(ActivePtr active) {
  for (;;) {
    std::move_only_function<Result<void>()> work = [this,
                                                    record = active->record]() -> Result<void> {
      if (batch::is_final(record.status)) {
        TRY(store_.publish_results(record, record.output_file, std::time(nullptr)));
        TRY(store_.publish_results(record, record.error_file, std::time(nullptr)));
      }
      return store_.update(record);
    };
    auto stored =
        co_await on_pool<Result<void>>(shared_, active->record.owner.tenant, std::move(work));
    if (!stored || *stored || is_stopped_) co_return;
    spdlog::warn("batch paused batch={} code={} reason=\"{}\"", active->record.id,
                 name(stored->error().code), stored->error().detail);
    co_await pause(active, kDiskPause);
  }
}

}  // namespace leasehold::http
