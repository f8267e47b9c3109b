#include "worker/adapter/adapter_loader.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <limits>
#include <utility>

namespace leasehold {
namespace {

/// Slices of a load that were read or are being read, and are not copied. The time for copies after
/// a step is enough for several, and slices that are read later wait for the next step.
constexpr std::size_t kSlicesAhead = 8;

}  // namespace

AdapterLoader::AdapterLoader(Dependencies dependencies)
    : deps_(std::move(dependencies)), calls_(deps_.call, *deps_.loop) {}

// --------------------------------------------------------------------------------------- callers

void AdapterLoader::use(const TenantId& tenant, const std::string& name, OnReady on_ready) {
  find_revoked(now());  // so that no revoked lease is given
  callers_.emplace(book_.use(tenant, name, now()), std::move(on_ready));
  perform();
}

bool AdapterLoader::answers(const std::string& method) {
  return method == wire::AdapterLoad::kMethod || method == wire::AdapterUnload::kMethod ||
         method == wire::AdaptersChanged::kMethod || method == wire::AdaptersYield::kMethod;
}

void AdapterLoader::on_call(const std::string& method, const control::Json& params,
                            control::Responder respond) {
  if (const auto handled = handle(method, params, respond); !handled)
    respond(std::unexpected(handled.error()));
}

Result<void> AdapterLoader::handle(const std::string& method, const control::Json& params,
                                   control::Responder& respond) {
  if (method == wire::AdapterLoad::kMethod) {
    const auto asked = TRY(wire::AdapterLoad::from_json(params));
    deps_.loop->post([this, asked, respond = std::move(respond)](Engine&) mutable {
      use(asked.tenant.value_or(TenantId{}), asked.adapter.value,
          [this, respond = std::move(respond)](const Result<AdapterUse>& use) mutable {
            answer(std::move(respond), use ? std::nullopt : std::optional(use.error()));
          });
    });
    return {};
  }
  if (method == wire::AdapterUnload::kMethod) {
    const auto asked = TRY(wire::AdapterUnload::from_json(params));
    deps_.loop->post([this, asked](Engine&) { book_.unload(asked.adapter.value); });
  } else if (method == wire::AdaptersYield::kMethod) {
    const auto asked = TRY(wire::AdaptersYield::from_json(params));
    deps_.loop->post([this, asked](Engine&) {
      book_.yield(asked, now());
      perform();
    });
  } else {
    deps_.loop->post([this](Engine&) {
      book_.changed();
      perform();
    });
  }
  respond(control::Payload{.body = wire::Empty{}.to_json(), .fds = {}});
  return {};
}

/// On the connection's thread, because no other thread may use the connection.
void AdapterLoader::answer(control::Responder respond, std::optional<Error> refused) {
  boost::asio::post(deps_.answers,
                    [respond = std::move(respond), refused = std::move(refused)]() mutable {
                      if (refused) return respond(std::unexpected(*std::move(refused)));
                      respond(control::Payload{.body = wire::Empty{}.to_json(), .fds = {}});
                    });
}

void AdapterLoader::reconnected() {
  deps_.loop->post([this](Engine&) {
    close_unknown([](const Granted&) { return true; });
    book_.changed();
    perform();
  });
}

void AdapterLoader::granted(LeaseId lease, const std::string& name, std::uint32_t version) {
  granted_.insert_or_assign(lease, Granted{.name = name, .version = version});
}

AdapterCounts AdapterLoader::counts() const {
  AdapterCounts counts{.loads = loads_, .evictions = evictions_};
  for (const auto& [id, load] : book_.loads()) {
    if (!load.is_loaded()) {
      ++counts.loading;
      continue;
    }
    ++counts.loaded;
    counts.loaded_bytes += load.use->size_bytes;
  }
  return counts;
}

std::vector<LeaseId> AdapterLoader::leases() const {
  std::vector<LeaseId> leases;
  for (const auto& [id, load] : book_.loads())
    if (load.is_loaded()) leases.push_back(load.use->lease);
  for (const auto& weak : revoked_)
    if (const AdapterUse held = weak.lock()) leases.push_back(held->lease);
  return leases;
}

// --------------------------------------------------------------------------------- between steps

TimePoint AdapterLoader::work(std::optional<Duration> step) {
  find_revoked(now());
  std::erase_if(revoked_, [](const auto& weak) { return weak.expired(); });
  copy(step);
  const TimePoint due = book_.tick(now());
  perform();
  return has_slices() ? now() : due;
}

/// Notifies the book of every lease that has ended.
void AdapterLoader::find_revoked(TimePoint now) {
  std::erase_if(granted_, [this](const auto& entry) {
    return deps_.copy.table->word_of(entry.first).state() != LeaseState::Live;
  });
  std::vector<LeaseId> ended;
  for (const auto& [id, load] : book_.loads())
    if (load.lease && !granted_.contains(*load.lease)) ended.push_back(*load.lease);
  for (const LeaseId lease : ended) book_.lease_lost(lease, now);
}

/// Copies the slices that were read, the oldest load first.
void AdapterLoader::copy(std::optional<Duration> step) {
  std::uint64_t left_bytes = std::numeric_limits<std::uint64_t>::max();
  if (step) left_bytes = budget_.after_step(*step);
  const std::uint64_t revocations = *deps_.copy.revocations;
  for (auto next = loading_.begin();
       next != loading_.end() && *deps_.copy.revocations == revocations;) {
    auto& [load, loading] = *next++;
    if (!loading.copy || loading.copy->slices() == 0) continue;
    const Result<bool> done = copy(loading, left_bytes);
    if (!done) {
      book_.copied(load, std::unexpected(done.error()), now());
    } else if (*done) {
      book_.copied(load, loading.copy->matrices(deps_.model->n_layers), now());
    } else {
      read_next(load, loading);
    }
  }
}

/// Returns true once all slices are copied.
Result<bool> AdapterLoader::copy(Loading& loading, std::uint64_t& left_bytes) {
  const TimePoint began = now();
  const std::uint64_t bytes = TRY(loading.copy->copy(left_bytes));
  if (bytes > 0) budget_.copied(bytes, now() - began);
  left_bytes -= bytes;
  return loading.copy->is_done();
}

bool AdapterLoader::has_slices() const {
  for (const auto& [load, loading] : loading_)
    if (loading.copy && loading.copy->slices() > 0) return true;
  return false;
}

// --------------------------------------------------------------------------------------- actions

void AdapterLoader::perform() {
  for (auto actions = book_.take_actions(); !actions.empty(); actions = book_.take_actions())
    for (AdapterAction& action : actions) std::visit([this](auto& each) { perform(each); }, action);
}

void AdapterLoader::perform(ResolveAdapter& action) {
  calls_.resolve(action, [this, key = AdapterNames::Key{action.tenant, action.name}](
                             const Result<ResolvedAdapter>& answer) {
    book_.resolved(key, answer, now());
    perform();
  });
}

void AdapterLoader::perform(OpenAdapterFile& action) {
  loading_.emplace(action.load, Loading{});
  boost::asio::post(deps_.reader, [this, action, directory = deps_.directory] {
    deps_.loop->post([this, load = action.load,
                      reader = AdapterReader::open(directory, action.file, *deps_.model)](
                         Engine&) mutable { file_opened(load, std::move(reader)); });
  });
}

void AdapterLoader::file_opened(AdapterLoadId load, Result<std::shared_ptr<AdapterReader>> reader) {
  const auto found = loading_.find(load);
  if (found == loading_.end()) return;  // dropped meanwhile
  if (reader) {
    found->second.reader = *reader;
    book_.file_opened(load, (*reader)->content());
  } else {
    book_.file_opened(load, std::unexpected(reader.error()));
  }
  perform();
}

void AdapterLoader::perform(OpenAdapterLease& action) {
  close_unknown([&](const Granted& granted) {
    return granted.name == action.name && granted.version == action.version;
  });
  calls_.open(action, [this, load = action.load](const Result<LeaseId>& lease) {
    book_.lease_opened(load, lease, now());
    perform();
  });
}

/// Gives back leases that no load knows, because the answer was lost with the connection.
void AdapterLoader::close_unknown(const std::function<bool(const Granted&)>& matches) {
  for (const auto& [lease, granted] : granted_) {
    const bool is_known = std::ranges::any_of(
        book_.loads(), [id = lease](const auto& entry) { return entry.second.lease == id; });
    if (!is_known && matches(granted)) calls_.close(lease);
  }
}

void AdapterLoader::perform(CopyAdapter& action) {
  Loading& loading = loading_.at(action.load);
  Result<AdapterCopy> copy = AdapterCopy::create(deps_.copy, action.lease, loading.reader);
  if (!copy) return book_.copied(action.load, std::unexpected(copy.error()), now());
  loading.copy.emplace(*std::move(copy));
  read_next(action.load, loading);
}

void AdapterLoader::read_next(AdapterLoadId load, Loading& loading) {
  const std::size_t ahead = loading.n_reading + loading.copy->slices();
  if (loading.is_read || ahead >= kSlicesAhead) return;
  const std::size_t n_slices = kSlicesAhead - ahead;
  loading.n_reading += n_slices;
  boost::asio::post(deps_.reader, [this, load, n_slices, reader = loading.reader] {
    for (std::size_t i = 0; i < n_slices && !reader->has_ended(); ++i)
      deps_.loop->post([this, load, slice = reader->next()](Engine&) mutable {
        slice_read(load, std::move(slice));
      });
  });
}

void AdapterLoader::slice_read(AdapterLoadId load, Result<AdapterSlice> slice) {
  const auto found = loading_.find(load);
  if (found == loading_.end()) return;  // dropped meanwhile
  Loading& loading = found->second;
  --loading.n_reading;
  if (!slice) {
    book_.copied(load, std::unexpected(slice.error()), now());
    return perform();
  }
  loading.is_read = slice->is_last;
  loading.copy->add(*std::move(slice));
}

void AdapterLoader::perform(ConfirmAdapter& action) {
  calls_.filled(action.lease, [this, load = action.load](const Result<void>& answer) {
    book_.confirmed(load, answer, now());
    perform();
  });
}

void AdapterLoader::perform(DropAdapterFile& action) {
  loading_.erase(action.load);
}

void AdapterLoader::perform(CloseAdapterLease& action) {
  calls_.close(action.lease);
}

void AdapterLoader::perform(AnswerAdapterUse& action) {
  auto caller = callers_.extract(action.ticket);
  caller.mapped()(std::move(action.use));
}

void AdapterLoader::perform(ReportAdapterLoaded& action) {
  ++loads_;
  const LoadedAdapter& adapter = *action.loaded;
  spdlog::info("adapter loaded adapter={} version={} lease={} size_bytes={} digest={}",
               adapter.name, adapter.version, to_string(adapter.lease), adapter.size_bytes,
               adapter.digest.hex());
  action.loaded.reset();
}

void AdapterLoader::perform(ReportAdapterEvicted& action) {
  ++evictions_;
  const LoadedAdapter& adapter = *action.evicted;
  spdlog::info("adapter evicted adapter={} version={} lease={} reason={}", adapter.name,
               adapter.version, to_string(adapter.lease), name(action.why));
  if (action.why == AdapterEviction::Revoked) revoked_.push_back(action.evicted);
  action.evicted.reset();
}

}  // namespace leasehold
