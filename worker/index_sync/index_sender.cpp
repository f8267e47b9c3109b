#include "worker/index_sync/index_sender.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "worker/index_sync/index_answers.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;
using boost::beast::http::verb;

}  // namespace

IndexSender::IndexSender(IndexSenderConfig config, std::optional<IdSpool> spool)
    : config_(std::move(config)),
      inbox_(config_.max_inbox),
      spool_(std::move(spool)),
      backlog_(config_.backlog),
      retry_(config_.first_retry),
      names_(config_.resolve) {
  remove_leftover_ids();
}

Result<void> IndexSender::start() {
  return thread_.start("index", serve(),
                       [](const std::exception_ptr& failed) { std::rethrow_exception(failed); });
}

void IndexSender::stop(std::chrono::milliseconds timeout) {
  const auto end = [this] {
    is_stopping_ = true;
    timer_.cancel();
  };
  if (!thread_.stop(end, timeout)) return;
  take_inbox();
  counts_.dropped += backlog_.pending();
}

IndexCounters IndexSender::counters() const {
  return {.incoming = counts_.incoming,
          .removed = counts_.removed,
          .not_found = counts_.not_found,
          .dropped = counts_.dropped,
          .failures = counts_.failures};
}

// ------------------------------------------------------------------------------------------ inbox

void IndexSender::remove_leftover_ids() {
  if (!spool_) return;
  const auto left = spool_->take_leftover_ids();
  for (const auto& [tenant, id] : left) backlog_.add_ended(tenant, id);
  counts_.incoming += left.size();
  if (!left.empty())
    spdlog::info("index ids of the worker before are removed count={}", left.size());
}

void IndexSender::add_live(const TenantId& tenant, const RequestId& id) {
  add({tenant, id, true});
  if (spool_ && inbox_.keep(tenant, id)) asio::post(thread_.io(), [this] { keep_live(); });
}

void IndexSender::keep_live() {
  for (const auto& [tenant, id, none] : inbox_.take_to_keep()) spool_->keep({tenant, id});
}

void IndexSender::add(IndexInbox::Changes::Entry change) {
  if (!change.value) ++counts_.incoming;
  const IndexInbox::Added added = inbox_.add(std::move(change));
  if (added.dropped_ended) ++counts_.dropped;
  if (!added.must_wake) return;
  asio::post(thread_.io(), [this] {
    if (is_idle_) timer_.cancel();
  });
}

void IndexSender::take_inbox() {
  const IndexInbox::Taken taken = inbox_.take();
  if (spool_) keep_live();
  for (const auto& [tenant, id, is_live] : taken.changes) {
    is_live ? backlog_.add_live(id) : backlog_.add_ended(tenant, id);
    // The spool keeps an ended id too: the id may have ended again during the exchange that
    // confirmed and erased its first end.
    if (spool_) spool_->keep({tenant, id});
  }
  if (taken.lost_live) backlog_.forget_confirmed();
  const std::vector<RequestId> dropped = backlog_.take_dropped();
  erase_kept(dropped);
  counts_.dropped += dropped.size();
}

void IndexSender::erase_kept(std::span<const RequestId> ids) {
  if (!spool_) return;
  for (const RequestId& id : ids) spool_->erase(id);
}

// ----------------------------------------------------------------------------------------- thread

asio::awaitable<void> IndexSender::serve() {
  while (true) {
    take_inbox();
    if (backlog_.has_pending() || (must_reconcile_ && !is_stopping_)) {
      const Result<void> sent = co_await send_next();
      note(sent);
      if (!sent && is_stopping_) co_return;
      if (!sent) co_await wait_to_retry();
    } else if (is_stopping_) {
      co_return;
    } else {
      co_await wait_for_work();
    }
  }
}

asio::awaitable<Result<void>> IndexSender::send_next() {
  if (backlog_.has_pending()) co_return co_await evict();
  co_return co_await reconcile();
}

asio::awaitable<Result<void>> IndexSender::evict() {
  const std::vector<RequestId> batch = backlog_.batch();
  http::OutgoingRequest request{.verb = verb::post, .target = "/evict", .body = evict_body(batch)};
  const Result<std::string> body =
      co_await http::exchange(names_, config_.url, std::move(request), config_.exchange);
  if (!body) co_return std::unexpected(body.error());
  const Result<EvictAnswer> answer = parse_evict_answer(*body, batch.size());
  if (!answer) co_return std::unexpected(answer.error());
  backlog_.confirm(batch);
  erase_kept(batch);
  counts_.removed += answer->removed;
  counts_.not_found += answer->not_found;
  co_return Result<void>{};
}

/// Asks the index for its list and queues removals. Not repeated once the index has answered: an
/// index whose list is unreadable will not provide a readable one later.
asio::awaitable<Result<void>> IndexSender::reconcile() {
  http::OutgoingRequest request{.verb = verb::get, .target = "/requests", .body = {}};
  const Result<std::string> body =
      co_await http::exchange(names_, config_.url, std::move(request), config_.exchange);
  const bool is_final = body || body.error().code == Errc::MessageTooLarge ||
                        body.error().code == Errc::UnknownMethod;
  if (!is_final) co_return std::unexpected(body.error());
  must_reconcile_ = false;
  const auto listed = body ? parse_listed_requests(*body) : std::unexpected(body.error());
  if (!listed) {
    spdlog::warn("index not reconciled url={} reason=\"{}\"", config_.url.text(),
                 listed.error().detail);
    co_return Result<void>{};
  }
  take_inbox();  // a listed id may be in use again
  const std::size_t found = backlog_.reconcile(*listed);
  spdlog::info("index reconciled listed={} to_remove={}", listed->size(), found);
  co_return Result<void>{};
}

/// Logs the first of several failures and the success after them.
void IndexSender::note(const Result<void>& sent) {
  const bool had_failed = std::exchange(has_failed_, !sent);
  if (!sent) {
    ++counts_.failures;
    if (!had_failed)
      spdlog::warn("index not reached; check --kv-index-url url={} reason=\"{}\"",
                   config_.url.text(), sent.error().detail);
    return;
  }
  retry_ = config_.first_retry;
  if (!had_failed) return;
  must_reconcile_ = true;
  spdlog::info("index reached again pending={}", backlog_.pending());
}

asio::awaitable<void> IndexSender::wait_for_work() {
  is_idle_ = true;
  timer_.expires_at(asio::steady_timer::time_point::max());
  (void)co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  is_idle_ = false;
}

asio::awaitable<void> IndexSender::wait_to_retry() {
  timer_.expires_after(retry_);
  retry_ = std::min(2 * retry_, config_.max_retry);
  (void)co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace leasehold
