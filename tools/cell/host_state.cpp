#include "tools/cell/host_state.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "common/random.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/cell/rethrow.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;

}  // namespace

void HostState::set_draining(bool is_draining) {
  if (std::exchange(is_draining_, is_draining) == is_draining) return;
  is_undrain_due_ = !is_draining;
  ask();
}

void HostState::ask() {
  if (!broker_.is_connected() || std::exchange(is_asking_, true)) return;
  boost::asio::co_spawn(io_, refresh(), kRethrow);
}

/// A broker that does not answer is reported where it gets its ceilings.
awaitable<void> HostState::refresh() {
  const auto read = co_await read_facts();
  is_asking_ = false;
  if (!read) spdlog::debug("broker not asked code={}", name(read.error().code));
}

awaitable<Result<void>> HostState::read_facts() {
  const auto listed = co_await broker_.call("worker.list", wire::Json::object());
  if (!listed) co_return std::unexpected(listed.error());
  const auto workers = client::parse_items<wire::WorkerView>(*listed);
  if (!workers) co_return std::unexpected(workers.error());
  const auto replied = co_await broker_.call("status", wire::Json::object());
  if (!replied) co_return std::unexpected(replied.error());
  const auto status = client::parse_message<wire::StatusView>(*replied);
  if (!status) co_return std::unexpected(status.error());
  HostFacts facts{.models = models_of(*workers)};
  if (status->cell) facts.free_blocks = status->cell->free_blocks;
  // A broker without a state directory has no audit records.
  const wire::AuditList newest{.after = audit_sequence_, .limit = 1};
  const auto audited = co_await broker_.call(newest);
  const auto page = audited ? client::parse_message<wire::AuditPage>(*audited)
                            : Result<wire::AuditPage>(std::unexpected(audited.error()));
  if (page) {
    facts.audit_head = audit_head_of(*page);
    audit_sequence_ = page->head_sequence;
  }
  const bool is_new = facts.models != facts_.models;
  facts_ = std::move(facts);
  if (is_new) on_new_models_();
  co_return co_await change_workers(*workers);
}

awaitable<Result<void>> HostState::change_workers(const std::vector<wire::WorkerView>& workers) {
  if (!is_draining_ && !is_undrain_due_) co_return Result<void>();
  const bool is_draining = is_draining_;
  for (const std::string& worker : workers_to_change(workers, is_draining)) {
    const RequestId id{mint_request_id()};
    wire::Json params = is_draining
                            ? wire::LeaseDrain{.worker = worker, .request_id = id}.to_json()
                            : wire::LeaseUndrain{.worker = worker, .request_id = id}.to_json();
    const auto method = is_draining ? wire::LeaseDrain::kMethod : wire::LeaseUndrain::kMethod;
    const auto done = co_await broker_.call(std::string(method), std::move(params));
    if (!done) co_return std::unexpected(done.error());
    spdlog::info("worker {} worker={}", is_draining ? "drains" : "serves again", worker);
  }
  if (is_draining == is_draining_) is_undrain_due_ = false;
  co_return Result<void>();
}

}  // namespace leasehold::cell
