#include "tests/simulation/adapters/worker_adapters.hpp"

#include <algorithm>

#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

// ---------------------------------------------------------------------------------- between steps

void WorkerAdapters::use(const std::string& tenant, const std::string& name, OnReady on_ready) {
  find_revoked();  // so that no revoked lease is given
  callers_[book_.use({tenant}, name, now())] = std::move(on_ready);
  perform_all();
}

void WorkerAdapters::granted(const wire::LeaseGrant& grant) {
  Granted& granted = granted_[grant.lease];
  granted.name = grant.adapter->value;
  granted.version = grant.adapter_version;
  for (const ExtentId extent : grant.extents) {
    const bool is_new = std::ranges::find(granted.extents, extent) == granted.extents.end();
    if (is_new) granted.extents.push_back(extent);
  }
}

void WorkerAdapters::changed() {
  book_.changed();
  perform_all();
}

void WorkerAdapters::yield(const wire::AdaptersYield& asked) {
  const std::size_t loads = book_.loads().size();
  book_.yield(asked, now());
  if (book_.loads().size() < loads) deps_.coverage.happened(AdapterEvent::EvictedForText);
  perform_all();
}

void WorkerAdapters::order(const wire::AdapterLoad& load,
                           std::function<void(std::optional<Error>)> on_done) {
  use(load.tenant.value_or(TenantId{}).value, load.adapter.value,
      [on_done = std::move(on_done)](const Result<AdapterUse>& use) {
        on_done(use ? std::nullopt : std::optional(use.error()));
      });
}

void WorkerAdapters::order(const wire::AdapterUnload& unload,
                           std::function<void(std::optional<Error>)> on_done) {
  book_.unload(unload.adapter.value);
  perform_all();
  on_done(std::nullopt);
}

void WorkerAdapters::broker_lost() {
  for (const auto& [number, lost] : std::exchange(calls_, {}))
    lost(Error{Errc::ConnectionLost, "closed"});
}

void WorkerAdapters::reconnected() {
  close_unknown([](const Granted&) { return true; });
  changed();
}

bool WorkerAdapters::has_slices() const {
  return std::ranges::any_of(loading_, [](const auto& entry) { return entry.second.is_copying; });
}

void WorkerAdapters::work() {
  find_revoked();
  copy_slice();
  if (deps_.planted_bugs.adapter_closed_while_read) close_used();
  (void)book_.tick(now());
  perform_all();
}

void WorkerAdapters::find_revoked() {
  std::erase_if(granted_, [this](const auto& entry) { return !worker_.is_live(entry.first); });
  std::vector<LeaseId> ended;
  for (const auto& [id, load] : book_.loads()) {
    if (!load.lease || granted_.contains(*load.lease)) continue;
    ended.push_back(*load.lease);
    if (!load.is_loaded()) deps_.coverage.happened(AdapterEvent::RevokedWhileFilling);
  }
  for (const LeaseId lease : ended) book_.lease_lost(lease, now());
}

/// Of the oldest load. The file is compared with what was opened once the last slice is copied.
void WorkerAdapters::copy_slice() {
  const auto found =
      std::ranges::find_if(loading_, [](const auto& entry) { return entry.second.is_copying; });
  if (found == loading_.end()) return;
  const AdapterLoadId load = found->first;
  const std::string path = found->second.path;
  const std::uint64_t content = deps_.persistent.disk.find(path)->content;
  const ExtentId extent = found->second.left.back();
  const LeaseId lease = found->second.lease;
  const bool is_copied = worker_.fill(lease, extent, content);
  Loading& loading = found->second;  // the book runs on this fiber only
  if (!is_copied) {
    loading.is_copying = false;
    return book_.copied(load, fail(Errc::LeaseRevoked, "revoked"), now());
  }
  loading.left.pop_back();
  loading.is_copying = !loading.left.empty();
  if (loading.is_copying) return;
  if (deps_.persistent.disk.find(path)->content == loading.content && content == loading.content)
    return book_.copied(load, std::shared_ptr<const AdapterMatrices>(), now());
  deps_.coverage.happened(AdapterEvent::ChangedWhileRead);
  book_.copied(load, fail(Errc::FileCorrupt, "the file changed"), now());
}

// --------------------------------------------------------------------------------------- actions

void WorkerAdapters::perform_all() {
  for (auto actions = book_.take_actions(); !actions.empty(); actions = book_.take_actions())
    for (const AdapterAction& action : actions)
      std::visit([this](const auto& each) { perform(each); }, action);
}

void WorkerAdapters::perform(const ResolveAdapter& action) {
  const AdapterNames::Key key{action.tenant, action.name};
  const auto then = [this, key](const Result<ResolvedAdapter>& answer) {
    book_.resolved(key, answer, now());
    perform_all();
  };
  const std::uint64_t number = expect([then](const Error& why) { then(std::unexpected(why)); });
  worker_.resolve(action.tenant, action.name,
                  [this, number, then](const Result<ResolvedAdapter>& answer) {
                    if (calls_.erase(number) != 0) then(answer);
                  });
}

void WorkerAdapters::perform(const OpenAdapterFile& action) {
  loading_[action.load].path = action.file;
  worker_.post([this, load = action.load] { file_opened(load); });
}

void WorkerAdapters::file_opened(AdapterLoadId load) {
  const auto found = loading_.find(load);
  if (found == loading_.end()) return;  // dropped meanwhile
  const AdapterFile& file = *deps_.persistent.disk.find(found->second.path);
  found->second.content = file.content;
  const std::uint64_t bytes = file.extents * kExtentBytes;
  book_.file_opened(load, AdapterContent{.digest = digest_of(file.content),
                                         .size_bytes = bytes - 1000,
                                         .memory_bytes = bytes});
  perform_all();
}

void WorkerAdapters::perform(const OpenAdapterLease& action) {
  close_unknown([&](const Granted& granted) {
    return granted.name == action.name && granted.version == action.version;
  });
  const bool is_shared = action.owner.value.empty();
  call(wire::AdapterOpen{.tenant = is_shared ? std::nullopt : std::optional(action.owner),
                         .adapter = {action.name},
                         .version = action.version,
                         .digest = action.content.digest.hex(),
                         .size_bytes = action.content.memory_bytes},
       [this, load = action.load](const Result<Answer>& answer) { lease_opened(load, answer); });
}

void WorkerAdapters::lease_opened(AdapterLoadId load, const Result<Answer>& answer) {
  if (answer) {
    book_.lease_opened(load, std::get<wire::AdapterOpened>(answer->body).lease, now());
  } else {
    const Errc code = answer.error().code;
    if (code == Errc::QuotaAdapters) deps_.coverage.happened(AdapterEvent::OverQuota);
    if (code == Errc::PoolExhausted) deps_.coverage.happened(AdapterEvent::NoRoom);
    if (code == Errc::FileCorrupt) deps_.coverage.happened(AdapterEvent::OtherDigest);
    book_.lease_opened(load, std::unexpected(answer.error()), now());
  }
  perform_all();
}

void WorkerAdapters::perform(const CopyAdapter& action) {
  Loading& loading = loading_.at(action.load);
  const auto found = granted_.find(action.lease);
  if (found == granted_.end() || !worker_.is_live(action.lease))
    return book_.copied(action.load, fail(Errc::LeaseRevoked, "revoked"), now());
  loading.lease = action.lease;
  loading.left = found->second.extents;
  loading.is_copying = true;
}

void WorkerAdapters::perform(const ConfirmAdapter& action) {
  // Memory of a lease that has ended may be scrubbed by now.
  if (worker_.is_live(action.lease))
    deps_.adapters->filled(action.lease, loading_.at(action.load).content);
  call(wire::AdapterFilled{.lease = action.lease},
       [this, load = action.load](const Result<Answer>& answer) {
         book_.confirmed(load, answer ? Result<void>() : std::unexpected(answer.error()), now());
         perform_all();
       });
}

void WorkerAdapters::perform(const AnswerAdapterUse& action) {
  const auto caller = callers_.extract(action.ticket);
  caller.mapped()(action.use);
}

void WorkerAdapters::perform(const ReportAdapterEvicted& action) {
  switch (action.why) {
    case AdapterEviction::Room:
      return deps_.coverage.happened(AdapterEvent::EvictedForRoom);
    case AdapterEviction::Unloaded:
      return deps_.coverage.happened(AdapterEvent::Unloaded);
    case AdapterEviction::Replaced:
      return deps_.coverage.happened(AdapterEvent::LeftAfterReplacement);
    case AdapterEviction::Revoked:
      return deps_.coverage.happened(AdapterEvent::RevokedWhileLoaded);
  }
}

/// No answer is awaited.
void WorkerAdapters::close(LeaseId lease) {
  deps_.adapters->closes(lease);
  call(wire::AdapterClose{.lease = lease}, [](const Result<Answer>&) {});
}

/// Gives back leases that no load knows, because the answer was lost with the connection.
void WorkerAdapters::close_unknown(const std::function<bool(const Granted&)>& matches) {
  for (const auto& [lease, granted] : granted_) {
    const bool is_known = std::ranges::any_of(
        book_.loads(), [id = lease](const auto& entry) { return entry.second.lease == id; });
    if (!is_known && matches(granted)) close(lease);
  }
}

/// Planted: an adapter leaves although a text uses it.
void WorkerAdapters::close_used() {
  for (const auto& [id, load] : book_.loads()) {
    if (load.is_loaded() && !load.is_idle() && deps_.machine.one_in(8)) return close(*load.lease);
  }
}

// ------------------------------------------------------------------------------------------ calls

std::uint64_t WorkerAdapters::expect(std::function<void(const Error&)> lost) {
  calls_[++last_call_] = std::move(lost);
  return last_call_;
}

template <class Message>
void WorkerAdapters::call(Message message, Then<Answer> then) {
  const std::uint64_t number = expect([then](const Error& why) { then(std::unexpected(why)); });
  worker_.ask(std::move(message), [this, number, then](const Result<Answer>& answer) {
    if (calls_.erase(number) != 0) then(answer);
  });
}

}  // namespace leasehold::simulation
